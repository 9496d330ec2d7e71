r"""Entry point for reading answers: parses a whole text as a value, or refuses it.

Choices between two usual readings of a text:
- `1,234` is one number outside brackets; within brackets, and before a blank, a comma separates. `0,5` is two
  numbers, unless one number is expected; then `5,0` is refused: it may be 5.0, and it may be 5 and 0. All numerals
  are in `numerals`.
- `2[a+b]` and `[x]` are groups, `[1,2]` is none; `E[X]` and `x[n-1]` are refused.
- `(1,2)` is a point, unless infinity, a union or `x \in` makes it an interval, or the expected answer is one;
  `[1,2]` is an interval, `[1,2,3]` a tuple.
- `f(2)`, `g(x)`, `h'(t)`, `f^{-1}(x)` are values of an unknown function, `x(x+1)` is a product.
- `2e-3` is 0.002, unless the expected answer has Euler's number. `log` is the natural logarithm, `lg` has base 10.
- `5 m` with a blank is five metres, `5m` and `2 m v` are products, unless the expected answer settles it. `5
  apples` is a quantity if one is expected, or if a number is expected and apples are in the list of countable
  nouns.
- `A` alone is a choice unless the expected answer is mathematics. `a` is one, too, if a choice is expected; `e` and
  later letters only if `(E)`, `\text{E}` or `Option E` marks one. `xy` is a product, `yes` is a word.
- `\sin^{-1} x` is the inverse function. `x = 1, 2` and `x = 1, x = 2` are alternatives, `x = 1, y = 2` a system.
- `\pm` makes two answers. `0.(3)` and `0.\overline{3}` recur. `1.5 million` is a number.
- `3:2` is a ratio, `3:20` a time of day, unless a ratio or a number is expected. `\approx` adds nothing to a value;
  `x \approx 2.35` is `x = 2.35`. `\text{CO}_2` and `CaCO_3` are chemical formulas, `CO_2` is a product.
- `1, 2, \dots, 10` continues by adding. `k \pi, k \in Z` and `x \equiv 3 \pmod 7` are sets of numbers.
- `25 \frac{m}{s}` with a blank has a unit, `25\frac{m}{n}` none. `twelve` is 12 if a number is expected.
- `3mg` is a mass, `\frac{3mg}{2}` and `\frac32 mg` are weights: within fractions and roots there are no units. `47
  k\Omega` has one, `\mu mg` none. `\Gamma(x)` is the gamma function, `mg(1-x)` a product. `2(1,3)` is (2, 6).
- `(n+1)2^{n-1}` and `n2^n` are products, `a2^3` is refused.
- `3/4 x`, with a blank, is three quarters of x. `1/2x`, `x/2y`, `\sin x (x+1)`, `\sin x/2`, `6 7`, `2x2`, `12,05`
  `5 J/kg K` and `\prod_{k=1}^3 k \cdot 2` are refused. Natural numbers begin with 1.

An expected answer only settles such choices; it never changes what is written.

Chemical formulas: `\text{CaCO}_3`, `Fe_2O_3`, `\mathrm{SO_4^{2-}}`, `Ca(OH)2`, `CuSO_4\cdot 5H_2O`.

A formula is elements with their counts, groups in brackets, and a charge; it is kept as written, so `HCOOH` differs
from `CH_2O_2`, and capitals count. `CO_2` may be C times O_2: a possible product is a formula only with evidence:
upright letters, an element of two letters beside another, a charge, digits that are not a subscript.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from fractions import Fraction

from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar import values as v
from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.nodes import symbols
from verifiers.answers.grammar.notation import ANSWERS as NOTATION
from verifiers.answers.grammar.number_words import number_in_words
from verifiers.answers.grammar.numerals import Commas, plain_digits
from verifiers.answers.grammar.preprocessing import MAX_TRAILING, digits_first, preprocessed, unwrapped
from verifiers.answers.grammar.rational import rational
from verifiers.answers.grammar.reader import Context, Hint, Reader
from verifiers.answers.grammar.reading.items import answer
from verifiers.answers.grammar.reading.language import ANSWERS
from verifiers.answers.grammar.reading.quantities import COMMON_UNITS, LETTERS
from verifiers.answers.grammar.tokens import MAX_CHARACTERS, plain
from verifiers.answers.grammar.traverse import comparisons, expressions, values
from verifiers.answers.grammar.units import UNIT_NAMES
from verifiers.answers.grammar.values import ChemicalFormula
from verifiers.answers.grammar.words import certain_words, choice, folded, loose_words, several_choices

MAX_LENGTH = 120
ELEMENTS = re.findall(
    r"\S+",
    """H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr
    Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir
    Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am""",
)
ELEMENT = "|".join(sorted(ELEMENTS, key=len, reverse=True))
BEGINS = re.compile(r"[A-Z(\[\\]")
STYLE = re.compile(r"\\(?:text|textrm|mathrm|mbox|ce|rm)(?![A-Za-z])")
SPACE = re.compile(r"(?:[\s~]|\\[,;:! ])+")
SUBSCRIPT = re.compile(r"_(?:\{\s*([0-9]{1,3})\s*\}|([0-9]))")
CHARGE = re.compile(r"\^(?:\{\s*([0-9]?[+-])\s*\}|([0-9]?[+-]))$")
PLAIN = re.compile(
    rf"(?P<groups>(?:(?:{ELEMENT})(?:[0-9]{{1,3}})?|[(\[]|[)\]](?:[0-9]{{1,3}})?)+)"
    rf"(?:[.](?P<more>[0-9]{{0,2}}(?:(?:{ELEMENT})(?:[0-9]{{1,3}})?)+))?"
)
ATOM = re.compile(ELEMENT)


def formula(text: str, *, upright: bool = False, certain: bool = True) -> ChemicalFormula | None:
    """Reads a whole text as a chemical formula; None if it is not one. With `certain`, also None if it may be something
    else, such as a product of letters. `upright`: the text stood in upright letters."""
    if not BEGINS.match(text) or len(text) > MAX_LENGTH:
        return None
    marked = upright or STYLE.search(text) is not None
    bare = SPACE.sub("", STYLE.sub("", text))
    charge = CHARGE.search(bare.rstrip("}") if bare.endswith("}}") else bare)
    if charge is not None:
        bare = bare[: charge.start()] + "}" * bare[charge.end() :].count("}")
    counted = SUBSCRIPT.sub(lambda found: found[1] or found[2], bare)
    plain_digits = counted == bare and any(sign.isdigit() for sign in bare)
    found = PLAIN.fullmatch(re.sub(r"\\cdot|\*", ".", counted.replace("{", "").replace("}", "")))
    if found is None or not _balanced(found["groups"]):
        return None
    atoms = ATOM.findall(found.group())
    several = len(set(atoms)) > 1
    said = marked or plain_digits or any(len(atom) > 1 for atom in atoms)
    counts = any(sign.isdigit() for sign in found.group())
    if certain and not (charge or (several and counts and said)):
        return None
    written = re.sub(r"(?<![0-9])1(?![0-9])", "", found.group())
    return ChemicalFormula(written + (f"^{charge[1] or charge[2]}" if charge else ""))


def _balanced(text: str) -> bool:
    depth = 0
    for sign in text:
        depth += (sign in "([") - (sign in ")]")
        if depth < 0:
            return False
    return depth == 0 and "()" not in text


CAPITAL = re.compile("[A-Z]")
EULER = n.Constant("e")
LABELLED = re.compile(r"\\text(?!it)")
"""Command that may mark a lower-case letter as a label; italics are used for symbols."""
LISTED = re.compile(r"(?<!\\)[,;][\s~$})\]\\]*$")
"""Separator after the last answer."""


def read_answer(
    text: str,
    *,
    variables: Collection[str] | None,
    expected: v.Value | None = None,
    complex_symbols: bool = False,
    units: bool = False,
) -> v.Value:
    """Parses the whole text of an answer as a value of any kind. Raises only GrammarError. `variables`: names that are
    symbols even if they are also constants, functions or units; None: those of the expected answer. `expected`: decides
    between several readings. `complex_symbols`: symbols stand for complex numbers. `units`: a letter after a number and
    a blank is a unit if it can be one, `0.5 T`."""
    if len(text) > MAX_CHARACTERS:
        raise TooLargeError(f"longer than {MAX_CHARACTERS} characters")
    inner, upright = unwrapped(plain(text))
    if not inner:
        raise GrammarError("the answer is empty")
    named = not (inner[0] == "=" and inner[1:2] not in ("=", "<", ">"))
    if not named:
        inner = inner[1:].strip()
    names = frozenset(variables or ())
    if named and not names and (expected is None or isinstance(expected, v.ChemicalFormula)):
        compound = formula(inner, upright=upright, certain=expected is None)
        if compound is not None:
            return compound
    ends = inner[-1:]
    counts = (ends == "}" or ends.isalpha()) and _takes_spelled(expected)
    number = number_in_words(inner) if counts and ends != "}" else None
    if number is not None:
        return v.Scalar(n.Negation(n.Number(-number, inner)) if number < 0 else n.Number(number, inner))
    if isinstance(expected, v.Quantity) and inner[:1].isalpha():
        inner = digits_first(inner)
    familiar = frozenset(_symbols(expected)) if expected is not None else frozenset()
    worded = _words(inner, upright, names, names | familiar, expected, labelled=LABELLED.search(text) is not None)
    if worded is not None:
        if not named:
            raise GrammarError("an equals sign before words")
        return worded
    spelled = UNIT_NAMES - names if names else UNIT_NAMES
    if isinstance(expected, v.Quantity):
        spelled |= {atom for atom, _ in expected.unit}
    context = Context(
        names,
        familiar if variables is None else frozenset(),
        spelled,
        wants_unit=isinstance(expected, v.Quantity),
        nouns=expected is None,
        counts=counts,
        letters=LETTERS if units else COMMON_UNITS,
        complex=complex_symbols,
    )
    settled = expressions(expected) if expected is not None and ("[" in inner or "e" in inner) else ()
    nodes = [part for node in settled for part in n.walk(node)]
    if "[" in inner and any(isinstance(node, n.FunctionCall) and node.function == "floor" for node in nodes):
        raise GrammarError("square brackets that may be the integer part: write \\lfloor")
    listed = LISTED.search(text[-MAX_TRAILING:]) is not None
    found: v.Value | None = None
    first: GrammarError | None = None
    for commas in _commas(inner, expected):
        try:
            size = _number(expected) if "," in inner else None
            digits = plain_digits(inner, commas, expected=size, ends=listed)
            tokens = NOTATION.tokens(preprocessed(digits, expected), euler=EULER in nodes)
            read = answer(Reader(tokens, ANSWERS, context, _hint(expected)))
        except TooLargeError:
            raise
        except GrammarError as error:
            first = first or error
            continue
        found = found or read
        if not isinstance(expected, v.Listing) or _same_length(read, expected):
            found = read
            break
    if found is None:
        found = None if expected is not None or not named else loose_words(inner)
        if found is None:
            raise first or GrammarError("cannot be read")
        return found
    if not named and isinstance(found, v.RelationValue | v.Named | v.Builder):
        raise GrammarError("an equals sign before an equation")
    return found


def formula_of(text: str, *, certain: bool = True) -> v.Value | None:
    """Reads a text with its LaTeX wrapping as a chemical formula; None if it is not one. With `certain`, also None if
    it may be something else, such as a product of letters."""
    if not CAPITAL.search(text) or len(text) > MAX_CHARACTERS:
        return None
    try:
        inner, upright = unwrapped(plain(text))
    except GrammarError:
        return None
    return formula(inner, upright=upright, certain=certain)


def _takes_spelled(expected: v.Value | None) -> bool:
    """True if an answer may spell out its number in words, because a number without symbols is expected."""
    return isinstance(expected, v.Scalar) and not symbols(expected.of)


def _commas(text: str, expected: v.Value | None) -> tuple[Commas, ...]:
    """Returns the meanings of a comma between digits to try in turn: the first that gives the expected number of items
    counts, or else the first that can be read."""
    match expected:
        case v.Listing() if "," in text:
            return "group", "separate", "decimal"
        case v.Tuple() | v.FiniteSet() | v.Interval() if "," in text and ";" in text:
            return "group", "decimal"
        case v.Scalar() | v.Quantity() | v.Ratio() | v.Approximated():
            return ("decimal",)
        case v.Named(_, value):
            return _commas(text, value)
        case v.RelationValue(_, (n.ComparisonNode(),)):
            return ("decimal",)
        case _:
            return ("group",)


def _number(expected: v.Value | None) -> Fraction | None:
    """Returns the size of the number that is expected, alone or with its name or unit; None if it is none or not
    rational."""
    match expected:
        case v.Scalar(of) | v.Quantity(of, _) | v.RelationValue(_, (n.ComparisonNode((*_, of), _),)):
            pass
        case v.Named(_, v.Quantity(of, _)):
            pass
        case _:
            return None
    try:
        value = None if symbols(of) else rational(of)
    except GrammarError:
        return None
    return None if value is None else abs(value)


def _same_length(found: v.Value, expected: v.Listing) -> bool:
    return isinstance(found, v.Listing) and len(found.items) == len(expected.items)


def _words(
    text: str, upright: bool, names: frozenset[str], known: frozenset[str], expected: v.Value | None, *, labelled: bool
) -> v.Value | None:
    """Reads a text as words or a choice's label, if its form or the expected answer says so; else None. `labelled`: the
    text stood in upright letters, as labels do."""
    if isinstance(expected, v.Choice):
        label = choice(text, upright=labelled, expected=expected)
        if label is not None:
            return label
    letters = several_choices(text, expected)
    if letters is not None:
        return letters
    phrase = PHRASES.get(" ".join(text.lower().split()))
    if phrase is not None:
        return phrase
    if isinstance(expected, v.TextAnswer):
        return certain_words(text, names) or loose_words(text) or (folded(text) if text.isalpha() else None)
    if expected is None and not (names and text in names):
        label = choice(text, upright=labelled)
        if label is not None:
            return label
        if upright and re.fullmatch(r"[^\W\d_]{2,}", text) and text not in names:
            return folded(text)
    return certain_words(text, known, clocks=not isinstance(expected, v.Ratio | v.Scalar))


EVEN = n.Product((n.TWO, n.Symbol("k")))
ODD = n.Sum((EVEN, n.ONE))
PHRASES: dict[str, v.Value] = {
    **dict.fromkeys(("all real numbers", "all reals", "the real numbers", "real numbers"), v.NumberSet("R")),
    **dict.fromkeys(("all integers", "the integers"), v.NumberSet("Z")),
    **dict.fromkeys(("empty set", "the empty set"), v.FiniteSet(())),
    **dict.fromkeys(("all positive integers", "the positive integers", "all natural numbers"), v.NumberSet("N")),
    **dict.fromkeys(("all nonnegative integers", "all non-negative integers"), v.NumberSet("N0")),
    **dict.fromkeys(("all even integers", "all even numbers"), v.Images((EVEN,), "k", v.NumberSet("Z"))),
    **dict.fromkeys(("all odd integers", "all odd numbers"), v.Images((ODD,), "k", v.NumberSet("Z"))),
}


def _hint(expected: v.Value | None) -> Hint:
    match expected:
        case None:
            return Hint()
        case v.RelationValue() if all(set(part.relations) == {"=="} for part in comparisons(expected)):
            return Hint("tuple")
        case v.Interval() | v.SetOperation() | v.Builder() | v.RelationValue():
            return Hint("interval")
        case v.Tuple():
            return Hint("tuple")
        case v.Matrix():
            return Hint("tuple", "tuple")
        case v.FiniteSet():
            return Hint(braces=True)
        case v.Named(_, value):
            return _hint(value)
        case v.Listing((first, *_)):
            return _hint(first)
        case _:
            return Hint()


def _symbols(value: v.Value) -> Iterator[str]:
    for node in expressions(value):
        yield from symbols(node)
    for part in values(value):
        if isinstance(part, v.Builder):
            yield part.symbol
        elif isinstance(part, v.Images) and part.name:
            yield part.name
        elif isinstance(part, v.Named):
            yield from _symbols(part.name)

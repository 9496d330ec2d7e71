"""Text to value: the one door through which an answer is read. The whole text is read, or it is refused.

Where one text has two usual readings, this is the choice:

- `1,234` is one number outside brackets; within brackets, and before a blank, a comma separates. `0,5` is two numbers,
  unless one number is expected; then `5,0` is refused: it may be 5.0, and it may be 5 and 0.
- `(1,2)` is a point, unless infinity, a union or `x \\in` makes it an interval, or the expected answer is one;
  `[1,2]` is an interval, `[1,2,3]` a tuple.
- `f(2)`, `g(x)`, `h'(t)`, `f^{-1}(x)` are values of a function that is not known, `x(x+1)` is a product.
- `2e-3` is 0.002, unless the expected answer has Euler's number. `log` is the natural logarithm, `lg` has base 10.
- `5 m` with a blank is five metres, `5m` and `2 m v` are products, unless the expected answer settles it. `5 apples` is
  a quantity where it is what is expected, and nowhere else.
- `A` alone is a choice unless the expected answer is mathematics. `a` is one, too, where a choice is expected; `e` and
  the letters behind it only where `(E)`, `\\text{E}` or `Option E` marks one. `xy` is a product, `yes` is a word.
- `\\sin^{-1} x` is the inverse function. `x = 1, 2` and `x = 1, x = 2` are alternatives, `x = 1, y = 2` a system.
- `\\pm` makes two answers. `0.(3)` and `0.\\overline{3}` recur. `1.5 million` is a number.
- `3:2` is a ratio, `3:20` a time of day, unless a ratio or a number is expected. `\\approx` adds nothing to a value.
- `1, 2, \\dots, 10` goes on by adding. `k \\pi, k \\in Z` and `x \\equiv 3 \\pmod 7` are sets of numbers.
- `25 \\frac{m}{s}` with a blank has a unit, `25\\frac{m}{n}` none. `twelve` is 12 where a number is expected.
- `(n+1)2^{n-1}` and `n2^n` are products, `a2^3` is refused.
- `3/4 x`, with a blank, is three quarters of x. `1/2x`, `x/2y`, `\\sin x (x+1)`, `\\sin x/2`, `6 7`, `2x2`, `12,05`
  and `5 J/kg K` are refused. Natural numbers begin with 1.

An expected answer only settles such choices; it never changes what is written.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from fractions import Fraction

from verifiers.answers.grammar.brackets import Hint
from verifiers.answers.grammar.characters import plain
from verifiers.answers.grammar.customs import chosen, customary, digits_first
from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.naming import Context
from verifiers.answers.grammar.nodes import Constant, Expression, Negation, Number, Product, Sum, Symbol, symbols, walk
from verifiers.answers.grammar.notation import tokens_of
from verifiers.answers.grammar.spelled import spelled
from verifiers.answers.grammar.structures import Structures
from verifiers.answers.grammar.tokens import MAX_CHARACTERS
from verifiers.answers.grammar.wording import certain_words, choice, folded, loose_words
from verifiers.answers.grammar.wrapping import unwrapped
from verifiers.answers.parts import comparisons, expressions, values
from verifiers.answers.units import UNIT_NAMES
from verifiers.answers.values import (
    Builder,
    Choice,
    FiniteSet,
    Images,
    Interval,
    Listing,
    Matrix,
    Named,
    NumberSet,
    Quantity,
    Ratio,
    Relation,
    Scalar,
    SetOperation,
    Tuple,
    Value,
    Words,
)

LABELLED = re.compile(r"\\text(?!it)")
"""What may mark a lower-case letter as a label; italics are what symbols are set in."""


def read_answer(text: str, *, variables: Collection[str] | None, expected: Value | None = None) -> Value:
    """The value of a whole text. Raises GrammarError, and nothing else, for a text that is not an answer.

    `variables`: names that win over constants, functions and units; None for those of the expected answer.
    `expected`: settles what has two readings.
    """
    if len(text) > MAX_CHARACTERS:
        raise TooLargeError(f"longer than {MAX_CHARACTERS} characters")
    inner, upright = unwrapped(plain(text))
    if not inner:
        raise GrammarError("nothing is written")
    named = not (inner[0] == "=" and inner[1:2] not in ("=", "<", ">"))
    if not named:
        inner = inner[1:].strip()
    names = frozenset(variables or ())
    number = spelled(inner) if inner[-1:].isalpha() and _takes_spelled(expected) else None
    if number is not None:
        return Scalar(Negation(Number(-number, inner)) if number < 0 else Number(number, inner))
    if isinstance(expected, Quantity) and inner[:1].isalpha():
        inner = digits_first(inner)
    worded = _words(inner, upright, names, expected, labelled=LABELLED.search(text) is not None)
    if worded is not None:
        if not named:
            raise GrammarError("an equals sign before words")
        return worded
    familiar = frozenset(_symbols(expected)) if expected is not None and variables is None else frozenset()
    euler = expected is not None and any(_has_euler(node) for node in expressions(expected))
    units = UNIT_NAMES - names if names else UNIT_NAMES
    if isinstance(expected, Quantity):
        units |= {atom for atom, _ in expected.unit}
    context = Context(names, familiar, units, isinstance(expected, Quantity), nouns=expected is None)
    inner = customary(inner, expected)
    grouping = not inner.startswith("{")
    try:
        found = Structures(tokens_of(inner, grouping=grouping, euler=euler), context, _hint(expected)).answer()
    except TooLargeError:
        raise
    except GrammarError:
        loose = None if expected is not None or not named else loose_words(inner)
        if loose is None:
            raise
        return loose
    if isinstance(expected, Listing) and not _same_length(found, expected) and "," in inner:
        listed = _listed(inner, euler, context, expected)
        found = listed if listed is not None else found
    if not named and isinstance(found, Relation | Named | Builder):
        raise GrammarError("an equals sign before an equation")
    return found


def _takes_spelled(expected: Value | None) -> bool:
    """Whether a number in words is read as that number. Not for what is expected: `five` may be asked for as a word."""
    return isinstance(expected, Scalar) and not symbols(expected.of)


def _listed(text: str, euler: bool, context: Context, expected: Listing) -> Value | None:
    """`1,234` as two numbers, where two are expected."""
    try:
        found = Structures(tokens_of(text, grouping=False, euler=euler), context, _hint(expected)).answer()
    except GrammarError:
        return None
    return found if _same_length(found, expected) else None


def _same_length(found: Value, expected: Listing) -> bool:
    return isinstance(found, Listing) and len(found.items) == len(expected.items)


def _words(text: str, upright: bool, names: frozenset[str], expected: Value | None, *, labelled: bool) -> Value | None:
    """Words and choices, where the text or the expected answer says that it is one."""
    if isinstance(expected, Choice):
        label = choice(text, upright=labelled, expected=expected)
        if label is not None:
            return label
    letters = chosen(text, expected)
    if letters is not None:
        return letters
    phrase = PHRASES.get(" ".join(text.lower().split()))
    if phrase is not None:
        return phrase
    if isinstance(expected, Words):
        return certain_words(text, names) or loose_words(text) or (folded(text) if text.isalpha() else None)
    if expected is None and not (names and text in names):
        label = choice(text, upright=labelled)
        if label is not None:
            return label
        if upright and re.fullmatch(r"[^\W\d_]{2,}", text) and text not in names:
            return folded(text)
    known = names | (frozenset(_symbols(expected)) if expected is not None else frozenset())
    return certain_words(text, known, clocks=not isinstance(expected, Ratio | Scalar))


EVEN = Product((Number(Fraction(2)), Symbol("k")))
ODD = Sum((EVEN, Number(Fraction(1))))
PHRASES: dict[str, Value] = {
    **dict.fromkeys(("all real numbers", "all reals", "the real numbers", "real numbers"), NumberSet("R")),
    **dict.fromkeys(("all integers", "the integers"), NumberSet("Z")),
    **dict.fromkeys(("empty set", "the empty set"), FiniteSet(())),
    **dict.fromkeys(("all positive integers", "the positive integers", "all natural numbers"), NumberSet("N")),
    **dict.fromkeys(("all nonnegative integers", "all non-negative integers"), NumberSet("N0")),
    **dict.fromkeys(("all even integers", "all even numbers"), Images((EVEN,), "k", NumberSet("Z"))),
    **dict.fromkeys(("all odd integers", "all odd numbers"), Images((ODD,), "k", NumberSet("Z"))),
}


def _hint(expected: Value | None) -> Hint:
    match expected:
        case None:
            return Hint()
        case Relation() if all(set(part.relations) == {"=="} for part in comparisons(expected)):
            return Hint("tuple")
        case Interval() | SetOperation() | Builder() | Relation():
            return Hint("interval")
        case Tuple():
            return Hint("tuple")
        case Matrix():
            return Hint("tuple", "tuple")
        case FiniteSet():
            return Hint(braces=True)
        case Named(_, value):
            return _hint(value)
        case Listing((first, *_)):
            return _hint(first)
        case _:
            return Hint()


def _has_euler(node: Expression) -> bool:
    return any(isinstance(part, Constant) and part.name == "e" for part in walk(node))


def _symbols(value: Value) -> Iterator[str]:
    for node in expressions(value):
        yield from symbols(node)
    for part in values(value):
        if isinstance(part, Builder):
            yield part.symbol
        elif isinstance(part, Images) and part.name:
            yield part.name
        elif isinstance(part, Named):
            yield from _symbols(part.name)

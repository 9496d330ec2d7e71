r"""Table of the constructs of answers. A new construct is one function and one row here.

Beyond the plain language: every single letter is a symbol, Greek and decorated letters, subscripts and primes as parts
of a symbol's name, degrees, units, mixed numbers with a blank, values of unknown functions, definite integrals, sums,
products, limits, matrices, sets, intervals, equations, congruences, ratios and cases.

Amounts of money with a leading sign: `$5`, `-€3`, `$15 per hour`, `\$15/\text{hour}`.

Content of `\begin{cases}` to `\end{cases}`: a system, or values with their conditions.

Constructs that bind a symbol: definite integrals, finite or infinite sums and products, limits.

They become calls that name the bound symbol: `integral(body, x, low, high)`, `sum` and `product` alike, `limit(body, x,
point)`. `Constant("infinity")` may be a bound, and occurs nowhere else. An indefinite integral is refused, because it
has no value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar.errors import TooLargeError
from verifiers.answers.grammar.nodes import Constant, Expression, FunctionCall, Negation, Symbol
from verifiers.answers.grammar.reader import Language, Reader
from verifiers.answers.grammar.reading import atoms, names, quantities, sets
from verifiers.answers.grammar.reading.factors import beside
from verifiers.answers.grammar.reading.items import item, member, operand
from verifiers.answers.grammar.reading.plain import ATOMS as PLAIN_ATOMS
from verifiers.answers.grammar.reading.quantities import is_unit, spread, unit
from verifiers.answers.grammar.reading.relations import RELATIONS, congruence, ratio, related
from verifiers.answers.grammar.tokens import Token
from verifiers.answers.grammar.values import Builder, Piecewise, Quantity, RelationValue, Scalar, Value
from verifiers.answers.grammar.vocabulary import CONSTANTS, ENVIRONMENTS, EXTENDED, OF_MATRICES, WIDE_BARE

INFINITE = Constant("infinity")
DIFFERENTIAL = re.compile("([A-Za-z]*)d([A-Za-z]?)")


def integral(reader: Reader) -> Expression:
    r"""Reads a definite integral, `\int_0^1 x^2 dx`. Raises GrammarError if bounds or `dx` are missing."""
    reader.take()
    low = high = None
    while reader.at("_", "^"):
        if reader.take().text == "_":
            low = _bound(reader)
        else:
            high = _bound(reader)
    if low is None or high is None:
        raise reader.error("an integral without bounds")
    name = _split_differential(reader)
    body = reader.nested(reader.sum)
    reader.expect("d")
    reader.take()
    return FunctionCall("integral", (body, Symbol(name), low, high))


def repeated(reader: Reader) -> Expression:
    r"""Reads a sum or product over an index, `\sum_{k=1}^{10} k^2` or `\prod_{k=1}^n k`."""
    name = "sum" if reader.take().text == "\\sum" else "product"
    index = _bound_symbol(reader, "a sum without an index")
    reader.expect("=")
    low = _point(reader)
    reader.expect("}")
    reader.expect("^")
    high = _bound(reader)
    finite = INFINITE not in (low, high)
    return FunctionCall(name, (_body(reader, index, linear=name == "sum", finite=finite), index, low, high))


def limit(reader: Reader) -> Expression:
    r"""Reads a limit, `\lim_{x \to 0} x`."""
    reader.take()
    variable = _bound_symbol(reader, "a limit without a variable")
    reader.expect("\\to")
    point = _point(reader)
    reader.expect("}")
    return FunctionCall("limit", (_body(reader, variable, linear=True, finite=False), variable, point))


def _body(reader: Reader, bound: Symbol, *, linear: bool, finite: bool) -> Expression:
    r"""Reads the term after a sum, product or limit. Raises GrammarError if its last factor lacks the bound symbol and
    gives another value behind the whole: the 2 of `\prod_{k=1}^3 k \cdot 2`. In what is `linear` only a factor does
    that may be zero, and in what is `finite`, too, none."""
    body, last = reader.nested(reader.term), reader.last_factor
    bare = last is not body and n.symbols(FunctionCall("sum", (last, bound))) == n.symbols(last)
    parts = () if n.symbols(last) else n.walk(last)
    may_be_zero = any(part == n.ZERO or isinstance(part, n.Sum | FunctionCall) for part in parts)
    if bare and not (linear and (finite or not may_be_zero)):
        raise reader.error("a last factor that may belong to a sum, product or limit, or not: add brackets")
    return body


def _bound_symbol(reader: Reader, missing: str) -> Symbol:
    reader.expect("_")
    reader.expect("{")
    token = reader.take()
    if token.kind not in ("word", "symbol"):
        raise reader.error(missing)
    return Symbol(token.text)


def _bound(reader: Reader) -> Expression:
    if not reader.accept("{"):
        return _infinite(reader) if reader.at("\\infty") else reader.argument()
    found = _point(reader)
    reader.expect("}")
    return found


def _point(reader: Reader) -> Expression:
    if reader.at("\\infty") or (reader.at("+", "-") and reader.peek().text == "\\infty"):
        return _infinite(reader)
    return reader.nested(reader.sum)


def _infinite(reader: Reader) -> Expression:
    negative = reader.accept("+", "-") == "-"
    reader.expect("\\infty")
    return Negation(INFINITE) if negative else INFINITE


def _split_differential(reader: Reader) -> str:
    """Finds the `dx` that ends an integrand, and replaces it by two tokens, `d` and the symbol. Returns the symbol's
    name."""
    depth = 0
    for index in range(reader.index, len(reader.tokens) - 1):
        token = reader.tokens[index]
        if token.kind == "mark":
            depth += (token.text in ("(", "{")) - (token.text in (")", "}"))
        elif depth == 0 and token.kind in ("word", "text") and not reader.is_function(token.text):
            match = DIFFERENTIAL.fullmatch(token.text)
            following = reader.tokens[index + 1]
            one_letter = following.kind == "symbol" or (following.kind == "word" and len(following.text) == 1)
            if match is None or not (match[2] or one_letter):
                continue
            name = match[2] or following.text
            before = [Token("word", match[1], glued=token.glued)] if match[1] else []
            reader.tokens[index : index + (1 if match[2] else 2)] = [*before, Token("mark", "d"), Token("word", name)]
            return name
    raise reader.error("an integral without dx")


MAX_ROWS = 40
END = "\\end{cases}"
OTHERWISE = frozenset({"otherwise", "else", "elsewhere"})
BEFORE_CONDITION = frozenset({"if", "for", "when", "where"})


def cases(reader: Reader) -> Value:
    """Reads a LaTeX `cases` environment: simultaneous relations, or values each with its condition. Raises GrammarError
    if it is neither, TooLargeError if it has too many rows."""
    reader.take()
    outer, reader.bars = reader.bars, 0
    rows: list[tuple[Value, Value | None]] = []
    conditional = False
    while not reader.at(END):
        value = reader.nested(reader.item)
        reader.accept(",", ";")
        if reader.accept("&"):
            conditional = True
            rows.append((value, _condition(reader)))
            reader.accept(",", ";")
        else:
            rows.append((value, None))
        if len(rows) > MAX_ROWS:
            raise TooLargeError(f"more than {MAX_ROWS} cases")
        if not reader.at(END):
            reader.expect("\\\\")
    reader.expect(END)
    reader.bars = outer
    if conditional:
        return _piecewise(rows, reader)
    relations = [value for value, _ in rows if isinstance(value, RelationValue)]
    if not rows or len(relations) < len(rows):
        raise reader.error("cases that are neither equations nor values with conditions")
    return relations[0] if len(relations) == 1 else RelationValue("and", tuple(relations))


def _condition(reader: Reader) -> Value | None:
    """Reads the condition of one row in a `cases` environment; None for `otherwise`. Raises GrammarError if it is not a
    condition."""
    token = reader.token
    if token.kind in ("word", "text") and token.text in OTHERWISE:
        reader.take()
        return None
    if token.kind in ("word", "text") and token.text in BEFORE_CONDITION:
        reader.take()
    found = reader.nested(reader.item)
    if not isinstance(found, RelationValue | Builder):
        raise reader.error("a case without a condition")
    return found


def _piecewise(rows: list[tuple[Value, Value | None]], reader: Reader) -> Piecewise:
    branches: list[tuple[Expression, Value | None]] = []
    for index, (value, condition) in enumerate(rows):
        if not isinstance(value, Scalar) or (condition is None and index < len(rows) - 1):
            raise reader.error("a case that is not a value with its condition")
        branches.append((value.of, condition))
    return Piecewise(tuple(branches))


SIGNS = ("$", "€", "£", "¥", "₹")


def money(reader: Reader) -> Value:
    """Reads an amount of money that begins with its currency sign, such as `-$5` or `$5/kg`."""
    negative = reader.accept("-")
    sign = reader.take().text
    if sign not in SIGNS:
        raise reader.error("a unit without a number")
    restore = reader.saved()
    node = reader.atom() if reader.token.kind == "number" else None
    spread(reader)
    paid = (reader.at("/") or reader.token.text == "per") and reader.peek().text in reader.context.units
    if node is None or not paid:
        restore()
        node = reader.sum()
        if is_unit(reader, reader.token):
            raise reader.error("two units")
    else:
        reader.take()
    below = [(name, -power) for name, power in unit(reader)] if paid else []
    return Quantity(Negation(node) if negative else node, ((sign, 1), *below))


ATOMS: Mapping[str, Callable[[Reader], Expression]] = {
    **PLAIN_ATOMS,
    **dict.fromkeys(atoms.GROUPS, atoms.bracketed),
    "symbol": names.symbol,
    "text": names.upright,
    "{": Reader.braced,
    "\\frac": atoms.rate_or_fraction,
    "\\surd": atoms.unbraced_root,
    "\\infty": atoms.infinity,
    "\\group": atoms.group,
    "\\conj": atoms.conjugate,
    "\\angle": atoms.angle,
    "\\int": integral,
    "\\sum": repeated,
    "\\prod": repeated,
    "\\lim": limit,
    "\\begin{vmatrix}": atoms.determinant,
    **dict.fromkeys((f"\\of {name}" for name in set(OF_MATRICES.values())), atoms.of_letter),
}
VALUES: Mapping[str, Callable[[Reader], Value | None]] = {
    "based": quantities.base_number,
    "unit": money,
    "(": sets.round_bracket,
    "[": sets.square_bracket,
    "]": sets.square_bracket,
    "\\langle": sets.angle_bracket,
    "{": sets.braces,
    "\\{": sets.braces,
    "\\emptyset": sets.empty_set,
    **dict.fromkeys((f"\\mathbb{name}" for name in "NZQRC"), sets.number_set),
    **dict.fromkeys((f"\\begin{{{name}}}" for name in ENVIRONMENTS if name != "vmatrix"), atoms.matrix),
    "\\begin{cases}": cases,
}
INFIXES: Mapping[str, Callable[[Reader, Value], Value]] = {
    **dict.fromkeys(RELATIONS, related),
    "\\in": member,
    "\\equiv": congruence,
    ":": ratio,
}
ANSWERS = Language(
    atoms=ATOMS,
    factor_signs=frozenset(ATOMS) - {"|", "{", "\\infty", "\\angle"},
    beside=beside,
    functions=EXTENDED,
    bare=WIDE_BARE,
    constants=CONSTANTS,
    begins_unit=quantities.begins_unit,
    values=VALUES,
    infixes=INFIXES,
    value=operand,
    item=item,
)

"""Values and lists of them: operands of set operations, signs after a value, items between commas.

The table of the language gives the construct for each value; `lists` and `systems` combine several items.
"""

from __future__ import annotations

from typing import Literal

from verifiers.answers.grammar import values as v
from verifiers.answers.grammar.errors import TooLargeError
from verifiers.answers.grammar.lists import SETS, approximated, as_set, is_name, joined, named_points, only_decimal
from verifiers.answers.grammar.nodes import ONE, Expression, Negation, Number, Product, Quotient, Symbol, symbols
from verifiers.answers.grammar.rational import folded
from verifiers.answers.grammar.reader import Reader
from verifiers.answers.grammar.reading.matrices import rows, transposed, transposes
from verifiers.answers.grammar.reading.progressions import MAX_TERMS, between
from verifiers.answers.grammar.reading.quantities import has_items, measured
from verifiers.answers.grammar.reading.relations import defines_function, event
from verifiers.answers.grammar.reading.systems import systems
from verifiers.answers.grammar.vocabulary import ENVIRONMENTS

MAX_ITEMS = 500
MAX_REREADS = 64
r"""Maximum rereads of items with `\pm`; nested sets and tuples would double the work at every level."""
MAX_SCALED = 20_000
"""Maximum product of a factor's length and the entries of the matrix it multiplies."""
MATRICES = frozenset(f"\\begin{{{name}}}" for name in ENVIRONMENTS if name not in ("vmatrix", "cases"))
MINUS_ONE: Expression = Negation(ONE)
OPERATIONS: dict[str, Literal["union", "intersection", "difference"]] = {
    "\\cup": "union",
    "\\cap": "intersection",
    "\\setminus": "difference",
}
CONNECTIVES = {"\\cup": "or", "\\land": "and", "\\lor": "or"}
r"""Joiners of claims, not of values: `2 \lor 3` is not an answer, and `p \land q` is not p times q."""
MIXED = "commas and semicolons in one list: the separator is unclear"


def answer(reader: Reader) -> v.Value:
    """Reads all tokens as one value. Raises GrammarError."""
    if reader.accept("\\approx"):
        return reader.end(only_decimal(operand(reader), reader.error))
    found = listed(reader)
    if reader.accept("\\approx"):
        found = approximated(found, operand(reader), reader.error)
    if reader.at("\\to"):
        raise reader.error("an arrow between values: logic, maps and reactions are not read")
    return reader.end(found)


def listed(reader: Reader) -> v.Value:
    """Reads an answer's items with the commas, semicolons and words between them, and joins them into one value."""
    found = items(reader)
    signs = [""] * len(found)
    while reader.at(",", ";", "and", "or", *CONNECTIVES):
        claims = reader.at(*CONNECTIVES)
        sign = joiner(reader)
        if reader.at("\\dots"):
            run_on(reader, found)
            signs += [","] * (len(found) - len(signs))
            continue
        more = items(reader)
        if claims and not all(isinstance(item, v.RelationValue | v.Builder) for item in (found[-1], *more)):
            raise reader.error("a sign of logic or a union between items that are neither claims nor sets")
        found.extend(more)
        signs += [sign, *([""] * (len(more) - 1))]
        if len(found) - reader.dotted > MAX_ITEMS:
            raise TooLargeError(f"more than {MAX_ITEMS} items")
    return systems(found, signs) or joined(found, _one_kind(reader, found, signs), reader.error)


def _one_kind(reader: Reader, found: list[v.Value], signs: list[str]) -> set[str]:
    """Returns the joiners used between an answer's items. Raises GrammarError if commas and semicolons group anything
    but relations."""
    if {",", ";"} <= set(signs) and not all(isinstance(item, v.RelationValue) for item in found):
        raise reader.error(MIXED)
    return {sign for sign in signs if sign}


def joiner(reader: Reader) -> str:
    """Reads the joiner between two items of an answer; after a comma, `and` or `or` replaces it."""
    sign = reader.take().text
    if sign in CONNECTIVES:
        return CONNECTIVES[sign]
    return (reader.accept("and", "or") or sign) if sign in (",", ";") else sign


def run_on(reader: Reader, found: list[v.Value]) -> None:
    r"""Reads dots, as in `1, 2, \dots, 9`, and the item after them. Appends that item and those between to `found`."""
    reader.take()
    if not reader.accept(",", ";"):
        raise reader.error("dots without an end")
    more = between(found, operand(reader))
    reader.dotted += len(more)
    if reader.dotted > MAX_TERMS:
        raise TooLargeError(f"dots for more than {MAX_TERMS} numbers")
    found.extend(more)
    if reader.at(",", ";"):
        raise reader.error("an item after the end of dots")


def items(reader: Reader) -> list[v.Value]:
    r"""Reads one item of an answer, or both readings of an item with `\pm`."""
    if not reader.has_both_signs:
        return [item(reader)]
    restore = reader.saved()
    outer, count = reader.upper_sign, reader.both_signs
    reader.upper_sign, reader.both_signs = True, 0
    found = [item(reader)]
    if reader.both_signs > 1:
        raise reader.error("several signs with two readings each")
    if reader.both_signs:
        restore()
        reader.upper_sign, reader.rereads = False, reader.rereads + 1
        if reader.rereads > MAX_REREADS:
            raise TooLargeError(f"more than {MAX_REREADS} signs with two readings")
        found.append(item(reader))
    reader.upper_sign, reader.both_signs = outer, count
    return found


def item(reader: Reader) -> v.Value:
    """Reads a value with a sign after it: an equation, a ratio, a membership."""
    if defines_function(reader):
        reader.called = reader.token.text
    first = event(reader) or operand(reader)
    infix = reader.language.infixes.get(reader.token.text) if reader.token.kind == "mark" else None
    return first if infix is None else infix(reader, first)


def member(reader: Reader, first: v.Value) -> v.Value:
    r"""Reads `x \in S`: the values of one symbol, or the points of a tuple of names."""
    reader.take()
    if isinstance(first, v.Tuple) and is_name(first):
        return named_points(first, operand(reader, within=True), reader.error)
    if not (isinstance(first, v.Scalar) and isinstance(first.of, Symbol)):
        raise reader.error("only a symbol can be a member of a set here")
    return v.Builder(first.of.name, as_set(operand(reader, within=True), reader.error), None)


def operand(reader: Reader, *, within: bool = False) -> v.Value:
    """Reads a value, or sets joined by one kind of operation. `within`: a set must follow, so braces are one."""
    first = _primary(reader, within)
    if isinstance(first, SETS) and reader.accept("-"):
        return v.SetOperation("difference", (first, as_set(_primary(reader, within=True), reader.error)))
    if not reader.at(*OPERATIONS) or (isinstance(first, v.Scalar | v.Infinity) and reader.at("\\cup")):
        return first
    sign = reader.token.text
    parts = [as_set(first, reader.error)]
    while reader.accept(sign):
        parts.append(as_set(_primary(reader, within=True), reader.error))
    if reader.at(*OPERATIONS):
        raise reader.error("different operations on sets without brackets")
    return v.SetOperation(OPERATIONS[sign], tuple(parts))


def _primary(reader: Reader, within: bool) -> v.Value:
    token = reader.token
    if reader.at("-") and reader.peek().kind == "unit":
        token = reader.peek()
    construct = reader.language.values.get(token.text if token.kind == "mark" else token.kind)
    if token.text == "{" and not (within or reader.hint.braces or reader.peek().text == "}" or has_items(reader)):
        construct = None
    found = None if construct is None else construct(reader)
    found = found or reader.infinity() or scalar(reader)
    # `[1, 2]` may be an interval, which has no transpose.
    pair = isinstance(found, v.Tuple) and token.text == "[" and len(found.items) == 2
    return transposed(found) if isinstance(found, v.Matrix | v.Tuple) and not pair and transposes(reader) else found


def scalar(reader: Reader) -> v.Value:
    """Reads an expression with its unit, or as the factor of a matrix or of numbers in brackets."""
    outer = reader.item_depth, reader.item_start
    reader.item_depth, reader.item_start = reader.depth, reader.index
    start, node = reader.index, MINUS_ONE
    if not (reader.at("-") and reader.peek().text in MATRICES and reader.take()):
        node = reader.sum()
    if start == 0 and reader.at("\\over", "\\choose"):
        reader.index = 0
        node = reader.end(reader.layered())
    found: v.Value
    if reader.token.kind == "mark" and reader.token.text in MATRICES:
        length = reader.index - start
        read = rows(reader)
        if length * len(read) * len(read[0]) > MAX_SCALED:
            raise TooLargeError("a long factor of a large matrix")
        found = v.Matrix(tuple(tuple(_times(node, entry) for entry in row) for row in read))
    elif reader.at("(") and not symbols(node):
        found = _scaled(reader, node, reader.index - start)
    else:
        found = measured(reader, node)
    reader.item_depth, reader.item_start = outer
    return found


def _scaled(reader: Reader, node: Expression, length: int) -> v.Tuple:
    r"""Reads `\frac13(2, -1, 2)`: a number before a list of numbers in brackets."""
    reader.take()
    found = [item.of for item in elements(reader) if isinstance(item, v.Scalar)]
    reader.expect(")")
    if length * len(found) > MAX_SCALED:
        raise TooLargeError("a long factor of a long list")
    return v.Tuple(tuple(v.Scalar(_times(node, entry)) for entry in found))


def _times(factor: Expression, entry: Expression) -> Expression:
    """Returns factor times entry, as one number if both are written as numbers."""
    product = Product((factor, entry))
    return folded(product) if all(map(_is_plain, product.factors)) else product


def _is_plain(node: Expression) -> bool:
    """True for digits, optionally with a sign or a denominator of digits."""
    match node:
        case Negation(of):
            return _is_plain(of)
        case Quotient(Number(), Number(below)):
            return below != 0
        case _:
            return isinstance(node, Number)


def elements(reader: Reader) -> list[v.Value]:
    """Reads values between commas, up to a closing bracket."""
    outer, reader.bars = reader.bars, 0
    found: list[v.Value] = [reader.nested(reader.operand)]
    separator = reader.token.text
    while sign := reader.accept(",", ";"):
        if sign != separator:
            raise reader.error(MIXED)
        if reader.at("\\dots"):
            run_on(reader, found)
            break
        found.append(reader.nested(reader.operand))
        if len(found) > MAX_ITEMS:
            raise TooLargeError(f"more than {MAX_ITEMS} items")
    reader.bars = outer
    return found

r"""Values and lists of them: operands of set operations, signs after a value, items between commas.

The table of the language gives the construct for each value; `lists` and `systems` combine several items.

Expands the dots of an arithmetic progression: `1, 2, \dots, 10` becomes its ten terms.

The terms before the dots give the step, which is 1 for a single term; the term after them must be reached. Refused if
the progression is ambiguous: `2, 4, \dots, 64` may go by doubling.

Groups adjacent equations: alternatives, a system, or several systems.

`x = 1, y = 2 or x = 2, y = 1` and `x = 1, y = 2; x = 2, y = 1` are two systems: commas and `and` bind tighter than `or`
and semicolons, if there is more than one unknown and each group has the same ones. Refused if the groups do not fit,
and if an unknown gets two values in one system.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from verifiers.answers.grammar import values as v
from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.lists import (
    SETS,
    approximated,
    as_set,
    is_name,
    joined,
    named_points,
    only_decimal,
    plain_numbers,
    solved,
)
from verifiers.answers.grammar.nodes import ONE, Expression, Negation, Number, Product, Quotient, Symbol, symbols
from verifiers.answers.grammar.rational import folded
from verifiers.answers.grammar.reader import Reader
from verifiers.answers.grammar.reading.atoms import rows, transposed, transposes
from verifiers.answers.grammar.reading.quantities import has_items, measured
from verifiers.answers.grammar.reading.relations import defines_function, event
from verifiers.answers.grammar.traverse import free_symbols
from verifiers.answers.grammar.values import RelationValue, Scalar, Value
from verifiers.answers.grammar.vocabulary import ENVIRONMENTS

LOOSE = frozenset({"or", ";"})


def systems(items: Sequence[Value], signs: Sequence[str]) -> RelationValue | None:
    r"""Groups relations joined by both loose signs (`or`, `;`) and tight ones (`and`, commas) into alternative systems.
    Returns None if ordinary joining applies: one kind of joiner, one unknown, or items that are no relations.
    `signs[i]` stands before `items[i]`, empty for the first item and for the second of `\pm`. Raises GrammarError if
    the grouping is unclear or a system gives an unknown two values."""
    relations = [item for item in items if isinstance(item, RelationValue)]
    if len(relations) < len(items) or len(relations) < 2:
        return None
    unknowns = free_symbols(*relations)
    named = {solved(relation) for relation in relations}
    if len(unknowns) < 2 or (len(named) == 1 and None not in named):
        return None
    loose = LOOSE.intersection(signs)
    tight = {sign for sign in signs if sign} - LOOSE
    if not (loose and tight):
        if "or" not in loose:
            _check(relations)
        return None
    groups: list[list[RelationValue]] = []
    for relation, sign in zip(relations, signs, strict=True):
        if sign in LOOSE or not groups:
            groups.append([])
        groups[-1].append(relation)
    names = {free_symbols(*group) for group in groups}
    if len(loose) > 1 or len(names) > 1:
        raise GrammarError("relations with unclear grouping: write them as points, or in brackets")
    for group in groups:
        _check(group)
    return RelationValue(
        "or", tuple(group[0] if len(group) == 1 else RelationValue("and", tuple(group)) for group in groups)
    )


def _check(system: Sequence[RelationValue]) -> None:
    """Raises GrammarError if a system of equations gives one unknown two values."""
    named = [solved(relation) for relation in system]
    if None in named or len(set(named)) in (1, len(named)):
        return
    raise GrammarError("several values of one unknown in a system: write the solutions as points")


MAX_TERMS = 5_000
"""Maximum number of terms that dots expand to, in one text."""


def between(items: list[Value], last: Value) -> list[Value]:
    """Expands the dots of a list such as `1, 3, ..., 9`. Returns the terms after `items` up to and including `last`.
    Raises GrammarError unless the numbers determine one arithmetic progression."""
    numbers = plain_numbers((*items, last))
    if numbers is None:
        raise GrammarError("dots between items that are not plain numbers")
    *known, end = numbers
    steps = {after - before for before, after in pairwise(known)} or {Fraction(1)}
    if len(steps) != 1:
        raise GrammarError("dots after numbers with different steps")
    (step,) = steps
    if step == 0 or (end - known[-1]) / step < 1 or ((end - known[-1]) / step).denominator != 1:
        raise GrammarError("dots that do not lead to the number after them")
    count = int((end - known[-1]) / step)
    if count > MAX_TERMS:
        raise TooLargeError(f"dots for more than {MAX_TERMS} numbers")
    if len(known) == 2 and step != 1 and _multiplies(known, end):
        raise GrammarError("dots that may continue by adding or by multiplying: write a third number")
    return [Scalar(_written(known[-1] + step * index)) for index in range(1, count + 1)]


def _written(value: Fraction) -> Number | Negation:
    return Negation(Number(-value)) if value < 0 else Number(value)


def _multiplies(known: list[Fraction], end: Fraction) -> bool:
    """True if a geometric progression that begins with two given numbers also reaches `end`."""
    first, term = known
    if first == 0 or abs(term) <= abs(first):
        return False
    factor = term / first
    while abs(term) < abs(end):
        term *= factor
    return term == end


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
    """Reads all tokens as one answer of any kind. Raises GrammarError if that is not possible."""
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
    """Returns the different joiners between an answer's items. Raises GrammarError if commas and semicolons mix, unless
    all items are relations."""
    if {",", ";"} <= set(signs) and not all(isinstance(item, v.RelationValue) for item in found):
        raise reader.error(MIXED)
    return {sign for sign in signs if sign}


def joiner(reader: Reader) -> str:
    """Reads and returns the word or sign between two items of an answer; of `, and` only the word."""
    sign = reader.take().text
    if sign in CONNECTIVES:
        return CONNECTIVES[sign]
    return (reader.accept("and", "or") or sign) if sign in (",", ";") else sign


def run_on(reader: Reader, found: list[v.Value]) -> None:
    r"""Reads list dots and the item after them, as in `1, 2, \dots, 9`. Appends the terms that the dots stand for, and
    that item, to `found`."""
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
    r"""Reads one item of an answer; one that contains `\pm` is read twice, and gives an item for each sign."""
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
    """Reads a value and what a sign after it adds: an equation, a ratio, a membership."""
    if defines_function(reader):
        reader.called = reader.token.text
    first = event(reader) or operand(reader)
    infix = reader.language.infixes.get(reader.token.text) if reader.token.kind == "mark" else None
    return first if infix is None else infix(reader, first)


def member(reader: Reader, first: v.Value) -> v.Value:
    r"""Reads a statement of membership such as `x \in S` from its sign on. The left side must be a symbol or a tuple of
    symbols."""
    reader.take()
    if isinstance(first, v.Tuple) and is_name(first):
        return named_points(first, operand(reader, within=True), reader.error)
    if not (isinstance(first, v.Scalar) and isinstance(first.of, Symbol)):
        raise reader.error("only a symbol can be a member of a set here")
    return v.Builder(first.of.name, as_set(operand(reader, within=True), reader.error), None)


def operand(reader: Reader, *, within: bool = False) -> v.Value:
    """Reads a value, or sets joined by one operation such as union. With `within`, a set must follow, so that plain
    braces enclose one."""
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
    """Reads an expression and its unit. If a matrix or a list in brackets follows, the expression is its factor."""
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
    r"""Reads a list of numbers in brackets after its factor, as in `\frac13(2, -1, 2)`, and multiplies it out."""
    reader.take()
    found = [item.of for item in elements(reader) if isinstance(item, v.Scalar)]
    reader.expect(")")
    if length * len(found) > MAX_SCALED:
        raise TooLargeError("a long factor of a long list")
    return v.Tuple(tuple(v.Scalar(_times(node, entry)) for entry in found))


def _times(factor: Expression, entry: Expression) -> Expression:
    """Returns the product of two expressions, multiplied out if both are plain numbers or fractions."""
    product = Product((factor, entry))
    return folded(product) if all(map(_is_plain, product.factors)) else product


def _is_plain(node: Expression) -> bool:
    """True for a number in digits, or a fraction of two, with or without a sign."""
    match node:
        case Negation(of):
            return _is_plain(of)
        case Quotient(Number(), Number(below)):
            return below != 0
        case _:
            return isinstance(node, Number)


def elements(reader: Reader) -> list[v.Value]:
    """Reads the comma-separated values of a bracket and returns them; the closing bracket is left."""
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

"""Renames bound variables of an answer to those of the expected one: the x of `f(x) = x + 1`, the n of `a_n = 2n`.

Invariants: a name is bound only by the left side of an equation, as an argument or an index, or as the parameter
of solutions; all its occurrences are renamed, also in subscripts; no free variable is renamed or captured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

from verifiers.answers.algebra.rewriting import KNOWN
from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar import values as v
from verifiers.answers.grammar.lists import NODES
from verifiers.answers.grammar.nodes import Expression, substitute, symbols, walk
from verifiers.answers.grammar.rational import rational
from verifiers.answers.grammar.traverse import comparisons, expressions, free_symbols

LETTER = re.compile(r"[A-Za-z]+")
WHOLE = frozenset("klmnjNKM")
"""Letters that stand for any whole number in a solution such as `x = 2k pi`."""

LINE = frozenset({"t", "s", "r", "u", "lambda", "mu"})
"""Letters that stand for any real number in the points of a line such as `x = 1 + t, y = 2t`."""
INDEXES = frozenset("ijklmnpqr")
"""Letters that count the members of a sequence; `F_x` is a component."""

CONSTANT = re.compile(r"[ABCDKck](?:_[0-9])?")

Part = TypeVar("Part")
Head = tuple[str, tuple[str, ...]]
"""Name of a function or sequence, and the names that its definition binds."""


def renamed(part: Part, names: Mapping[str, str]) -> Part:
    """Returns a copy of a value in which symbols have other names, all at the same time; also within subscripts."""
    if isinstance(part, NODES):
        return n.mapped(part, lambda node: _renamed_symbol(node, names))  # type: ignore[return-value]
    if isinstance(part, tuple):
        return tuple(renamed(one, names) for one in part)  # type: ignore[return-value]
    if not is_dataclass(part) or isinstance(part, type):
        return part
    found = {one.name: renamed(getattr(part, one.name), names) for one in fields(part)}
    if isinstance(part, v.Builder | v.Images):
        found["symbol"] = names.get(part.symbol, part.symbol)
    return replace(part, **found)


def _renamed_symbol(node: Expression, names: Mapping[str, str]) -> Expression | None:
    if not isinstance(node, n.Symbol):
        return None
    letter, line, foot = node.name.partition("_")
    below = LETTER.sub(lambda found: names.get(found[0], found[0]), foot)
    return n.Symbol(names.get(node.name, letter + line + below))


def with_names_of(expected: v.Value, answer: v.Value) -> v.Value:
    """Renames the bound variables of an answer to those of the expected answer if both define the same function,
    sequence or family of solutions. Returns other answers unchanged."""
    heads = dict(_heads(answer))
    first = heads or _parameters(answer)
    if not first:
        return answer
    second = dict(_heads(expected)) if heads else _parameters(expected)
    bound, wanted = set(first.values()), set(second.values())
    if first.keys() != second.keys() or len(bound) != 1 or len(wanted) != 1:
        return answer
    (old,), (new,) = bound, wanted
    if old == new or len(old) != len(new) or (_names(answer) - {*old}) & {*new}:
        return answer
    return renamed(answer, dict(zip(old, new, strict=True)))


def other_constants(expected: v.RelationValue, answer: v.RelationValue) -> Iterator[v.RelationValue]:
    """Yields an answer with the letters of the expected one for its arbitrary constants, such as the C of `y = C e^x`.
    Yields nothing if other names differ, or no name is the same."""
    first, second = free_symbols(answer), free_symbols(expected)
    own, wanted = sorted(first - second), sorted(second - first)
    if first & second and 0 < len(own) == len(wanted) <= 2 and all(map(CONSTANT.fullmatch, (*own, *wanted))):
        for order in (wanted, wanted[::-1]):
            yield renamed(answer, dict(zip(own, order, strict=True)))


def _names(value: v.Value) -> set[str]:
    """Returns all names in a value, those within subscripts included."""
    nodes = [*expressions(value)]
    if isinstance(value, v.Named):
        nodes += expressions(value.name)
    found: set[str] = set()
    for part in (inside for node in nodes for inside in walk(node)):
        if isinstance(part, n.Symbol):
            found |= {part.name, *LETTER.findall(part.name.partition("_")[2])}
    return found


def _heads(value: v.Value) -> Iterator[Head]:
    """Yields the functions and sequences that a value defines."""
    if isinstance(value, v.Named):
        yield from _head(value.name.of if isinstance(value.name, v.Scalar) else None, _names(value.value))
    for part in comparisons(value):
        if part.relations == ("==",):
            yield from _head(part.operands[0], _names(v.Scalar(part.operands[1])))


def _head(left: Expression | None, used: set[str]) -> Iterator[Head]:
    match left:
        case n.FunctionCall(name, arguments) if name not in KNOWN:
            bound = tuple(one.name for one in arguments if isinstance(one, n.Symbol))
            if len(set(bound)) == len(arguments):
                yield name, bound
        case n.Symbol(name):
            letter, _, foot = name.partition("_")
            index = LETTER.findall(foot)
            if len(index) == 1 and index[0] in INDEXES and index[0] in used:
                yield letter + LETTER.sub("_", foot), tuple(index)
        case _:
            return


def _parameters(value: v.Value) -> dict[str, tuple[str, ...]]:
    """Returns each unknown with the parameter of solutions such as `x = pi/4 + k pi` or `x = 1 + t, y = 2t`; empty for
    other values."""
    sides = _solved_sides(value)
    used = symbols(*(right for _, right in sides)) - {unknown for unknown, _ in sides}
    if len(used) != 1:
        return {}
    (letter,) = used
    line = letter in LINE and len({unknown for unknown, _ in sides}) == len(sides) > 1
    turns = letter in WHOLE and all(_turns(right, letter) for _, right in sides)
    return {unknown: (letter,) for unknown, _ in sides} if line or turns else {}


def _solved_sides(value: v.Value) -> list[tuple[str, Expression]]:
    """Returns the unknowns of solved equations, or of a point, with their values; empty for other values."""
    match value:
        case v.Named(v.Tuple(names), v.Tuple(items)):
            points = [
                (name.of.name, item.of)
                for name, item in zip(names, items, strict=False)
                if isinstance(name, v.Scalar) and isinstance(name.of, n.Symbol) and isinstance(item, v.Scalar)
            ]
            return points if len(points) == len(items) == len(names) else []
        case v.RelationValue():
            parts = list(comparisons(value))
            solved = [part.operands for part in parts if part.relations == ("==",)]
            found = [(left.name, right) for left, right in solved if isinstance(left, n.Symbol)]
            return found if len(found) == len(parts) else []
        case _:
            return []


def _turns(right: Expression, letter: str) -> bool:
    """True if an expression rises by a rational multiple of pi with a letter."""
    step = n.minus(*(substitute(right, {letter: n.number(count)}) for count in (1, 0)))
    turned = n.mapped(step, lambda node: n.ONE if node == n.Constant("pi") else None)
    return turned != step and not symbols(turned) and rational(turned) is not None

"""Mutants of a right program, changed in one place: a comparison, operator, constant, boundary or statement.

Mutation testing after DeMillo, Lipton and Sayward, "Hints on test data selection" (Computer 11(4), 1978): tests that
cannot tell a program from its mutants cannot tell right from wrong. Pure; the source is the spec author's.
"""

from __future__ import annotations

import ast
import copy
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any, NamedTuple

from verifiers.contract.errors import SpecError
from verifiers.programs.data.values import parsed


class Change(NamedTuple):
    line: int
    what: str
    """Description of the change, like `a < b becomes a <= b`."""
    source: str


COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
OTHER_NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "sorted": "list",
    "floor": "ceil",
    "ceil": "floor",
}
Put = Callable[[ast.AST], None]
"""Replaces one node of a tree by another."""


def mutants(source: str) -> list[Change]:
    """Returns all distinct mutants of a Python source, each with one change, in source order. Raises SpecError for a
    source that is not Python."""
    try:
        tree = parsed(source, "exec")
    except SyntaxError as error:
        raise SpecError(f"the reference is not Python: {error}") from error
    seen = {ast.unparse(tree)}
    found = []
    for node, put in _places(tree):
        for other in _neighbours(node):
            put(other)
            text = ast.unparse(ast.fix_missing_locations(tree))
            put(node)
            if text not in seen:
                seen.add(text)
                what = f"{_line(ast.unparse(node))} becomes {_line(ast.unparse(other))}"
                found.append(Change(getattr(node, "lineno", 0), what, text))
    return sorted(found, key=lambda change: change.line)


def changes_in(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yields every syntax node that may change, with each node that may replace it. The tree stays as it is."""
    for node, _put in _places(tree):
        for other in _neighbours(node):
            yield node, other


def _places(tree: ast.AST) -> Iterator[tuple[ast.AST, Put]]:
    """Yields every syntax node that may change, outer ones first, with a setter for its place. Skips constants used as
    statements, because changing them has no effect."""
    parents = deque([tree])
    while parents:
        parent = parents.popleft()
        for name, value in ast.iter_fields(parent):
            slots: list[tuple[Any, Put]] = [(value, partial(setattr, parent, name))]
            if isinstance(value, list):
                slots = [(item, partial(value.__setitem__, place)) for place, item in enumerate(value)]
            for node, put in slots:
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    continue
                if isinstance(node, ast.AST):
                    yield node, put
                    parents.append(node)


def chosen(changes: list[Change], most: int, seed: int) -> list[Change]:
    """Returns at most `most` mutants, drawn uniformly, in source order."""
    if len(changes) <= most:
        return changes
    return sorted(Random(seed).sample(changes, most), key=lambda change: change.line)


def _line(text: str) -> str:
    first = text.split("\n")[0]
    return first if len(first) <= 60 and "\n" not in text else first[:57] + "..."


def _neighbours(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the syntax nodes that may replace a node in a mutant."""
    match node:
        case ast.Compare(ops=operators):
            for place, operator in enumerate(operators):
                for other in COMPARISONS[type(operator)]:
                    yield _with(node, ops=[*operators[:place], other(), *operators[place + 1 :]])
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in OPERATORS:
            yield _with(node, op=OPERATORS[type(operator)]())
            if isinstance(node, ast.AugAssign):
                yield ast.Pass()
        case ast.BoolOp(op=joined):
            yield _with(node, op=ast.Or() if isinstance(joined, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=value):
            yield from (_with(node, value=other) for other in _others(value))
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield _with(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.comprehension(ifs=[_, *_]):
            yield _with(node, ifs=[])
        case ast.Return(value=ast.expr()):
            yield ast.Return(ast.Constant(None))
        case ast.Assign() | ast.Raise() | ast.Expr(value=ast.Call()) | ast.Continue():
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()
        case ast.Call(func=ast.Name(id=name) as function) if name in OTHER_NAMES:
            yield _with(node, func=_with(function, id=OTHER_NAMES[name]))
        case ast.Call(func=ast.Name(id="abs" | "reversed" | "set" | "int" | "round"), args=[only], keywords=[]):
            yield only
        case ast.Call(func=ast.Attribute(attr=name) as function) if name in OTHER_NAMES:
            yield _with(node, func=_with(function, attr=OTHER_NAMES[name]))
        case ast.Subscript(value=whole, slice=ast.Slice()):
            yield whole
        case _:
            pass


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    """Copies a syntax node with these fields changed."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _others(value: object) -> list[object]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value - 1]
    if isinstance(value, str):
        return ["" if value else "x"]
    return []

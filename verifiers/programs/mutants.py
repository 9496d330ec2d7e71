"""Programs that differ from a right one in one place: a comparison, an operator, a constant, a boundary, a statement.

Mutation testing as of DeMillo, Lipton and Sayward, "Hints on test data selection" (Computer 11(4), 1978): tests that
cannot tell a program from its neighbours cannot tell right from wrong. Pure; the source is the spec author's.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from verifiers.errors import SpecError
from verifiers.programs.parsing import parsed


class Change(NamedTuple):
    line: int
    what: str
    """`a < b` becomes `a <= b`"""
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
Alter = Callable[[ast.AST], ast.AST | None]
"""Changes a node in place, or gives another one for it."""


def mutants(source: str) -> list[Change]:
    """All of them, in the order of the source; none twice. Raises SpecError for a source that is not Python."""
    try:
        tree = parsed(source, "exec")
    except SyntaxError as error:
        raise SpecError(f"the reference is not Python: {error}") from error
    original = ast.unparse(tree)
    seen = {original}
    found = []
    skipped = _docstrings(tree)
    for place, node in enumerate(ast.walk(tree)):
        if id(node) in skipped:
            continue
        for alter in _alterations(node):
            changed = copy.deepcopy(tree)
            target = next(one for number, one in enumerate(ast.walk(changed)) if number == place)
            before = ast.unparse(target)
            other = alter(target)
            if other is not None:
                _replace(changed, target, other)
            ast.fix_missing_locations(changed)
            text = ast.unparse(changed)
            if text not in seen:
                seen.add(text)
                after = ast.unparse(other if other is not None else target)
                found.append(Change(getattr(node, "lineno", 0), f"{_line(before)} becomes {_line(after)}", text))
    return sorted(found, key=lambda change: change.line)


def chosen(changes: list[Change], most: int, seed: int) -> list[Change]:
    """At most so many, drawn evenly, in the order of the source."""
    if len(changes) <= most:
        return changes
    return sorted(Random(seed).sample(changes, most), key=lambda change: change.line)


def _line(text: str) -> str:
    first = text.split("\n")[0]
    return first if len(first) <= 60 and "\n" not in text else first[:57] + "..."


def _docstrings(tree: ast.AST) -> set[int]:
    """Constants that are statements, with those statements: changing them changes nothing."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found |= {id(node), id(node.value)}
    return found


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
                return
            if isinstance(value, list):
                for place, item in enumerate(value):
                    if item is old:
                        value[place] = new
                        return


def _alterations(node: ast.AST) -> Iterator[Alter]:
    match node:
        case ast.Compare(ops=operators):
            for place, operator in enumerate(operators):
                for other in COMPARISONS[type(operator)]:
                    yield _set_comparison(place, other)
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in OPERATORS:
            yield _set_operator(OPERATORS[type(operator)])
            if isinstance(node, ast.AugAssign):
                yield lambda _: ast.Pass()
        case ast.BoolOp(op=operator_of):
            yield _set_operator(ast.Or if isinstance(operator_of, ast.And) else ast.And)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield lambda _: copy.deepcopy(operand)
        case ast.Constant(value=value):
            yield from (_constant(other) for other in _others(value))
        case ast.If() | ast.While() | ast.IfExp():
            yield _negate
        case ast.comprehension(ifs=[_, *_]):
            yield _drop_condition
        case ast.Return(value=ast.expr()):
            yield lambda _: ast.Return(ast.Constant(None))
        case ast.Assign() | ast.Raise() | ast.Expr(value=ast.Call()) | ast.Continue():
            yield lambda _: ast.Pass()
        case ast.Break():
            yield lambda _: ast.Continue()
        case ast.Call(func=ast.Name(id=name)) if name in OTHER_NAMES:
            yield _rename(OTHER_NAMES[name])
        case ast.Call(func=ast.Name(id="abs" | "reversed" | "set" | "int" | "round"), args=[only], keywords=[]):
            yield lambda _: copy.deepcopy(only)
        case ast.Call(func=ast.Attribute(attr=name)) if name in OTHER_NAMES:
            yield _rename(OTHER_NAMES[name])
        case ast.Subscript(slice=ast.Slice()):
            yield lambda found: found.value if isinstance(found, ast.Subscript) else None
        case _:
            pass


def _others(value: object) -> list[object]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value - 1]
    if isinstance(value, str):
        return ["" if value else "x"]
    return []


def _constant(value: object) -> Alter:
    def alter(node: ast.AST) -> ast.AST | None:
        assert isinstance(node, ast.Constant)
        node.value = value  # type: ignore[assignment]
        return None

    return alter


def _set_comparison(place: int, other: type[ast.cmpop]) -> Alter:
    def alter(node: ast.AST) -> ast.AST | None:
        assert isinstance(node, ast.Compare)
        node.ops[place] = other()
        return None

    return alter


def _set_operator(other: type[ast.operator] | type[ast.boolop]) -> Alter:
    def alter(node: ast.AST) -> ast.AST | None:
        node.op = other()  # type: ignore[attr-defined]
        return None

    return alter


def _negate(node: ast.AST) -> ast.AST | None:
    node.test = ast.UnaryOp(ast.Not(), node.test)  # type: ignore[attr-defined]
    return None


def _drop_condition(node: ast.AST) -> ast.AST | None:
    assert isinstance(node, ast.comprehension)
    node.ifs = []
    return None


def _rename(name: str) -> Alter:
    def alter(node: ast.AST) -> ast.AST | None:
        assert isinstance(node, ast.Call)
        if isinstance(node.func, ast.Name):
            node.func.id = name
        elif isinstance(node.func, ast.Attribute):
            node.func.attr = name
        return None

    return alter

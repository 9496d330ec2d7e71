"""Says whether a block of Python does nothing, by what does something: an allow-list over its syntax tree.

A call, an import, an assignment, a `return` of something by a function, `raise`, `assert`, a sum, a class that has
fields or methods or extends another, and an expression over names that the block defines. Empty definitions, literals
and names alone do nothing; nor does a sentence that happens to parse (`rain is not snow`).
"""

from __future__ import annotations

import ast
import builtins

DOES = (
    *(ast.Call, ast.Import, ast.ImportFrom, ast.Assign, ast.AugAssign, ast.NamedExpr, ast.Raise, ast.Assert),
    *(ast.Delete, ast.Yield, ast.YieldFrom, ast.Await, ast.BinOp, ast.comprehension),
)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
OVER_NAMES = (ast.Compare, ast.BoolOp, ast.Subscript, ast.Attribute, ast.FormattedValue)


def is_idle_python(tree: ast.Module) -> bool:
    """Whether nothing in it does or defines anything."""
    nodes = list(ast.walk(tree))
    within = {id(part) for node in nodes if isinstance(node, DEFINITIONS) for part in ast.walk(node)}
    known = set(dir(builtins)) | {name for node in nodes for name in _defined(node)}
    return not any(_does(node, known) for node in nodes if not isinstance(node, ast.Return) or id(node) in within)


def _does(node: ast.AST, known: set[str]) -> bool:
    if isinstance(node, DOES):
        return True
    if isinstance(node, ast.Return):
        return node.value is not None and not _is_constant(node.value, None, ...)
    if isinstance(node, ast.AnnAssign):
        return node.value is not None
    if isinstance(node, ast.ClassDef):
        return bool(node.bases) or any(isinstance(part, (ast.AnnAssign, ast.FunctionDef)) for part in node.body)
    if isinstance(node, OVER_NAMES):
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        return names <= known
    return False


def _is_constant(node: ast.expr, *values: object) -> bool:
    return isinstance(node, ast.Constant) and node.value in values


def _defined(node: ast.AST) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    if isinstance(node, ast.arg):
        return [node.arg]
    return [node.id] if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) else []

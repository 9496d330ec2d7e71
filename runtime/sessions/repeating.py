"""Says from the syntax what would end otherwise when a history is repeated, so that it runs where none is.

It sees what is plain to see: clocks, chance from the kernel, numbers of addresses, sets of values that are equal only
to themselves. In a process, what asks for clocks and chance all the same is caught when it does, and sets of such
values where they are kept (`runtime.guest.chance`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final

CLOCKS: Final = frozenset(["now", "today", "utcnow"])
CHANCE: Final = frozenset(["SystemRandom", "urandom", "getrandom"])
UNSEEDED: Final = "Random"
"""Of the kernel's numbers, where it is given no seed; those of numpy are not (`runtime.guest.seeds`)."""
ADDRESSES: Final = frozenset(["hash", "id"])
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def cannot_repeat(nodes: Sequence[ast.AST]) -> bool:
    """Looks at all nodes of a snippet."""
    if any(map(_depends, nodes)):
        return True
    if not any(map(_makes_a_set, nodes)):
        return False
    defined = {node.name for node in nodes if isinstance(node, Definition)}
    return any(_is_equal_only_to_itself(node, defined) for node in nodes)


def _depends(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[], keywords=[]) if name == UNSEEDED:
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in ADDRESSES | CHANCE
        case ast.Call(func=ast.Attribute(attr="datetime64"), args=[ast.Constant(value="now" | "today"), *_]):
            return True
        case ast.Attribute(attr=name):
            return name in CLOCKS | CHANCE or name == "__hash__"
        case _:
            return False


def _makes_a_set(node: ast.AST) -> bool:
    return isinstance(node, ast.Set | ast.SetComp) or (isinstance(node, ast.Name) and node.id in ("set", "frozenset"))


def _is_equal_only_to_itself(node: ast.AST, defined: set[str]) -> bool:
    """Says whether it makes such a value, or gathers some: NaN; functions, classes and what modules have; objects of a
    class that says nothing of equality, by itself, by a decorator or by what it inherits."""
    match node:
        case ast.Constant(value=str(text)):
            return text.lower() == "nan"
        case ast.Name(id="nan" | "NaN") | ast.Attribute(attr="nan" | "NaN"):
            return True
        case ast.ClassDef(bases=[], keywords=[], decorator_list=[], body=body):
            return not any(isinstance(inner, ast.FunctionDef) and inner.name == "__hash__" for inner in body)
        case ast.Set(elts=values):
            return any(_is_one(value) or isinstance(value, ast.Attribute) or _names(value, defined) for value in values)
        case ast.List(elts=values) | ast.Tuple(elts=values):
            return any(_is_one(value) or _names(value, defined) for value in values)
        case _:
            return False


def _is_one(value: ast.AST) -> bool:
    return isinstance(value, ast.Lambda) or (isinstance(value, ast.Constant) and value.value is None)


def _names(value: ast.AST, defined: set[str]) -> bool:
    return isinstance(value, ast.Name) and value.id in defined

"""Detects, from syntax, code whose replay could differ, so that it runs where no replay is needed.

Detects the obvious: clocks, kernel random numbers, address numbers, uninitialized memory, garbage collector callbacks,
sets of values compared by identity. In a process, remaining uses of clocks, random numbers and most addresses are
caught when they happen, and sets of such values when they are kept (`runtime.guest.chance`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final

CLOCKS: Final = frozenset(["now", "today", "utcnow"])
CHANCE: Final = frozenset(["SystemRandom", "urandom", "getrandom"])
UNSEEDED: Final = "Random"
"""Generator that draws from the kernel without a seed; numpy's do not (`runtime.guest.seeds`)."""
ADDRESSES: Final = frozenset(["hash", "id"])
PLACES: Final = frozenset(["__hash__", "__array_interface__", "ctypes", "data_ptr"])
"""Attributes that give, or lead to, an address."""
UNWRITTEN: Final = frozenset(["empty", "empty_like"])
"""Functions of numpy that return uninitialized arrays."""
COLLECTED: Final = "__del__"
"""Method whose call time depends on garbage collection."""
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def cannot_repeat(nodes: Sequence[ast.AST]) -> bool:
    """True if any node of a snippet may behave differently in a replay."""
    if any(map(_depends, nodes)) or _names_an_address(nodes):
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
            return name in CHANCE
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[_, *_]) if name in UNWRITTEN:
            return True
        case ast.FunctionDef(name=name) if name == COLLECTED:
            return True
        case ast.Call(func=ast.Attribute(attr="datetime64"), args=[ast.Constant(value="now" | "today"), *_]):
            return True
        case ast.Attribute(attr=name):
            return name in CLOCKS | CHANCE | PLACES
        case _:
            return False


def _names_an_address(nodes: Sequence[ast.AST]) -> bool:
    """True if a snippet calls `id` or `hash`, or reads one of these names without binding it."""
    read: set[str] = set()
    given: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in ADDRESSES:
                read.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                given.add(name)
    return bool(read - given) or any(_is_called(node) for node in nodes)


def _is_called(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ADDRESSES


def _makes_a_set(node: ast.AST) -> bool:
    return isinstance(node, ast.Set | ast.SetComp) or (isinstance(node, ast.Name) and node.id in ("set", "frozenset"))


def _is_equal_only_to_itself(node: ast.AST, defined: set[str]) -> bool:
    """True if a syntax node creates or collects values compared by identity.

    These are NaN; functions, classes and module attributes; objects of a class without its own equality, by itself, by
    a decorator or by inheritance.
    """
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

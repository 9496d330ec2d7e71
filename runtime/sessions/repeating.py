"""Says from the syntax what would end otherwise when a history is repeated, so that it runs where none is.

It sees what is plain to see: clocks, chance from the kernel, numbers of addresses, memory that nobody wrote to, what
the garbage collector calls, sets of values that are equal only to themselves. In a process, what asks for clocks,
chance and most addresses all the same is caught when it does, and sets of such values where they are kept
(`runtime.guest.chance`).
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
PLACES: Final = frozenset(["__hash__", "__array_interface__", "ctypes", "data_ptr"])
"""Attributes that give an address, or that lead to one."""
UNWRITTEN: Final = frozenset(["empty", "empty_like"])
"""Of numpy: arrays of whatever was in memory."""
COLLECTED: Final = "__del__"
"""When it is called depends on when garbage is collected."""
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def cannot_repeat(nodes: Sequence[ast.AST]) -> bool:
    """Looks at all nodes of a snippet."""
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
    """Says whether it has `id` or `hash`, called or not, where it gives these names to nothing itself."""
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

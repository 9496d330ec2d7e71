"""Plain data as the judge represents it: arguments of a program and its results.

A value is None, a bool, an int, a float, a complex number, text, bytes, a list or tuple of values, `DictPairs` for a
dictionary or `Elements` for a set. A candidate's dictionaries and sets are never built as such: their keys could be
chosen to collide. Invariants: nothing here evaluates text, and data beyond the depth or size limits raises
`NotPlainError`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from runtime.parsing import PARSING

TRIES = 5
MOST_DEPTH = 64
MOST_ITEMS = 3_000_000
LONG_BITS = 12_000
"""Integer size in bits above which hexadecimal is used: converting decimal digits takes quadratic time."""


class NotPlainError(ValueError):
    """Value that is not plain data, or too much of it; the message says which."""


@dataclass(frozen=True, slots=True)
class DictPairs:
    """A dictionary as pairs, in its order."""

    pairs: tuple[tuple[Value, Value], ...]


@dataclass(frozen=True, slots=True)
class Elements:
    """A set or frozen set; the order is irrelevant."""

    items: tuple[Value, ...]


Scalar: TypeAlias = bool | int | float | complex | str | bytes | None
Value: TypeAlias = "Scalar | list[Value] | tuple[Value, ...] | DictPairs | Elements"


class Arguments(NamedTuple):
    """Positional and named arguments of one call."""

    positional: tuple[Value, ...]
    named: tuple[tuple[str, Value], ...] = ()


def parsed(text: str, mode: Literal["exec", "eval"]) -> ast.AST:
    """Parses text by the author of a spec; a candidate's source is never parsed outside its sandbox. Raises SyntaxError
    for text that is not Python or exceeds the parser's limits."""
    for _ in range(TRIES):
        try:
            with PARSING:
                return ast.parse(text, mode=mode)
        except SystemError:  # another thread is parsing too
            continue
        except (ValueError, RecursionError, MemoryError) as error:
            raise SyntaxError(str(error)) from error
    raise SyntaxError("the parser broke")


def read(text: str) -> Value:
    """Parses a Python literal, including `nan`, `inf` and `set()`. Raises NotPlainError."""
    return _value(_parsed(text.strip()), 0)


def read_arguments(text: str) -> Arguments:
    """Parses the text between the parentheses of a call: `[1, 2], key=3`. Raises NotPlainError."""
    call = _parsed(f"call({text}\n)")
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise NotPlainError(f"not the arguments of a call: {text[:80]}")
    positional = tuple(_value(node, 0) for node in call.args)
    named: list[tuple[str, Value]] = []
    for keyword in call.keywords:
        if keyword.arg is None:
            raise NotPlainError("** is not supported: write the arguments out")
        if any(keyword.arg == name for name, _ in named):
            raise NotPlainError(f"the argument {keyword.arg} is given twice")
        named.append((keyword.arg, _value(keyword.value, 0)))
    return Arguments(positional, tuple(named))


def _parsed(text: str) -> ast.expr:
    try:
        tree = parsed(text, "eval")
    except SyntaxError as error:
        raise NotPlainError(f"not a Python literal: {text[:80]}") from error
    assert isinstance(tree, ast.Expression)
    return tree.body


def _value(node: ast.expr, depth: int) -> Value:
    if depth > MOST_DEPTH:
        raise NotPlainError(f"nested more than {MOST_DEPTH} deep")
    deeper = depth + 1
    match node:
        case ast.Constant(value=bool() | int() | float() | complex() | str() | bytes() | None as value):
            return value
        case ast.List(elts=items):
            return [_value(item, deeper) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_value(item, deeper) for item in items)
        case ast.Set(elts=items):
            return Elements(_distinct([_value(item, deeper) for item in items]))
        case ast.Dict(keys=keys, values=values) if None not in keys:
            names = _distinct([_value(key, deeper) for key in keys if key is not None])
            return DictPairs(tuple(zip(names, (_value(item, deeper) for item in values), strict=True)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            size = _value(operand, deeper)
            if isinstance(size, bool) or not isinstance(size, int | float | complex):
                raise NotPlainError("a minus sign before something that is not a number")
            return -size
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, deeper)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=ast.Constant(value=complex() as imaginary)):
            real = _value(left, deeper)
            if isinstance(real, int | float) and not isinstance(real, bool):
                return real + imaginary if isinstance(sign, ast.Add) else real - imaginary
        case ast.Name(id="nan"):
            return math.nan
        case ast.Name(id="inf"):
            return math.inf
        case ast.Call(func=ast.Name(id="set" | "frozenset"), args=[], keywords=[]):
            return Elements(())
        case ast.Call(func=ast.Name(id="frozenset"), args=[ast.Set() as inside], keywords=[]):
            return _value(inside, deeper)
        case _:
            pass
    raise NotPlainError(f"not plain data: {ast.unparse(node)[:80]}")


def _distinct(keys: list[Value]) -> tuple[Value, ...]:
    """Returns the keys of a dictionary or items of a set. Raises NotPlainError if two are equal, as 1 and True are."""
    if len({_native(key) for key in keys}) < len(keys):
        raise NotPlainError("duplicate dictionary key or set item")
    return tuple(keys)


def _native(key: Value) -> Hashable:
    """Converts a key to a hashable Python value. Raises NotPlainError for a value that cannot be a key."""
    match key:
        case list() | DictPairs():
            raise NotPlainError(f"a {kind_of(key)} cannot be a dictionary key or set item")
        case tuple():
            return tuple(map(_native, key))
        case Elements(items):
            return frozenset(map(_native, items))
        case _:
            return key


def literal(value: Value) -> str:
    """Returns Python source text of a value, given `nan` and `inf`. Sets and dictionaries are sorted, so that equal
    values have equal texts."""
    match value:
        case DictPairs(pairs):
            return "{" + ", ".join(sorted(f"{_hashable(key)}: {literal(item)}" for key, item in pairs)) + "}"
        case Elements(items):
            return "{" + ", ".join(sorted({_hashable(item) for item in items})) + "}" if items else "set()"
        case list():
            return "[" + ", ".join(map(literal, value)) + "]"
        case tuple():
            inside = ", ".join(map(literal, value))
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        case bool() | None:
            return str(value)
        case int():
            return hex(value) if value.bit_length() > LONG_BITS else str(value)
        case complex():
            return f"complex({value.real!r}, {value.imag!r})"
        case str():
            return ascii(value)
        case float() | bytes():
            return repr(value)


def _hashable(value: Value) -> str:
    """Source text of a set item or key: a set inside becomes a frozenset."""
    match value:
        case Elements(items):
            return f"frozenset({literal(value)})" if items else "frozenset()"
        case tuple():
            inside = ", ".join(map(_hashable, value))
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        case _:
            return literal(value)


def arguments_text(arguments: Arguments) -> str:
    """Renders arguments as written between the parentheses of a call."""
    return ", ".join(
        [*map(literal, arguments.positional), *(f"{name}={literal(value)}" for name, value in arguments.named)]
    )


def of_native(found: object, depth: int = 0) -> Value:
    """Converts Python containers that the judge itself made. Raises NotPlainError."""
    if depth > MOST_DEPTH:
        raise NotPlainError(f"nested more than {MOST_DEPTH} deep")
    deeper = depth + 1
    if found is None or isinstance(found, bool | int | float | complex | str | bytes):
        return found
    if isinstance(found, list):
        return [of_native(item, deeper) for item in found]
    if isinstance(found, dict):
        return DictPairs(tuple((of_native(key, deeper), of_native(item, deeper)) for key, item in found.items()))
    if isinstance(found, set | frozenset):
        return Elements(tuple(of_native(item, deeper) for item in found))
    if type(found) is tuple:
        return tuple(of_native(item, deeper) for item in found)
    raise NotPlainError(f"a {type(found).__name__} is not plain data")


def kind_of(value: Value) -> str:
    """Returns Python's name for the type of a value."""
    return {DictPairs: "dict", Elements: "set"}.get(type(value), type(value).__name__)

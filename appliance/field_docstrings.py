"""Reads what stands below each field of a settings model, from the model's source.

Pydantic can do that when a class is made, but then every command pays for reading source that one command shows.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from itertools import pairwise

from pydantic import BaseModel


@cache
def docstrings(shape: type[BaseModel]) -> Mapping[str, str]:
    """The docstring of each field that has one, by the field's name; a class's own counts before its parents'."""
    found: dict[str, str] = {}
    for one in reversed(shape.__mro__):
        if issubclass(one, BaseModel) and one is not BaseModel:
            found |= _below(_bodies(one.__module__).get(one.__name__, []))
    return found


@cache
def _bodies(module: str) -> Mapping[str, list[ast.stmt]]:
    """What stands in each class of a module, by the class's name."""
    source = inspect.getsource(sys.modules[module])
    return {one.name: one.body for one in ast.parse(source).body if isinstance(one, ast.ClassDef)}


def _below(body: list[ast.stmt]) -> dict[str, str]:
    found = {}
    for field, text in pairwise(body):
        named = isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.target.id
        if named and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            found[named] = inspect.cleandoc(str(text.value.value))
    return found

"""Which names a Python source defines, and which it uses and nobody defines. Pure; the source is the spec author's.

It errs towards defined: a name that is bound anywhere in the source counts as defined everywhere in it.
"""

from __future__ import annotations

import ast
import builtins
from typing import NamedTuple

OF_A_MODULE = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__", "__builtins__", "__class__", "solution"}


class SourceNames(NamedTuple):
    outermost: frozenset[str]
    """Defined at the top of the module."""
    unknown: tuple[str, ...]
    """Used, and bound nowhere, in the order of the source."""
    anything: bool
    """Whether names may come from elsewhere, and nothing can be said."""


def names_of(tree: ast.Module) -> SourceNames:
    bound: set[str] = set()
    used: dict[str, None] = {}
    anything = False
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used[name] = None
                anything = anything or name in ("exec", "globals", "locals", "vars")
            case ast.Name(id=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.arg(arg=name):
                bound.add(name)
            case ast.alias(name="*"):
                anything = True
            case ast.alias(name=name, asname=other):
                bound.add(other or name.partition(".")[0])
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                bound.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                bound.update(names)
            case _:
                pass
    unknown = tuple(name for name in used if name not in bound and name not in OF_A_MODULE)
    return SourceNames(frozenset(_outermost(tree.body)), unknown, anything)


def _outermost(body: list[ast.stmt]) -> set[str]:
    """What a module's own statements bind, those inside of conditions and loops too."""
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(statement.name)
            continue
        for node in ast.walk(statement):
            match node:
                case ast.Name(id=name, ctx=ast.Store()):
                    found.add(name)
                case ast.alias(name=name, asname=other):
                    found.add(other or name.partition(".")[0])
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    found.add(name)
                case _:
                    pass
    return found

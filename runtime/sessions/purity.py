"""Decides which tier a snippet needs, from its syntax, on the host, before anything runs.

The allow-list decides about sharing an interpreter, never about safety: all tiers are inside gVisor. It names what may
occur; whatever it does not name makes a snippet impure. What always holds: a pure snippet can only touch values of
built-in immutable types, containers of them and functions it defined itself, through names of its own session; it
reads no attribute but the listed methods of values and listed functions of modules, writes none, calls nothing through
which it could free what is still running, and cannot catch an interrupt. It is deterministic, so its history can be
repeated elsewhere.
"""

from __future__ import annotations

import ast
import builtins
import cmath
import itertools
import math
import re
import warnings
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from runtime.guest.shared import PURE_BUILTINS
from runtime.guest.worker import COMPUTE_MODULES as GUEST_MODULES
from runtime.parsing import PARSING
from runtime.sandbox import Tier

SOURCE_CHARS: Final = 2_000
BRACKETS: Final = 40
DEPTH: Final = 40
FILENAME: Final = "<snippet>"
PARSES: Final = 20
warnings.filterwarnings("ignore", module=re.escape(FILENAME))  # what a guest's source deserves is told to the guest


class Need(StrEnum):
    """Is what a snippet asks for. `broken` does not compile, so it can do nothing but raise SyntaxError."""

    PURE = "pure"
    BROKEN = "broken"
    COMPUTE = "compute"
    MACHINE = "machine"

    @property
    def tier(self) -> Tier:
        return {Need.COMPUTE: Tier.PROCESS, Need.MACHINE: Tier.SANDBOX}.get(self, Tier.SHARED)


BUILTINS: Final = frozenset(PURE_BUILTINS) | {"print"}
FORBIDDEN_NAMES: Final = frozenset(dir(builtins)) - BUILTINS
REENTRANT: Final = frozenset(["batched", "chain", "cycle", "groupby", "islice", "pairwise", "tee", "zip_longest"])
"""Of itertools: drop what they iterate over while it runs. Code that calls itself through one reads freed memory, and
freed memory is another session's (python/cpython#109786 for one)."""
MODULES: Final = {
    module.__name__: frozenset(name for name in dir(module) if not name.startswith("_")) - REENTRANT
    for module in (math, cmath, itertools)
}
METHOD_NAMES: Final = (
    # of str and bytes; never format, format_map (they read attributes), encode, decode, translate
    "capitalize casefold center count endswith find index isalnum isalpha isascii isdecimal isdigit islower isnumeric"
    " isspace istitle isupper join ljust lower lstrip partition removeprefix removesuffix replace rfind rindex rjust"
    " rpartition rsplit rstrip split splitlines startswith strip swapcase title upper zfill"
    # of list, dict and set
    " add append clear copy difference discard extend get insert intersection isdisjoint issubset issuperset items keys"
    " pop popitem remove reverse setdefault sort symmetric_difference union update values"
    # of numbers
    " as_integer_ratio bit_count bit_length conjugate denominator imag is_integer numerator real"
)
ATTRIBUTES: Final = frozenset(METHOD_NAMES.split()).union(*MODULES.values())
"""Allowed whatever the value is: none of them reaches another session's, the interpreter's or a module's state."""
NODES: Final = (
    ast.Module, ast.Expr, ast.Assign, ast.AugAssign, ast.Delete, ast.For, ast.While, ast.If, ast.Pass, ast.Break,
    ast.Continue, ast.Return, ast.Assert, ast.FunctionDef, ast.Lambda, ast.arguments, ast.arg, ast.Import,
    ast.ImportFrom, ast.alias, ast.BoolOp, ast.NamedExpr, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Dict, ast.Set,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.comprehension, ast.Compare, ast.Call, ast.keyword,
    ast.FormattedValue, ast.JoinedStr, ast.Constant, ast.Attribute, ast.Subscript, ast.Starred, ast.Name, ast.List,
    ast.Tuple, ast.Slice,
)  # fmt: skip
LEAVES: Final = frozenset(["ctx", "op", "ops", "kind", "conversion", "type_comment", "type_ignores"])
"""Fields whose nodes are all allowed (operators, contexts), or that hold none."""
WORDS: Final = {
    ast.Name: "id", ast.Attribute: "attr", ast.keyword: "arg", ast.FunctionDef: "name", ast.arg: "arg",
    ast.Constant: "value", ast.ImportFrom: "module level", ast.alias: "name asname",
    ast.comprehension: "is_async",
}  # fmt: skip
"""Fields that hold no node in these; each is looked at by the check of its node."""
CHILDREN: Final[dict[type, tuple[str, ...]]] = {
    node: tuple(name for name in node._fields if name not in LEAVES and name not in WORDS.get(node, "").split())
    for node in NODES
} | {type(None): ()}
"""Nothing stands for what was left out: a default, a key."""

COMPUTE_MODULES: Final = frozenset(GUEST_MODULES)
MACHINE_NAMES: Final = frozenset(["open", "input", "breakpoint", "exit", "quit"])


def classify(source: str, ready: frozenset[str] = frozenset()) -> Need:
    """Gives the least that this source needs, where a process has the modules in `ready` beside those of the standard
    library. Never raises: what cannot be decided needs more, not less."""
    if len(source) > SOURCE_CHARS or max(map(source.count, "([{")) > BRACKETS:
        return Need.COMPUTE if len(source) <= 50 * SOURCE_CHARS else Need.MACHINE
    return _decide(source, ready)


@lru_cache(maxsize=2_048)  # rollouts of one task often ask for the same
def _decide(source: str, ready: frozenset[str]) -> Need:
    try:
        tree = _parsed(source)
    except SyntaxError:
        return Need.BROKEN
    except (ValueError, RecursionError, MemoryError):
        return Need.COMPUTE
    if _is_pure(tree):
        return Need.PURE
    nodes = _nodes(tree)
    if nodes is None:
        return Need.COMPUTE
    return Need.MACHINE if any(_asks_for_a_machine(node, ready) for node in nodes) else Need.COMPUTE


def _parsed(source: str) -> ast.AST:
    """Parses one at a time: CPython 3.11 counts the depth of all trees that are being made together, and two threads
    that make one each can lose count (SystemError, "recursion depth mismatch"); others of this process may still be at
    it."""
    with PARSING:
        for _ in range(PARSES):
            with suppress(SystemError):
                tree: ast.AST = compile(source, FILENAME, "exec", ast.PyCF_ONLY_AST)
                return tree
    raise RecursionError("the tree cannot be made now")


def _is_pure(tree: ast.AST) -> bool:
    """Looks at every node once, without recursion. What is in no table is not pure, nor is a tree that is deeper than
    a pure snippet may be."""
    level: list[ast.AST] = [tree]
    stepped = False
    for _ in range(DEPTH):
        deeper: list[ast.AST] = []
        for node in level:
            kind = type(node)
            fields = CHILDREN.get(kind)
            if fields is None:
                return False
            check = CHECKS.get(kind)
            if check is not None and not check(node):
                return False
            stepped = stepped or kind is ast.Slice
            for name in fields:
                found = getattr(node, name)
                if type(found) is list:
                    deeper += found
                elif found is not None:
                    deeper.append(found)
        if not deeper:
            return not stepped or _stepped_slices_are_given_lists(list(ast.walk(tree)))
        level = deeper
    return False


def _nodes(tree: ast.AST) -> list[ast.AST] | None:
    """Lists all nodes, without recursion; None when the tree is too deep to be told."""
    found: list[ast.AST] = []
    level: list[ast.AST] = [tree]
    for _ in range(DEPTH):
        if not level:
            return found
        found += level
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return None


def _plain(name: str | None) -> bool:
    """Accepts a name that a session may bind or read: ASCII, no leading underscore, no builtin that is not pure."""
    return name is None or (name.isascii() and not name.startswith("_") and name not in FORBIDDEN_NAMES)


def _pure_call(node: ast.Call) -> bool:
    """`print` takes where to write as a keyword: in a shared interpreter it takes separators only."""
    called = node.func
    if type(called) is ast.Name:
        return called.id != "print" or all(keyword.arg in ("sep", "end") for keyword in node.keywords)
    return type(called) is ast.Attribute


def _pure_import_from(node: ast.ImportFrom) -> bool:
    known = MODULES.get(node.module or "", frozenset())
    return node.level == 0 and all(alias.name in known for alias in node.names)


def _pure_comparison(node: ast.Compare) -> bool:
    """Identity is asked of None only: of other values it depends on how the interpreter shares them."""
    return all(
        not isinstance(operator, (ast.Is, ast.IsNot)) or (isinstance(right, ast.Constant) and right.value is None)
        for operator, right in zip(node.ops, node.comparators, strict=True)
    )


CHECKS: Final[dict[type, Callable[[Any], bool]]] = {
    ast.comprehension: lambda node: not node.is_async,
    ast.Name: lambda node: _plain(node.id),
    ast.Attribute: lambda node: node.attr in ATTRIBUTES and type(node.ctx) is ast.Load,
    ast.Call: _pure_call,
    ast.keyword: lambda node: node.arg is not None and _plain(node.arg),
    ast.FunctionDef: lambda node: _plain(node.name) and not node.decorator_list and node.returns is None,
    ast.arg: lambda node: _plain(node.arg) and node.annotation is None,
    ast.Import: lambda node: all(alias.name in MODULES for alias in node.names),
    ast.ImportFrom: _pure_import_from,
    ast.alias: lambda node: _plain(node.asname),  # what is imported under it was looked at with its statement
    ast.Compare: _pure_comparison,
}
"""What else has to hold of a node of this type."""


def _stepped_slices_are_given_lists(nodes: list[ast.AST]) -> bool:
    """Says whether `x[::2] = ...` only ever takes a list that is complete before: of anything else CPython takes the
    items after it has measured `x`, and items that shorten `x` make it write past the end (python/cpython#120384)."""
    safe: set[int] = set()
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value) if _makes_a_list(value):
                safe.update(map(id, targets))
            case ast.AugAssign(target=target):
                safe.add(id(target))
    return all(id(node) in safe for node in nodes if _stores_with_a_step(node))


def _makes_a_list(value: ast.expr) -> bool:
    match value:
        case ast.List() | ast.ListComp():
            return True
        case ast.BinOp(left=left, op=ast.Mult() | ast.Add(), right=right):
            return _makes_a_list(left) or _makes_a_list(right)
        case _:
            return False


def _stores_with_a_step(node: ast.AST) -> bool:
    match node:
        case ast.Subscript(ctx=ast.Store(), slice=ast.Slice(step=step)):
            return step is not None
        case _:
            return False


def _asks_for_a_machine(node: ast.AST, ready: frozenset[str]) -> bool:
    """Guesses, which saves a detour: what it misses is caught by the filter of the process tier."""
    match node:
        case ast.Import(names=names):
            return any(_needs_a_file(alias.name, ready) for alias in names)
        case ast.ImportFrom(module=module):
            return _needs_a_file(module or "", ready)
        case ast.Name(id=name):
            return name in MACHINE_NAMES
        case _:
            return False


def _needs_a_file(module: str, ready: frozenset[str]) -> bool:
    top = module.partition(".")[0]
    return top not in COMPUTE_MODULES and top not in ready

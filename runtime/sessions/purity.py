"""Which tier a snippet needs, decided from its syntax on the host before anything runs.

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
from enum import StrEnum
from typing import Final

from runtime.guest.shared import PURE_BUILTINS
from runtime.guest.worker import COMPUTE_MODULES as GUEST_MODULES
from runtime.sandbox import Tier

SOURCE_CHARS: Final = 2_000
BRACKETS: Final = 40
DEPTH: Final = 40
FILENAME: Final = "<snippet>"
warnings.filterwarnings("ignore", module=re.escape(FILENAME))  # what a guest's source deserves is told to the guest


class Need(StrEnum):
    """What a snippet asks for. `broken` does not compile, so it can do nothing but raise SyntaxError."""

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
    ast.Tuple, ast.Slice, ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop,
)  # fmt: skip

COMPUTE_MODULES: Final = frozenset(GUEST_MODULES)
MACHINE_NAMES: Final = frozenset(["open", "input", "breakpoint", "exit", "quit"])


def classify(source: str) -> Need:
    """The least that this source needs. Never raises: what cannot be decided needs more, not less."""
    if len(source) > SOURCE_CHARS or max(map(source.count, "([{")) > BRACKETS:
        return Need.COMPUTE if len(source) <= 50 * SOURCE_CHARS else Need.MACHINE
    try:
        tree = ast.parse(source, FILENAME)
    except SyntaxError:
        return Need.BROKEN
    except (ValueError, RecursionError, MemoryError):
        return Need.COMPUTE
    nodes = _nodes(tree)
    if nodes is None:
        return Need.COMPUTE
    if all(_pure(node) for node in nodes) and _stepped_slices_are_given_lists(nodes):
        return Need.PURE
    return Need.MACHINE if any(_asks_for_a_machine(node) for node in nodes) else Need.COMPUTE


def _nodes(tree: ast.AST) -> list[ast.AST] | None:
    """All nodes, without recursion; None when the tree is deeper than a pure snippet may be."""
    found: list[ast.AST] = []
    level: list[ast.AST] = [tree]
    for _ in range(DEPTH):
        if not level:
            return found
        found += level
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return None


def _plain(name: str | None) -> bool:
    """A name that a session may bind or read: ASCII, no leading underscore, no builtin that is not pure."""
    return name is None or (name.isascii() and not name.startswith("_") and name not in FORBIDDEN_NAMES)


def _pure(node: ast.AST) -> bool:
    if not isinstance(node, NODES):
        return False
    match node:
        case ast.Name(id=name):
            return _plain(name)
        case ast.Attribute(attr=name, ctx=context):
            return name in ATTRIBUTES and isinstance(context, ast.Load)
        case ast.Call(func=called):
            return isinstance(called, (ast.Name, ast.Attribute)) and _keywords_are_pure(node)
        case ast.keyword(arg=name):
            return name is not None and _plain(name)
        case ast.FunctionDef():
            return _plain(node.name) and not node.decorator_list and node.returns is None and not _type_parameters(node)
        case ast.arg(arg=name, annotation=annotation):
            return _plain(name) and annotation is None
        case ast.Import(names=names):
            return all(alias.name in MODULES and _plain(alias.asname) for alias in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            known = MODULES.get(module or "", frozenset())
            return level == 0 and all(alias.name in known and _plain(alias.asname) for alias in names)
        case ast.Compare(ops=operators):
            return all(_comparable(node, place) for place in range(len(operators)))
        case _:
            return True


def _stepped_slices_are_given_lists(nodes: list[ast.AST]) -> bool:
    """Whether `x[::2] = ...` only ever takes a list that is complete before: of anything else CPython takes the items
    after it has measured `x`, and items that shorten `x` make it write past the end (python/cpython#120384)."""
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


def _keywords_are_pure(call: ast.Call) -> bool:
    """`print` takes where to write as a keyword: in a shared interpreter it takes separators only."""
    is_print = isinstance(call.func, ast.Name) and call.func.id == "print"
    return not is_print or all(keyword.arg in ("sep", "end") for keyword in call.keywords)


def _comparable(node: ast.Compare, place: int) -> bool:
    """Identity is asked of None only: of other values it depends on how the interpreter shares them."""
    if not isinstance(node.ops[place], (ast.Is, ast.IsNot)):
        return True
    right = node.comparators[place]
    return isinstance(right, ast.Constant) and right.value is None


def _type_parameters(node: ast.FunctionDef) -> bool:
    return bool(getattr(node, "type_params", None))


def _asks_for_a_machine(node: ast.AST) -> bool:
    """A guess that saves a detour: what it misses is caught by the filter of the process tier."""
    match node:
        case ast.Import(names=names):
            return any(alias.name.partition(".")[0] not in COMPUTE_MODULES for alias in names)
        case ast.ImportFrom(module=module):
            return (module or "").partition(".")[0] not in COMPUTE_MODULES
        case ast.Name(id=name):
            return name in MACHINE_NAMES
        case _:
            return False

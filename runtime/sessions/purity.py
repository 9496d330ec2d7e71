"""Determines the tier that a snippet needs, from its syntax, on the host, before anything runs.

The allow-list decides about sharing an interpreter, never about safety: all tiers are inside gVisor. It names what may
occur; anything else makes a snippet impure. docs/sandboxes.md describes the language of pure snippets:

    - Values are numbers, texts, None, lists, tuples, dictionaries, and functions of `math` and `cmath`. Snippets define
      no functions, classes or generators, so C never calls back into Python.
    - Names of builtins and modules always mean those, and appear only where called or read from: they are never bound
      and never values. Methods are listed, and appear only where called.
    - An iterator, a view of a dictionary and a generator expression appear only where they are consumed: nothing can
      reach them while they run, or afterwards.

Invariants: such a snippet touches only values that it made, through names of its own session, and cannot catch an
interrupt. It is deterministic, so its history can be replayed elsewhere.
"""

from __future__ import annotations

import ast
import builtins
import cmath
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
from runtime.sessions.repeating import cannot_repeat

SOURCE_CHARS: Final = 2_000
BRACKETS: Final = 40
DEPTH: Final = 40
FILENAME: Final = "<snippet>"
PARSES: Final = 20
warnings.filterwarnings("ignore", module=re.escape(FILENAME))  # the guest gets its own warnings


class Need(StrEnum):
    """Isolation that a snippet requires. `broken` does not compile, so it can only raise SyntaxError."""

    PURE = "pure"
    BROKEN = "broken"
    COMPUTE = "compute"
    MACHINE = "machine"

    @property
    def tier(self) -> Tier:
        return {Need.COMPUTE: Tier.PROCESS, Need.MACHINE: Tier.SANDBOX}.get(self, Tier.SHARED)


BUILTINS: Final = frozenset(PURE_BUILTINS) | {"print"}
FORBIDDEN_NAMES: Final = frozenset(dir(builtins)) - BUILTINS
ITERATORS: Final = frozenset(["enumerate", "map", "zip"])
VIEWS: Final = frozenset(["items", "keys", "values"])
"""Methods whose results appear only where iterators do: operators would turn them into sets."""
CONSUMERS: Final = frozenset(["all", "any", "list", "max", "min", "sorted", "sum", "tuple"])
"""Functions that consume their first argument and hide intermediate results."""
CONSUMING_METHODS: Final = frozenset(["fsum", "join", "prod"])
MAPPED: Final = BUILTINS - ITERATORS - {"print"}
MODULES: Final = {
    module.__name__: frozenset(name for name in dir(module) if not name.startswith("_")) for module in (math, cmath)
}
METHOD_NAMES: Final = (
    # of str; never format, format_map (they read attributes), encode, translate
    "capitalize casefold center count endswith find index isalnum isalpha isascii isdecimal isdigit islower isnumeric"
    " isspace istitle isupper join ljust lower lstrip partition removeprefix removesuffix replace rfind rindex rjust"
    " rpartition rsplit rstrip split splitlines startswith strip swapcase title upper zfill"
    # of list and dict
    " append clear copy extend get insert items keys pop popitem remove reverse setdefault sort update values"
    # of numbers
    " as_integer_ratio bit_count bit_length conjugate is_integer"
)
METHODS: Final = frozenset(METHOD_NAMES.split()).union(*MODULES.values())
"""Methods callable on any value: none reaches the state of another session, the interpreter or a module."""
DATA: Final = frozenset(["real", "imag", "numerator", "denominator", "pi", "e", "tau", "inf", "nan"])
"""Readable attributes."""
KEYWORDS: Final = frozenset(
    ["base", "default", "end", "keepends", "maxsplit", "ndigits", "reverse", "sep", "start", "strict"]
)
CONSTANTS: Final = (int, float, complex, str, type(None))
NODES: Final = (
    ast.Module, ast.Expr, ast.Assign, ast.AugAssign, ast.Delete, ast.For, ast.While, ast.If, ast.Pass, ast.Break,
    ast.Continue, ast.Assert, ast.Import, ast.ImportFrom, ast.alias, ast.BoolOp, ast.NamedExpr, ast.BinOp, ast.UnaryOp,
    ast.IfExp, ast.Dict, ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.comprehension, ast.Compare, ast.Call,
    ast.keyword, ast.FormattedValue, ast.JoinedStr, ast.Constant, ast.Attribute, ast.Subscript, ast.Starred, ast.Name,
    ast.List, ast.Tuple, ast.Slice,
)  # fmt: skip
LEAVES: Final = frozenset(["ctx", "op", "ops", "kind", "conversion", "type_comment", "type_ignores"])
"""Fields whose nodes are all allowed (operators, contexts), or that contain none."""
WORDS: Final = {
    ast.Name: "id", ast.Attribute: "attr", ast.keyword: "arg", ast.Constant: "value", ast.ImportFrom: "module level",
    ast.alias: "name asname", ast.comprehension: "is_async",
}  # fmt: skip
"""Fields without nodes, each inspected by its node's check."""
CHILDREN: Final[dict[type, tuple[str, ...]]] = {
    node: tuple(name for name in node._fields if name not in LEAVES and name not in WORDS.get(node, "").split())
    for node in NODES
} | {type(None): ()}
"""Fields to visit by node type; None is the key of a `**` entry in a dictionary."""

COMPUTE_MODULES: Final = frozenset(GUEST_MODULES)
MACHINE_NAMES: Final = frozenset(["open", "input", "breakpoint", "exit", "quit"])


def classify(source: str, ready: frozenset[str] = frozenset()) -> Need:
    """Returns the least isolation that Python source requires, given the modules in `ready` beside the standard
    library. Never raises: undecidable source needs more, not less."""
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
    machine = any(_asks_for_a_machine(node, ready) for node in nodes) or cannot_repeat(nodes)
    return Need.MACHINE if machine else Need.COMPUTE


def _parsed(source: str) -> ast.AST:
    """Parses Python source under the parser lock, with retries.

    CPython 3.11 counts the depth of concurrently built trees together, so two threads can lose count (SystemError,
    "recursion depth mismatch"); other threads may parse without the lock.
    """
    with PARSING:
        for _ in range(PARSES):
            with suppress(SystemError):
                tree: ast.AST = compile(source, FILENAME, "exec", ast.PyCF_ONLY_AST)
                return tree
    raise RecursionError("the tree cannot be made now")


def _is_pure(tree: ast.AST) -> bool:
    """True if the syntax tree has only allowed nodes, each in an allowed place. Visits every node once, without
    recursion, parents first; a tree deeper than `DEPTH` is not pure."""
    level: list[ast.AST] = [tree]
    places = _Places()
    for _ in range(DEPTH):
        deeper: list[ast.AST] = []
        for node in level:
            kind = type(node)
            fields = CHILDREN.get(kind)
            if fields is None:
                return False
            check = CHECKS.get(kind)
            if check is not None and not check(node, places):
                return False
            for name in fields:
                found = getattr(node, name)
                if type(found) is list:
                    deeper += found
                elif found is not None:
                    deeper.append(found)
        if not deeper:
            return True
        level = deeper
    return False


class _Places:
    """Nodes of a syntax tree's lower levels that stand where more is allowed, such as called functions."""

    def __init__(self) -> None:
        self.called: set[int] = set()
        self.read_from: set[int] = set()
        """Values of attributes."""
        self.mapped: set[int] = set()
        """Functions passed to `map`."""
        self.iterated: set[int] = set()
        """Iterables consumed immediately, by C or by a loop."""
        self.consumed: set[int] = set()
        """Consumed iterables that may be generator expressions."""


def _nodes(tree: ast.AST) -> list[ast.AST] | None:
    """Returns all nodes of a syntax tree, level by level; None if the tree is too deep."""
    found: list[ast.AST] = []
    level: list[ast.AST] = [tree]
    for _ in range(DEPTH):
        if not level:
            return found
        found += level
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return None


def _plain(name: str | None) -> bool:
    """True for a name that a session may bind or read: ASCII, no leading underscore, no impure builtin."""
    return name is None or (name.isascii() and not name.startswith("_") and name not in FORBIDDEN_NAMES)


def _bindable(name: str) -> bool:
    return _plain(name) and name not in BUILTINS and name not in MODULES


def _pure_name(node: ast.Name, at: _Places) -> bool:
    name, place = node.id, id(node)
    if type(node.ctx) is not ast.Load:
        return _bindable(name)
    if name in MODULES:
        return place in at.read_from
    if name in BUILTINS:
        return place in at.called or (place in at.mapped and name in MAPPED)
    return _plain(name) and place not in at.mapped


def _pure_attribute(node: ast.Attribute, at: _Places) -> bool:
    at.read_from.add(id(node.value))
    return type(node.ctx) is ast.Load and node.attr in (METHODS if id(node) in at.called else DATA)


def _pure_call(node: ast.Call, at: _Places) -> bool:
    """True if a call of a function is pure. `print` may only get separators: `file` would write elsewhere."""
    called, arguments = node.func, node.args
    at.called.add(id(called))
    if type(called) is ast.Attribute:
        if called.attr in CONSUMING_METHODS:
            at.consumed.update(map(id, arguments[:1]))
        return called.attr not in VIEWS or id(node) in at.iterated or id(node) in at.consumed
    if type(called) is not ast.Name:
        return False
    if called.id in ITERATORS:
        if called.id == "map":
            at.mapped.update(map(id, arguments[:1]))
        at.iterated.update(map(id, arguments))
        return id(node) in at.iterated or id(node) in at.consumed
    if called.id in CONSUMERS:
        at.consumed.update(map(id, arguments[:1]))
    elif called.id in ("dict", "len"):
        at.iterated.update(map(id, arguments))
    return called.id != "print" or all(keyword.arg in ("sep", "end") for keyword in node.keywords)


def _pure_loop(node: ast.For | ast.comprehension, at: _Places) -> bool:
    at.iterated.add(id(node.iter))
    return not getattr(node, "is_async", 0)


def _pure_assignment(node: ast.Assign, at: _Places) -> bool:
    if all(isinstance(target, (ast.Tuple, ast.List)) for target in node.targets):
        at.iterated.add(id(node.value))
    return True


def _pure_star(node: ast.Starred, at: _Places) -> bool:
    at.iterated.add(id(node.value))
    return True


def _pure_import(node: ast.Import, _at: _Places) -> bool:
    return all(alias.name in MODULES and alias.asname is None for alias in node.names)


def _pure_import_from(node: ast.ImportFrom, _at: _Places) -> bool:
    known = MODULES.get(node.module or "", frozenset())
    return node.level == 0 and all(
        alias.name in known and _bindable(alias.asname or alias.name) for alias in node.names
    )


def _pure_comparison(node: ast.Compare, at: _Places) -> bool:
    """True if a comparison is pure: identity tests with anything but None depend on interpreter sharing."""
    if isinstance(node.ops[-1], (ast.In, ast.NotIn)):
        at.iterated.add(id(node.comparators[-1]))
    return all(
        not isinstance(operator, (ast.Is, ast.IsNot)) or (isinstance(right, ast.Constant) and right.value is None)
        for operator, right in zip(node.ops, node.comparators, strict=True)
    )


def _pure_subscript(node: ast.Subscript, _at: _Places) -> bool:
    """True if a subscript is pure. Assigning to an extended slice is not: CPython takes the items after measuring `x`
    (python/cpython#120384)."""
    return type(node.ctx) is ast.Load or not (isinstance(node.slice, ast.Slice) and node.slice.step is not None)


CHECKS: Final[dict[type, Callable[[Any, _Places], bool]]] = {
    ast.Assign: _pure_assignment,
    ast.Attribute: _pure_attribute,
    ast.Call: _pure_call,
    ast.Compare: _pure_comparison,
    ast.Constant: lambda node, _at: isinstance(node.value, CONSTANTS),
    ast.For: _pure_loop,
    ast.GeneratorExp: lambda node, at: id(node) in at.consumed,
    ast.Import: _pure_import,
    ast.ImportFrom: _pure_import_from,
    ast.Name: _pure_name,
    ast.Starred: _pure_star,
    ast.Subscript: _pure_subscript,
    ast.comprehension: _pure_loop,
    ast.keyword: lambda node, _at: node.arg in KEYWORDS,
}
"""Additional condition by node type."""


def _asks_for_a_machine(node: ast.AST, ready: frozenset[str]) -> bool:
    """True if a syntax node probably needs a separate sandbox. This only saves a detour: misses are caught by the
    filter of the process tier, which also has no clock."""
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

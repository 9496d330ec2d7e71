"""The graph of who imports whom in the product, and its circles: delayed imports and those for types count, too."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("appliance", "common", "curriculum", "policies", "runtime", "tui", "verifiers")


@cache
def parsed(path: Path) -> ast.Module:
    """Its syntax tree, for all tests that look at the product's files. It stays to the end: looking through the trees
    for garbage, while there come to be more of them, would take three times as long as making them."""
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.freeze()
        gc.enable()


@cache
def statements(path: Path) -> tuple[ast.AST, ...]:
    """All its statements, those in functions too, and what catches exceptions; expressions, which are most of a tree,
    are not looked through."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = [parsed(path)]
    while waiting:
        node = waiting.pop()
        found.append(node)
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            inner = getattr(node, part, ())
            if isinstance(inner, list):
                waiting += inner
    return tuple(found)


def import_statements(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Those in its functions too."""
    return tuple(node for node in statements(path) if isinstance(node, ast.Import | ast.ImportFrom))


def modules() -> dict[str, Path]:
    """Every module of the product by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "canaries" in path.parent.parts:  # submissions, kept as files
                continue
            found[".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")] = path
    return found


def files() -> dict[str, frozenset[str]]:
    """What each module imports of the product."""
    known = modules()
    return {name: frozenset(_imported(path, known)) - {name} for name, path in known.items()}


def folders() -> dict[str, frozenset[str]]:
    """What each folder imports of other folders; the modules at a package's root are a folder of their own."""
    known = modules()
    found: dict[str, set[str]] = {}
    for name, others in files().items():
        own = _folder(known[name])
        found.setdefault(own, set()).update(_folder(known[other]) for other in others)
    return {name: frozenset(others - {name}) for name, others in found.items()}


def circles(graph: Mapping[str, frozenset[str]]) -> list[list[str]]:
    """Groups of nodes that reach each other (Tarjan 1972), each sorted; none in a graph without circles."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in graph:
        if node not in number:
            visit(node)
    return found


def _imported(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            while name and name not in known:
                name = name.rpartition(".")[0]
            if name:
                yield name


def _folder(path: Path) -> str:
    return path.parent.relative_to(ROOT).as_posix()

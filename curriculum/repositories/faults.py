"""Faults for a repository's sources: changed operators, swapped calls, removed bodies, and several of these. Pure.

Invariants: a fault changes the text of one place, or the body of one function; everything else keeps its layout and
comments. Faults of a source come in an order that a seed decides. A removed body keeps its docstring.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

from verifiers.programs.data.mutants import changes_in

MOST_BODY_LINES = 60


class Fault(NamedTuple):
    kind: str
    """`operator`, `call`, `body`, `commit` or `combined`."""
    files: Mapping[str, str]
    """Faulty texts by path."""
    functions: tuple[str, ...] = ()
    """Places of the fault: `module.Class.function`."""
    docstring: str = ""
    """Docstring of the function to write."""
    signature: str = ""


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def faults_in(path: str, source: str, seed: str) -> Iterator[Fault]:
    """Yields the faults of one small change in a source, in an order drawn from the seed."""
    tree = _parsed(source)
    if tree is None:
        return
    data = source.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    pairs = []
    for name, node in _functions(tree.body, module_of(path)):
        pairs += [(name, one, other, "call") for one, other in _swapped(node)]
        pairs += [(name, one, other, "operator") for one, other in changes_in(node)]
    Random(f"{seed} {path}").shuffle(pairs)
    for name, one, other, kind in pairs:
        text = _put(data, starts, one, other)
        if text is not None and text != source:
            yield Fault(kind, {path: text}, (name,))


def bodies_in(path: str, source: str) -> Iterator[Fault]:
    """Yields a fault for each documented function whose body can be written from its docstring."""
    tree = _parsed(source)
    if tree is None:
        return
    lines = source.splitlines(keepends=True)
    for name, node in _functions(tree.body, module_of(path)):
        docstring = ast.get_docstring(node)
        if not docstring or len(docstring) < 20 or len(node.body) < 2:
            continue
        first, last = node.body[1].lineno, node.end_lineno or node.lineno
        if not 2 <= last - first + 1 <= MOST_BODY_LINES or node.body[0].end_lineno == first:
            continue
        stub = f'{" " * node.body[1].col_offset}raise RuntimeError("{node.name} is not written yet")\n'
        text = "".join([*lines[: (node.body[0].end_lineno or first)], stub, *lines[last:]])
        shell = copy.copy(node)
        shell.body, shell.decorator_list = [ast.Pass()], []
        signature = ast.unparse(shell).rpartition("\n")[0].strip()
        yield Fault("body", {path: text}, (name,), docstring, signature)


def combined(faults: Sequence[Fault]) -> Fault:
    """Joins faults in different files into one."""
    files = {path: text for fault in faults for path, text in fault.files.items()}
    return Fault("combined", files, tuple(name for fault in faults for name in fault.functions))


def reverted(path: str, source: str, before: str, after: str) -> Iterator[Fault]:
    """Yields a fault for each function of a source that a commit gave its present text: the text it had before."""
    trees = [_parsed(text) for text in (source, before, after)]
    if None in trees:
        return
    now, old, new = ({name: node for name, node in _functions(tree.body, module_of(path))} for tree in trees if tree)
    for name in now.keys() & old.keys() & new.keys():
        texts = [_text_of(text, one[name]) for text, one in ((source, now), (before, old), (after, new))]
        if texts[0] == texts[2] != texts[1] and ast.dump(now[name]) != ast.dump(old[name]):
            lines = source.splitlines(keepends=True)
            lines[now[name].lineno - 1 : now[name].end_lineno] = [texts[1]]
            yield Fault("commit", {path: "".join(lines)}, (name,))


def module_of(path: str) -> str:
    """Returns the import name of a source file."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".").removeprefix("src.").removeprefix("lib.")


def _text_of(source: str, node: _Function) -> str:
    return "".join(source.splitlines(keepends=True)[node.lineno - 1 : node.end_lineno])


def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _functions(body: Sequence[ast.stmt], above: str) -> Iterator[tuple[str, _Function]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{above}.{node.name}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{above}.{node.name}", node
        elif isinstance(node, ast.If | ast.Try):
            yield from _functions(node.body, above)


def _swapped(function: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yields calls with their first two arguments exchanged, and calls of one method in place of another."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        if len(node.args) >= 2 and not any(isinstance(one, ast.Starred) for one in node.args[:2]):
            yield node, _with_arguments(node, [node.args[1], node.args[0], *node.args[2:]])
        other = OTHER_METHODS.get(node.func.attr) if isinstance(node.func, ast.Attribute) else None
        if other and isinstance(node.func, ast.Attribute):
            changed = copy.copy(node)
            changed.func = ast.Attribute(node.func.value, other, ast.Load())
            yield node, changed


OTHER_METHODS = {"append": "extend", "lstrip": "rstrip", "rstrip": "lstrip", "lower": "upper", "upper": "lower",
                 "startswith": "endswith", "endswith": "startswith", "find": "rfind", "rfind": "find",
                 "split": "rsplit", "rsplit": "split", "partition": "rpartition", "rpartition": "partition",
                 "add": "discard", "update": "difference_update", "keys": "values", "values": "keys",
                 "popitem": "copy", "isdigit": "isalpha", "isalpha": "isdigit", "match": "search", "search": "match",
                 "pop": "get", "union": "intersection", "intersection": "union", "min": "max", "max": "min"}  # fmt: skip


def _with_arguments(node: ast.Call, arguments: list[ast.expr]) -> ast.Call:
    changed = copy.copy(node)
    changed.args = arguments
    return changed


def _put(data: bytes, starts: Sequence[int], node: ast.AST, other: ast.AST) -> str | None:
    """Returns the source with one node replaced in its place; None if the place cannot be named or does not parse."""
    if isinstance(node, ast.If | ast.While) and isinstance(other, ast.If | ast.While):
        node, other = node.test, other.test
    if not isinstance(node, ast.expr | ast.stmt) or node.end_lineno is None or node.end_col_offset is None:
        return None
    first = starts[node.lineno - 1] + node.col_offset
    last = starts[node.end_lineno - 1] + node.end_col_offset
    try:
        text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(other)))
        wrapped = (data[:first] + f"({text})".encode() + data[last:]).decode() if isinstance(node, ast.expr) else ""
        made = (data[:first] + text.encode() + data[last:]).decode()
        if wrapped and ast.dump(ast.parse(wrapped)) != ast.dump(ast.parse(made)):
            return wrapped
        ast.parse(made)
    except (SyntaxError, ValueError, AttributeError):
        return None
    return made

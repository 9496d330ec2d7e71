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


class FaultyFunction(NamedTuple):
    name: str
    """`module.Class.function`."""
    place: str
    """Its path and its name there: `folder/module.py Class.function`."""


class RepositoryFault(NamedTuple):
    kind: str
    """`operator`, `call`, `body`, `commit` or `combined`."""
    files: Mapping[str, str]
    """Faulty texts by path."""
    functions: tuple[FaultyFunction, ...] = ()
    """Functions that the fault changes."""
    docstring: str = ""
    """Docstring of the function to write."""
    signature: str = ""


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def faults_in(path: str, source: str, seed: str) -> Iterator[RepositoryFault]:
    """Yields the faults of one small change in a source, in an order drawn from the seed."""
    tree = _parsed(source)
    if tree is None:
        return
    data = source.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    pairs = []
    for name, node in _functions(tree.body, ""):
        body = ast.Module(node.body, [])
        pairs += [(name, one, other, "call") for one, other in _swapped(body)]
        pairs += [(name, one, other, "operator") for one, other in changes_in(body)]
    Random(f"{seed} {path}").shuffle(pairs)
    for name, one, other, kind in pairs:
        text = _put(data, starts, one, other)
        if text is not None and text != source:
            yield RepositoryFault(kind, {path: text}, (_function(path, name),))


def bodies_in(path: str, source: str) -> Iterator[RepositoryFault]:
    """Yields a fault for each documented function whose body can be written from its docstring."""
    tree = _parsed(source)
    if tree is None:
        return
    lines = source.splitlines(keepends=True)
    for name, node in _functions(tree.body, ""):
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
        yield RepositoryFault("body", {path: text}, (_function(path, name),), docstring, signature)


def combined(faults: Sequence[RepositoryFault]) -> RepositoryFault:
    """Joins faults in different files into one."""
    files = {path: text for fault in faults for path, text in fault.files.items()}
    return RepositoryFault("combined", files, tuple(name for fault in faults for name in fault.functions))


def reverted(path: str, source: str, before: str, after: str) -> Iterator[RepositoryFault]:
    """Yields a fault for each function of a source that a commit gave its present text: the text it had before."""
    trees = [_parsed(text) for text in (source, before, after)]
    if None in trees:
        return
    now, old, new = (dict(_functions(tree.body, "")) for tree in trees if tree)
    for name in now.keys() & old.keys() & new.keys():
        texts = [_text_of(text, one[name]) for text, one in ((source, now), (before, old), (after, new))]
        if texts[0] == texts[2] != texts[1] and ast.dump(now[name]) != ast.dump(old[name]):
            lines = source.splitlines(keepends=True)
            lines[now[name].lineno - 1 : now[name].end_lineno] = [texts[1]]
            yield RepositoryFault("commit", {path: "".join(lines)}, (_function(path, name),))


def _function(path: str, name: str) -> FaultyFunction:
    module = (
        path.removesuffix(".py").removesuffix("/__init__").replace("/", ".").removeprefix("src.").removeprefix("lib.")
    )
    return FaultyFunction(f"{module}.{name}", f"{path} {name}")


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
            yield from _functions(node.body, f"{above}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{above}{node.name}", node
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
                 "pop": "get", "union": "intersection", "intersection": "union"}  # fmt: skip


def _with_arguments(node: ast.Call, arguments: list[ast.expr]) -> ast.Call:
    changed = copy.copy(node)
    changed.args = arguments
    return changed


def _is_swap(node: ast.Call, other: ast.Call) -> bool:
    return len(node.args) > 1 and other.args[:2] == [node.args[1], node.args[0]]


def _put(data: bytes, starts: Sequence[int], node: ast.AST, other: ast.AST) -> str | None:
    """Returns the source with one node replaced in its place; None if the place cannot be named or does not parse."""
    if isinstance(node, ast.If | ast.While) and isinstance(other, ast.If | ast.While):
        return _put(data, starts, node.test, other.test)
    if not isinstance(node, ast.expr | ast.stmt) or node.end_lineno is None or node.end_col_offset is None:
        return None
    spans = {}
    for one in ast.walk(node):
        if isinstance(one, ast.expr | ast.stmt):
            end = starts[(one.end_lineno or 1) - 1] + (one.end_col_offset or 0)
            spans[id(one)] = (starts[one.lineno - 1] + one.col_offset, end)
    first, last = spans[id(node)]
    try:
        if (token := _token(data, spans, node, other)) is not None:
            first, last, text = token
        elif isinstance(node, ast.Call) and isinstance(other, ast.Call) and _is_swap(node, other):
            (first, middle), (after, last) = spans[id(node.args[0])], spans[id(node.args[1])]
            text = (data[after:last] + data[middle:after] + data[first:middle]).decode()
        elif isinstance(other, ast.Pass):
            if isinstance(node, ast.Assign):
                return None  # a name that is missing says where
            return _removed(data, starts, node, first, last)
        else:
            text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(other)))
            if isinstance(other, ast.BinOp | ast.BoolOp | ast.Compare | ast.UnaryOp | ast.IfExp):
                wrapped = (data[:first] + f"({text})".encode() + data[last:]).decode()
                bare = (data[:first] + text.encode() + data[last:]).decode()
                if ast.dump(ast.parse(wrapped)) != ast.dump(ast.parse(bare)):
                    text = f"({text})"
        made = (data[:first] + text.encode() + data[last:]).decode()
        ast.parse(made)
    except (SyntaxError, ValueError, AttributeError):
        return None
    return made


def _removed(data: bytes, starts: Sequence[int], node: ast.stmt | ast.expr, first: int, last: int) -> str:
    """Returns the source without a statement: without its lines, or with `pass` in its place if others need it."""
    made = (data[: starts[node.lineno - 1]] + data[starts[node.end_lineno or node.lineno] :]).decode()
    try:
        ast.parse(made)
    except SyntaxError:
        return (data[:first] + b"pass" + data[last:]).decode()
    return made


def _token(
    data: bytes, spans: Mapping[int, tuple[int, int]], node: ast.AST, other: ast.AST
) -> tuple[int, int, str] | None:
    """Returns first byte, last byte and text of an operator that is to be replaced; None if no single one is."""
    sides: list[ast.expr]
    if isinstance(node, ast.Compare) and isinstance(other, ast.Compare) and len(node.ops) == len(other.ops):
        at = next((n for n, one in enumerate(node.ops) if type(one) is not type(other.ops[n])), None)
        if at is None:
            return None
        sides = [node.left, *node.comparators][at : at + 2]
        old, new = _OPERATORS[type(node.ops[at])], _OPERATORS[type(other.ops[at])]
    elif isinstance(node, ast.BinOp) and isinstance(other, ast.BinOp):
        sides, old, new = [node.left, node.right], _OPERATORS[type(node.op)], _OPERATORS[type(other.op)]
    elif isinstance(node, ast.AugAssign) and isinstance(other, ast.AugAssign):
        sides = [node.target, node.value]
        old, new = f"{_OPERATORS[type(node.op)]}=", f"{_OPERATORS[type(other.op)]}="
    elif isinstance(node, ast.BoolOp) and isinstance(other, ast.BoolOp) and len(node.values) == 2:
        sides, old, new = node.values, _OPERATORS[type(node.op)], _OPERATORS[type(other.op)]
    else:
        return None
    first, last = spans[id(sides[0])][1], spans[id(sides[1])][0]
    between = data[first:last].decode()
    return (first, last, between.replace(old, new)) if between.strip() == old else None


_OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.In: "in",
    ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not", ast.And: "and", ast.Or: "or", ast.Add: "+", ast.Sub: "-",
    ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|",
    ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@",
}  # fmt: skip

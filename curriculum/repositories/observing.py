"""Rewrites tests so that they hand over the values that they compare. Pure.

Invariants: `kept` tests assert as before and note the values; `blind` ones note the same values at the same sites and
do not compare them with literals, so that a sandbox with them does not have those. What is not understood stays as it
is. Sites are numbered in source order, the same in both.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

SEEN, TRUTH, KIND, RAISED = "__assay_seen__", "__assay_truth__", "__assay_kind__", "__assay_raised__"
APPROXIMATE = 5
"""Digits that count where a test compares approximately."""
CONTEXT_LINES, CONTEXT_CHARS = 14, 900


class Site(NamedTuple):
    """A place in a test at which it observes a value."""

    source: str
    """Expression whose value is observed."""
    line: int
    file: str
    expected: str = ""
    """Literal that it is compared with; empty if it is none."""


class Rewritten(NamedTuple):
    kept: str
    blind: str
    sites: Mapping[int, Site]


def rewrite(source: str, file: str, first: int = 0) -> Rewritten | None:
    """Rewrites the source of a test module, with sites from the number `first`; None if it cannot be parsed."""
    try:
        tree = ast.parse(source)
        sites: dict[int, Site] = {}
        texts = []
        for blind in (False, True):
            rewriter = _Rewriter(file, first, blind=blind)
            texts.append(ast.unparse(ast.fix_missing_locations(rewriter.visit(copy.deepcopy(tree)))) + "\n")
            sites = rewriter.sites
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return Rewritten(texts[0], texts[1], sites)


class _Rewriter(ast.NodeTransformer):
    def __init__(self, file: str, first: int, *, blind: bool) -> None:
        self.file, self.first, self.blind = file, first, blind
        self.sites: dict[int, Site] = {}

    def visit_Assert(self, node: ast.Assert) -> Any:
        if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And):
            parts = [ast.copy_location(ast.Assert(one, node.msg), node) for one in node.test.values]
            return [self.visit_Assert(one) for one in parts]
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            left, right, operator = test.left, test.comparators[0], test.ops[0]
            if isinstance(operator, ast.Eq) or (isinstance(operator, ast.Is) and _is_literal(right)):
                digits = APPROXIMATE if "approx" in ast.unparse(test) else None
                if _is_literal(left) and not _is_literal(right):
                    left, right = right, left
                if _is_literal(right):
                    watched = self._seen(left, digits, expected=ast.unparse(right))
                    if self.blind:
                        return ast.copy_location(ast.Expr(watched), node)
                    return self._assert(node, ast.Compare(watched, test.ops, [right]))
                sides = [
                    one if digits and "approx" in ast.unparse(one) else self._seen(one, digits) for one in (left, right)
                ]
                return self._assert(node, ast.Compare(sides[0], test.ops, [sides[1]]))
            shown = test
            sides = [self._call(KIND, one) for one in (left, right)]
            test = ast.copy_location(ast.Compare(sides[0], test.ops, [sides[1]]), test)
            return self._truth(node, test, ast.unparse(shown))
        return self._truth(node, test)

    def _truth(self, node: ast.Assert, test: ast.expr, shown: str = "") -> ast.stmt:
        negative = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        inner = test.operand if isinstance(test, ast.UnaryOp) and negative else test
        watched = self._call(TRUTH, inner, str(not negative), shown)
        if self.blind:
            return ast.copy_location(ast.Expr(watched), node)
        return self._assert(node, ast.UnaryOp(ast.Not(), watched) if negative else watched)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        function = node.func
        if not (
            isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "self"
        ):
            return node
        if function.attr in ("assertEqual", "assertEquals", "assertAlmostEqual") and len(node.args) >= 2:
            digits = APPROXIMATE if "Almost" in function.attr else None
            first, second, *more = node.args
            if _is_literal(first) and not _is_literal(second):
                first, second = second, first
            if _is_literal(second):
                watched = self._seen(first, digits, expected=ast.unparse(second))
                return watched if self.blind else self._with(node, watched, second, *more)
            if digits:
                return self._with(node, self._seen(first, digits), second, *more)
            return self._with(node, self._seen(first), self._seen(second), *more)
        if function.attr in ("assertTrue", "assertFalse") and node.args:
            watched = self._call(TRUTH, node.args[0], str(function.attr == "assertTrue"))
            return watched if self.blind else self._with(node, watched, *node.args[1:])
        return node

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        for item in node.items:
            called = item.context_expr
            if not isinstance(called, ast.Call) or not isinstance(called.func, ast.Attribute):
                continue
            if called.func.attr in ("raises", "assertRaises", "assertRaisesRegex"):
                expected = f"raises {ast.unparse(called.args[0])}" if called.args else ""
                shown = "\n".join(map(ast.unparse, node.body))
                item.context_expr = self._call(RAISED, called, expected, shown)
        return node

    def _seen(self, node: ast.expr, digits: int | None = None, expected: str = "") -> ast.Call:
        made = self._call(SEEN, node, expected)
        if digits:
            made.args.append(ast.Constant(digits))
        return made

    def _call(self, name: str, node: ast.expr, expected: str = "", shown: str = "") -> ast.Call:
        number = self.first + len(self.sites)
        self.sites[number] = Site(shown or ast.unparse(node), node.lineno, self.file, expected)
        return ast.Call(ast.Name(name, ast.Load()), [ast.Constant(number), node], [])

    @staticmethod
    def _assert(node: ast.Assert, test: ast.expr) -> ast.stmt:
        return ast.copy_location(ast.Assert(test, node.msg), node)

    @staticmethod
    def _with(node: ast.Call, *arguments: ast.expr) -> ast.Call:
        return ast.copy_location(ast.Call(node.func, list(arguments), node.keywords), node)


def _is_literal(node: ast.expr) -> bool:
    return not any(isinstance(one, ast.Name | ast.Call | ast.Attribute | ast.Await | ast.NamedExpr | ast.JoinedStr
                              | ast.Lambda | ast.comprehension | ast.Yield) for one in ast.walk(node))  # fmt: skip


def functions_in(source: str) -> set[str]:
    """Returns the names of the functions of a test module (`test_a`, `TestB::test_c`)."""
    found: set[str] = set()

    def look(body: list[ast.stmt], above: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                look(node.body, f"{above}{node.name}::")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(f"{above}{node.name}")

    look(ast.parse(source).body, "")
    return found


def without(source: str, names: Collection[str]) -> str:
    """Returns a test module without the named functions (`test_a`, `TestB::test_c`)."""
    lines = source.splitlines(keepends=True)
    cuts: list[tuple[int, int, str]] = []

    def look(body: list[ast.stmt], above: str) -> None:
        gone = []
        for node in body:
            if isinstance(node, ast.ClassDef):
                look(node.body, f"{above}{node.name}::")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and f"{above}{node.name}" in names:
                gone.append(node)
        for node in gone:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            blank = " " * node.col_offset + "pass\n" if len(gone) == len(body) and node is gone[0] else ""
            cuts.append((first - 1, node.end_lineno or first, blank))

    look(ast.parse(source).body, "")
    for first, last, blank in sorted(cuts, reverse=True):
        lines[first:last] = [blank] if blank else []
    return "".join(lines)


def context_of(source: str, name: str, line: int) -> str | None:
    """Returns the statements of a test function up to a line, without its asserts: a way to what it observes. None if
    they are too long, or the line is in another function."""
    last = name.rpartition("::")[2]
    function = next(
        (
            node
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name == last
            and node.lineno <= line <= (node.end_lineno or line)
        ),
        None,
    )
    if function is None:
        return None
    inner = [
        one
        for one in ast.walk(function)
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one is not function
    ]
    if any(one.lineno <= line <= (one.end_lineno or line) for one in inner):
        return None
    kept = []
    for node in function.body:
        if node.lineno >= line:
            break
        shown = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if ((node.end_lineno or node.lineno) < line and not isinstance(node, ast.Assert) and not shown) or (
            (node.end_lineno or node.lineno) >= line and not isinstance(node, ast.Assert | ast.Expr | ast.With)
        ):
            kept.append(ast.unparse(node))
    text = "\n".join(kept)
    return text if text.count("\n") < CONTEXT_LINES and len(text) <= CONTEXT_CHARS else None

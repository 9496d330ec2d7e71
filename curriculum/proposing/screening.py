"""Screens the source of a proposed program before it runs: an allow-list of syntax, names, methods and imports.

Invariants: a screened program makes no classes and no sets (whose order depends on the process), catches no exceptions,
prints nothing, has only constant defaults, and names nothing that reaches the interpreter. Every name that it reads is
its own, an imported module, or a listed builtin. So its result depends only on its text and its input. The sandbox does
not rely on this; it isolates any program.

The screened program is also the one that runs, is shown and is compared: Python's rendering of its syntax tree, without
comments and standalone strings.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from curriculum.proposing.refusals import Reason, RefusedProposal
from runtime.parsing import PARSING

FUNCTION: Final = "f"
SOURCE_CHARS: Final = 1_500
BRACKETS: Final = 150
NODES: Final = 400
DEPTH: Final = 40
TRIES: Final = 5
MODULES: Final = {
    "math": "gcd lcm isqrt comb perm factorial prod sqrt floor ceil",
    "itertools": "accumulate chain combinations combinations_with_replacement count cycle groupby islice permutations"
    " product repeat takewhile dropwhile zip_longest pairwise starmap",
    "functools": "reduce lru_cache cache partial cmp_to_key",
    "collections": "Counter OrderedDict defaultdict deque",
    "heapq": "heapify heappop heappush heapreplace nlargest nsmallest merge",
    "bisect": "bisect bisect_left bisect_right insort",
    "string": "ascii_lowercase ascii_uppercase ascii_letters digits",
}
_BUILTINS: Final = (
    "abs all any bin bool chr dict divmod enumerate filter float hex int iter len list map max min next oct ord pow"
    " range reversed round slice sorted str sum tuple zip True False None"
)
BUILTINS: Final = frozenset(_BUILTINS.split())
_METHODS: Final = (
    "capitalize casefold center count endswith find index isalnum isalpha isascii isdecimal isdigit islower isnumeric"
    " isspace istitle isupper join ljust lower lstrip partition removeprefix removesuffix replace rfind rindex rjust"
    " rpartition rsplit rstrip split splitlines startswith strip swapcase title upper zfill append appendleft clear"
    " copy extend get insert items keys pop popitem popleft remove reverse rotate setdefault sort update values"
    " bit_count bit_length most_common elements total cache_clear from_iterable fromkeys"
)
METHODS: Final = frozenset(_METHODS.split())
VIEWS: Final = frozenset(["keys", "items", "values"])
_READERS: Final = "list sorted len sum max min enumerate dict tuple all any zip map filter reversed"
READERS: Final = frozenset(_READERS.split())
"""Functions that may be passed a dictionary view: operators would make sets of it."""
SYNTAX: Final = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For,
    ast.While, ast.If, ast.Expr, ast.Pass, ast.Break, ast.Continue, ast.Import, ast.ImportFrom, ast.alias, ast.BoolOp,
    ast.NamedExpr, ast.BinOp, ast.UnaryOp, ast.Lambda, ast.IfExp, ast.Dict, ast.ListComp, ast.DictComp,
    ast.GeneratorExp, ast.comprehension, ast.Compare, ast.Call, ast.keyword, ast.FormattedValue, ast.JoinedStr,
    ast.Constant, ast.Attribute, ast.Subscript, ast.Starred, ast.Name, ast.List, ast.Tuple, ast.Slice, ast.Delete,
    ast.Yield, ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop,
)  # fmt: skip


@dataclass(frozen=True)
class ScreenedProgram:
    """Proposed program that passed the screening of its source."""

    source: str
    """Python's rendering, without comments and standalone strings."""
    arity: int
    key: str
    """SHA-256 of the syntax tree, with names replaced by order of appearance and without annotations."""
    literals: frozenset[str]
    """Every constant in the program, as Python writes it."""
    looks_up: bool
    """True if the program only reads its own table."""


def screened(source: str) -> ScreenedProgram:
    """Checks a proposed program against the allow-list, and renders it anew. Raises RefusedProposal otherwise."""
    if len(source) > SOURCE_CHARS or sum(map(source.count, "([{")) > BRACKETS or source.count("\\") > BRACKETS:
        raise RefusedProposal(Reason.UNREADABLE, f"longer than {SOURCE_CHARS} characters, or too many brackets")
    source = _plain(_parsed(source))
    tree = _parsed(source)
    nodes = list(ast.walk(tree))
    parents = {id(child): node for node in nodes for child in ast.iter_child_nodes(node)}
    for node in nodes:
        _require_allowed(node, parents.get(id(node)))
    _require_known_names(nodes)
    for statement in tree.body:
        if not isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef):
            raise RefusedProposal(Reason.FORBIDDEN, "only imports and functions are allowed at its top level")
    found = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == FUNCTION]
    if len(found) != 1:
        raise RefusedProposal(Reason.UNREADABLE, f"it defines `{FUNCTION}` once")
    function = found[0]
    _require_plain_arguments(function)
    literals = {repr(node.value) for node in nodes if isinstance(node, ast.Constant)}
    literals |= {_text(node) for node in nodes if isinstance(node, ast.List | ast.Tuple | ast.Dict)}
    looks_up = len(function.body) == 1 and _is_lookup(function.body[0])
    arity = len(function.args.args)
    return ScreenedProgram(source, arity, _key(tree), frozenset(literals), looks_up)


def _plain(tree: ast.Module) -> str:
    """Renders a program as source, without constant statements. Raises RefusedProposal if too large or deep."""
    if sum(1 for _ in ast.walk(tree)) > NODES or _depth(tree) > DEPTH:
        raise RefusedProposal(Reason.UNREADABLE, "too large or too deep")
    try:
        return ast.unparse(_Silenced().visit(tree))
    except ValueError as error:  # a backslash within the braces of a text
        raise RefusedProposal(Reason.UNREADABLE, "a text that cannot be written plainly") from error


class _Silenced(ast.NodeTransformer):
    """Removes statements that are only a constant, such as docstrings, from a syntax tree."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if getattr(node, "body", None) == []:
            node.body = [ast.Pass()]  # type: ignore[attr-defined]
        return node


def _parsed(source: str) -> ast.Module:
    for _ in range(TRIES):
        try:
            with PARSING:
                return ast.parse(source)
        except SystemError:  # another thread is parsing
            continue
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise RefusedProposal(Reason.UNREADABLE, "it is not Python") from error
    raise RefusedProposal(Reason.UNREADABLE, "the parser broke")


def _depth(tree: ast.AST) -> int:
    level, depth = [tree], 0
    while level and depth <= DEPTH:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        depth += 1
    return depth


def _require_allowed(node: ast.AST, parent: ast.AST | None) -> None:
    """Raises RefusedProposal for a syntax node that a proposed program may not contain."""
    if not isinstance(node, SYNTAX):
        raise RefusedProposal(Reason.FORBIDDEN, f"no {type(node).__name__} may stand in it")
    match node:
        case ast.Import(names=names):
            if any(one.name not in MODULES or one.asname for one in names):
                raise RefusedProposal(Reason.FORBIDDEN, "an import")
        case ast.ImportFrom(module=module, names=names, level=level):
            known = MODULES.get(module or "", "").split()
            if level or any(one.name not in known or one.asname for one in names):
                raise RefusedProposal(Reason.FORBIDDEN, "an import")
        case ast.Name(id=name, ctx=context):
            _require_name(name, bound=not isinstance(context, ast.Load))
        case ast.arg(arg=name) | ast.FunctionDef(name=name):
            _require_name(name, bound=True)
        case ast.arguments(defaults=defaults, kw_defaults=others):
            if any(not isinstance(one, ast.Constant | None) for one in (*defaults, *others)):
                raise RefusedProposal(Reason.FORBIDDEN, "a default value that is not a constant")
        case ast.Attribute(value=ast.Name(id=module), attr=name) if module in MODULES:
            if name not in MODULES[module].split() and name != "from_iterable":
                raise RefusedProposal(Reason.FORBIDDEN, "a name of a module")
        case ast.Attribute(attr=name):
            called = isinstance(parent, ast.Call) and parent.func is node
            if name not in METHODS or not called or not isinstance(node.ctx, ast.Load):
                raise RefusedProposal(Reason.FORBIDDEN, "a method or an attribute")
        case ast.Call(func=ast.Attribute(attr=name)) if name in VIEWS and not _is_read(node, parent):
            raise RefusedProposal(Reason.FORBIDDEN, "a view of a dictionary that is not read immediately")
        case ast.keyword(arg=None) | ast.Constant(value=complex() | bytes()):
            raise RefusedProposal(Reason.FORBIDDEN, "a complex number, bytes or **")
        case ast.Constant(value=int() as value) if abs(value) > 10**12:
            raise RefusedProposal(Reason.FORBIDDEN, "a number of more than 12 digits")
        case _:
            pass


def _require_name(name: str, *, bound: bool) -> None:
    known = name in BUILTINS or name in MODULES
    if name.startswith("_") and name != "_":
        raise RefusedProposal(Reason.FORBIDDEN, "a name that begins with an underscore")
    if bound and (known or hasattr(builtins, name)):
        raise RefusedProposal(Reason.FORBIDDEN, "a name of Python's, given another meaning")
    if not bound and not known and hasattr(builtins, name):
        raise RefusedProposal(Reason.FORBIDDEN, "a function of Python's that is not listed")


def _require_known_names(nodes: Sequence[ast.AST]) -> None:
    """Raises RefusedProposal for a name that is neither the program's own, nor imported, nor an allowed builtin."""
    imported = {one.name for one in nodes if isinstance(one, ast.alias)}
    read = {one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    if not read <= _bound(nodes) | imported | BUILTINS:
        raise RefusedProposal(Reason.FORBIDDEN, "a name that the program does not bind")


def _bound(nodes: Sequence[ast.AST]) -> set[str]:
    """Returns the names that a program defines: functions, parameters and variables."""
    found = {one.name for one in nodes if isinstance(one, ast.FunctionDef)}
    found |= {one.arg for one in nodes if isinstance(one, ast.arg)}
    return found | {one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _is_read(node: ast.AST, parent: ast.AST | None) -> bool:
    match parent:
        case ast.For(iter=iterated) | ast.comprehension(iter=iterated):
            return iterated is node
        case ast.Call(func=ast.Name(id=name)):
            return name in READERS
        case _:
            return False


def _require_plain_arguments(function: ast.FunctionDef) -> None:
    given = function.args
    others = bool(given.posonlyargs or given.kwonlyargs or given.defaults or given.vararg or given.kwarg)
    if not 1 <= len(given.args) <= 4 or others or function.decorator_list:
        raise RefusedProposal(Reason.FORBIDDEN, f"`{FUNCTION}` takes one to four arguments, without defaults")


def _is_lookup(statement: ast.stmt) -> bool:
    """True if the statement returns an item of a table, a constant, or the outcome of a choice between constants."""
    match statement:
        case ast.Return(value=ast.Subscript(value=ast.Dict() | ast.List() | ast.Tuple() | ast.Constant())):
            return True
        case ast.Return(value=ast.Call(func=ast.Attribute(value=ast.Dict(), attr="get"))):
            return True
        case ast.Return(value=ast.IfExp(body=ast.Constant(), orelse=ast.Constant())):
            return True
        case ast.Return(value=ast.Constant() | None):
            return True
        case _:
            return False


def _text(node: ast.AST) -> str:
    """Returns the value of a constant expression as Python writes it; empty if it is not constant."""
    try:
        return repr(ast.literal_eval(node))  # of a tree whose nodes are all in the list
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ""


class _Renamer(ast.NodeTransformer):
    """Renames a program's own names by order of appearance, and drops annotations."""

    def __init__(self, own: frozenset[str]) -> None:
        self._own = own
        self._names: dict[str, str] = {}

    def _new(self, name: str) -> str:
        return self._names.setdefault(name, f"v{len(self._names)}") if name in self._own else name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self._new(node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(self._new(node.arg), None)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        return ast.keyword(self._new(node.arg or ""), self.visit(node.value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        return ast.Assign([self.visit(node.target)], self.visit(node.value), None)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        name = self._new(node.name)
        arguments = self.visit(node.args)
        inner = [one for one in map(self.visit, node.body) if one is not None]
        return ast.FunctionDef(name, arguments, inner, [self.visit(one) for one in node.decorator_list], None, None)


def _key(tree: ast.Module) -> str:
    nodes = list(ast.walk(tree))
    dumped = ast.dump(_Renamer(frozenset(_bound(nodes))).visit(tree))
    return hashlib.sha256(dumped.encode("utf-8", "surrogatepass")).hexdigest()

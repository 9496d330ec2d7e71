"""S-expressions to terms: names looked up, sorts checked, `let` and definitions written out. Without recursion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from verifiers.answers.reading import clipped
from verifiers.smt.errors import ClaimError
from verifiers.smt.operators import OPERATORS, apply_operator, coerced
from verifiers.smt.reader import Atom, Form, Node, form, is_symbol, symbol
from verifiers.smt.terms import BOOL, INT, REAL, Function, Sort, Term, Terms, array, bits

MAX_STEPS = 300_000
MAX_INDEX = 100_000
MAX_BOUND = 64
RESERVED = frozenset({"let", "forall", "exists", "match", "par", "!", "_", "as", "lambda", "const", *OPERATORS})
SORTS = frozenset({"Bool", "Int", "Real", "BitVec", "Array"})


@dataclass(frozen=True, slots=True)
class Definition:
    """A symbol that stands for a term over its parameters."""

    name: str
    parameters: tuple[tuple[str, Sort], ...]
    range: Sort
    body: Node
    sees: frozenset[str] | None = None
    """The declared symbols that may occur in its body; None: all."""


@dataclass(slots=True)
class Names:
    """What is declared so far."""

    sorts: dict[str, Sort] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    definitions: dict[str, Definition] = field(default_factory=dict)

    def free(self, name: str, at: int) -> str:
        """The name, which nobody has yet. Raises ClaimError."""
        taken = name in self.functions or name in self.definitions or name in RESERVED
        if taken:
            raise ClaimError(f"{clipped(name)} is declared already", at)
        return name

    def sort(self, node: Node) -> Sort:
        """Raises ClaimError. Recursion here is as deep as the sort, which may be eight deep."""
        return self._sort(node, 8)

    def _sort(self, node: Node, depth: int) -> Sort:
        if not depth:
            raise ClaimError("a sort nested more than eight deep", node.at)
        if isinstance(node, Atom):
            name = symbol(node, "a sort")
            found = {"Bool": BOOL, "Int": INT, "Real": REAL}.get(name) or self.sorts.get(name)
            if found is None:
                raise ClaimError(f"there is no sort {clipped(name)}", node.at)
            return found
        match node.items:
            case (Atom("symbol", "_"), Atom("symbol", "BitVec"), Atom("numeral", width)) if len(width) < 6:
                return bits(int(width))
            case (Atom("symbol", "Array"), index, element):
                made = array(self._sort(index, depth - 1), self._sort(element, depth - 1))
                if made.parameters[0].name == "Array" and not made.parameters[0].declared:
                    raise ClaimError("an array whose index is an array", node.at)
                return made
        raise ClaimError("there is no such sort", node.at)

    def variables(self, node: Node, what: str) -> list[tuple[str, Sort]]:
        """`((x Int) (y Bool))`, each name once. Raises ClaimError."""
        found: dict[str, Sort] = {}
        for pair in form(node, what):
            name_node, sort_node = form(pair, what, 2)
            name = symbol(name_node, what)
            if name in found or name in RESERVED:
                raise ClaimError(f"{clipped(name)} cannot be used as a variable here", name_node.at)
            found[name] = self.sort(sort_node)
        if len(found) > MAX_BOUND:
            raise ClaimError(f"more than {MAX_BOUND} variables", node.at)
        return list(found.items())


Locals = dict[str, list[Term]]


@dataclass(slots=True)
class Scope:
    locals: Locals
    sees: frozenset[str] | None
    """Which declared symbols may occur; None: all."""


@dataclass(slots=True)
class Elaborator:
    """One per claim, so that the budget is one."""

    terms: Terms
    names: Names
    steps: int = 0

    def term(self, node: Node, variables: dict[str, Term] | None = None, sees: frozenset[str] | None = None) -> Term:
        """The term that this expression is. Raises ClaimError."""
        scope = Scope({name: [term] for name, term in (variables or {}).items()}, sees)
        done: list[Term] = []
        todo: list[tuple[Any, ...]] = [("visit", node, scope)]
        while todo:
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise ClaimError("too large, with its definitions written out")
            task = todo.pop()
            if task[0] == "visit":
                self._visit(task[1], task[2], todo, done)
            else:
                self._finish(task, todo, done)
        return done.pop()

    def _visit(self, node: Node, scope: Scope, todo: list[tuple[Any, ...]], done: list[Term]) -> None:
        if isinstance(node, Atom):
            self._atom(node, scope, todo, done)
            return
        if not node.items:
            raise ClaimError("an empty bracket is no term", node.at)
        head, *rest = node.items
        if isinstance(head, Atom):
            match symbol(head, "what is applied"):
                case "let":
                    self._let(node, scope, todo)
                case "forall" | "exists":
                    self._quantifier(node, scope, todo)
                case "_":
                    done.append(self._indexed_literal(node))
                case "!":
                    raise ClaimError("annotations have no place inside of terms", node.at)
                case name if not rest:
                    raise ClaimError(f"a constant stands without brackets: {clipped(name)}", node.at)
                case name if scope.locals.get(name):
                    raise ClaimError(f"{clipped(name)} is a variable here and no function", head.at)
                case name:
                    todo.append(("apply", name, (), len(rest), scope, node))
                    todo.extend(("visit", each, scope) for each in reversed(rest))
            return
        match head.items:
            case (Atom("symbol", "_"), Atom("symbol", name), *indices) if indices:
                todo.append(("apply", name, tuple(map(_index, indices)), len(rest), scope, node))
            case (Atom("symbol", "as"), Atom("symbol", "const"), sort_node) if len(rest) == 1:
                todo.append(("constant", self.names.sort(sort_node), node))
            case _:
                raise ClaimError("this cannot be applied", head.at)
        todo.extend(("visit", each, scope) for each in reversed(rest))

    def _atom(self, node: Atom, scope: Scope, todo: list[tuple[Any, ...]], done: list[Term]) -> None:
        match node.kind:
            case "numeral":
                done.append(self.terms.literal(int(node.text), INT))
            case "decimal":
                whole, _, digits = node.text.partition(".")
                done.append(self.terms.literal(Fraction(int(whole + digits), 10 ** len(digits)), REAL))
            case "hexadecimal":
                done.append(self.terms.literal(int(node.text, 16), bits(4 * len(node.text))))
            case "binary":
                done.append(self.terms.literal(int(node.text, 2), bits(len(node.text))))
            case "symbol":
                bound = scope.locals.get(node.text)
                if bound:
                    done.append(bound[-1])
                else:
                    todo.append(("apply", node.text, (), 0, scope, node))
            case _:
                raise ClaimError("text and keywords are no terms", node.at)

    def _let(self, node: Form, scope: Scope, todo: list[tuple[Any, ...]]) -> None:
        _, bindings, body = form(node, "let", 3)
        names: list[str] = []
        todo.append(("let", names, body, scope))
        for pair in reversed(form(bindings, "the bindings of let")):
            name_node, value = form(pair, "a binding of let", 2)
            name = symbol(name_node, "what let binds")
            if name in names or name in RESERVED:
                raise ClaimError(f"{clipped(name)} cannot be bound here", name_node.at)
            names.append(name)
            todo.append(("visit", value, scope))
        if not names:
            raise ClaimError("let binds nothing", node.at)
        names.reverse()

    def _quantifier(self, node: Form, scope: Scope, todo: list[tuple[Any, ...]]) -> None:
        kind, bound, body = form(node, "a quantifier", 3)
        variables = [
            (name, self.terms.variable(name, sort)) for name, sort in self.names.variables(bound, "a bound variable")
        ]
        if not variables:
            raise ClaimError("a quantifier binds nothing", node.at)
        for name, variable in variables:
            scope.locals.setdefault(name, []).append(variable)
        todo.append(("quantify", symbol(kind, "a quantifier"), variables, scope, node))
        todo.append(("visit", body, scope))

    def _indexed_literal(self, node: Form) -> Term:
        match node.items:
            case (_, Atom("symbol", name), Atom("numeral", width)) if name[:2] == "bv" and name[2:].isdigit():
                sort = bits(int(width) if len(width) < 6 else 0)
                value = int(name[2:])
                if value.bit_length() > sort.width:
                    raise ClaimError(f"{clipped(name)} does not fit into {width} bits", node.at)
                return self.terms.literal(value, sort)
        raise ClaimError("there is no such constant", node.at)

    def _finish(self, task: tuple[Any, ...], todo: list[tuple[Any, ...]], done: list[Term]) -> None:
        match task:
            case ("apply", name, index, count, scope, node):
                args = _taken(done, count)
                self._apply(name, index, args, scope, node, todo, done)
            case ("constant", sort, node):
                if sort.name != "Array" or sort.declared:
                    raise ClaimError("only an array is constant", node.at)
                value = coerced(self.terms, done.pop(), sort.parameters[1])
                done.append(self.terms.make("constant_array", (value,), sort))
            case ("let", names, body, scope):
                for name, value in zip(names, _taken(done, len(names)), strict=True):
                    scope.locals.setdefault(name, []).append(value)
                todo.append(("leave", names, scope))
                todo.append(("visit", body, scope))
            case ("leave", names, scope):
                for name in names:
                    scope.locals[name].pop()
            case ("quantify", kind, variables, scope, node):
                for name, _ in variables:
                    scope.locals[name].pop()
                body_term = done.pop()
                if body_term.sort != BOOL:
                    raise ClaimError(f"{kind} over a term that is no statement", node.at)
                bound = tuple(variable for _, variable in variables)
                done.append(self.terms.make(kind, (body_term,), BOOL, bound))
            case ("cast", sort, node):
                try:
                    done.append(coerced(self.terms, done.pop(), sort))
                except ClaimError as error:
                    raise ClaimError(str(error), node.at) from None

    def _apply(
        self,
        name: str,
        index: tuple[int, ...],
        args: list[Term],
        scope: Scope,
        node: Node,
        todo: list[tuple[Any, ...]],
        done: list[Term],
    ) -> None:
        try:
            if name in OPERATORS:
                done.append(apply_operator(self.terms, name, index, args))
                return
            if index or (scope.sees is not None and name not in scope.sees):
                raise ClaimError(f"{clipped(name)} is not known here")
            if name in self.names.definitions:
                definition = self.names.definitions[name]
                domain = tuple(sort for _, sort in definition.parameters)
                given = self._arguments(name, domain, args)
                local = {parameter: [term] for (parameter, _), term in zip(definition.parameters, given, strict=True)}
                todo.append(("cast", definition.range, definition.body))
                todo.append(("visit", definition.body, Scope(local, definition.sees)))
                return
            function = self.names.functions.get(name)
            if function is None:
                raise ClaimError(f"{clipped(name)} is not declared")
            given = self._arguments(name, function.domain, args)
            done.append(self.terms.make("apply", given, function.range, function))
        except ClaimError as error:
            raise ClaimError(str(error), node.at) from None

    def _arguments(self, name: str, domain: tuple[Sort, ...], args: list[Term]) -> list[Term]:
        if len(domain) != len(args):
            raise ClaimError(f"{clipped(name)} takes {len(domain)} arguments and has {len(args)}")
        return [coerced(self.terms, arg, sort) for arg, sort in zip(args, domain, strict=True)]

    def check(self, definition: Definition) -> Term:
        """The body, with variables for the parameters. Raises ClaimError where it has not the sort that it says."""
        variables = {name: self.terms.variable(name, sort) for name, sort in definition.parameters}
        return coerced(self.terms, self.term(definition.body, variables, definition.sees), definition.range)


def _taken(done: list[Term], count: int) -> list[Term]:
    """The last so many results, in order."""
    if not count:
        return []
    taken = done[-count:]
    del done[-count:]
    return taken


def _index(node: Node) -> int:
    if isinstance(node, Atom) and node.kind == "numeral" and len(node.text) < 7 and int(node.text) <= MAX_INDEX:
        return int(node.text)
    raise ClaimError(f"an index that is no numeral up to {MAX_INDEX:,}", node.at)


def atoms(nodes: Sequence[Node]) -> list[Atom]:
    """All atoms of these expressions, in order."""
    found: list[Atom] = []
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        if isinstance(node, Atom):
            found.append(node)
        else:
            stack.extend(reversed(node.items))
    return found


__all__ = ["Definition", "Elaborator", "Names", "atoms", "is_symbol"]

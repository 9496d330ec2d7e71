"""Elaborates S-expressions into terms: resolves names, checks sorts, expands definitions. Without recursion."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction

from verifiers.contract.text import escaped
from verifiers.smt.language.errors import ClaimError
from verifiers.smt.language.operators import OPERATORS, apply_operator, coerced
from verifiers.smt.language.reader import Atom, Form, Node, form, symbol
from verifiers.smt.language.terms import BOOL, INT, REAL, Function, Sort, Term, Terms, array, bits, recurse

MAX_STEPS = 300_000
MAX_INDEX = 100_000
MAX_BOUND = 64
RESERVED = frozenset({"let", "forall", "exists", "match", "par", "!", "_", "as", "lambda", "const", *OPERATORS})
SORTS = frozenset({"Bool", "Int", "Real", "BitVec", "Array"})


@dataclass(frozen=True, slots=True)
class Definition:
    """A symbol of a claim, defined as a term over its parameters."""

    name: str
    parameters: tuple[tuple[str, Sort], ...]
    range: Sort
    body: Node
    sees: frozenset[str] | None = None
    """Declared symbols that may occur in its body; None for all."""


@dataclass(slots=True)
class Names:
    """Sorts, functions and definitions that a claim has declared so far."""

    sorts: dict[str, Sort] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    definitions: dict[str, Definition] = field(default_factory=dict)

    def free(self, name: str, at: int) -> str:
        """Returns a name if it is free for a new declaration. Raises ClaimError if the claim uses it already, or it is
        reserved."""
        taken = name in self.functions or name in self.definitions or name in RESERVED
        if taken:
            raise ClaimError(f"{escaped(name)} is already declared", at)
        return name

    def sort(self, node: Node) -> Sort:
        """Parses a sort such as `Int` or `(Array Int Bool)`, nested at most eight deep. Raises ClaimError for any
        other."""
        return self._sort(node, 8)

    def _sort(self, node: Node, depth: int) -> Sort:
        if not depth:
            raise ClaimError("a sort nested more than eight deep", node.at)
        if isinstance(node, Atom):
            name = symbol(node, "a sort")
            found = {"Bool": BOOL, "Int": INT, "Real": REAL}.get(name) or self.sorts.get(name)
            if found is None:
                raise ClaimError(f"unknown sort {escaped(name)}", node.at)
            return found
        match node.items:
            case (Atom("symbol", "_"), Atom("symbol", "BitVec"), Atom("numeral", width)) if len(width) < 6:
                return bits(int(width))
            case (Atom("symbol", "Array"), index, element):
                made = array(self._sort(index, depth - 1), self._sort(element, depth - 1))
                if made.parameters[0].name == "Array" and not made.parameters[0].declared:
                    raise ClaimError("an array whose index is an array", node.at)
                return made
        raise ClaimError("unknown sort", node.at)

    def variables(self, node: Node, what: str) -> list[tuple[str, Sort]]:
        """Parses a list of variables, `((x Int) (y Bool))`, with distinct names. Raises ClaimError if it is invalid."""
        found: dict[str, Sort] = {}
        for pair in form(node, what):
            name_node, sort_node = form(pair, what, 2)
            name = symbol(name_node, what)
            if name in found or name in RESERVED:
                raise ClaimError(f"{escaped(name)} cannot be used as a variable here", name_node.at)
            found[name] = self.sort(sort_node)
        if len(found) > MAX_BOUND:
            raise ClaimError(f"more than {MAX_BOUND} variables", node.at)
        return list(found.items())


@dataclass(slots=True)
class Scope:
    locals: dict[str, list[Term]]
    """Terms that each name is bound to, innermost last."""
    sees: frozenset[str] | None
    """Declared symbols that may occur; None for all."""


Place = tuple[Node, Scope]
Elaboration = Generator[Place, Term, Term]


@dataclass(slots=True)
class Elaborator:
    """Converts one claim's expressions to terms with sorts, with one budget of steps."""

    terms: Terms
    names: Names
    steps: int = 0

    def term(self, node: Node, variables: dict[str, Term] | None = None, sees: frozenset[str] | None = None) -> Term:
        """Converts a parsed expression to a term, checking sorts. `variables` are its free names; `sees` limits the
        symbols it may use. Raises ClaimError for an invalid one."""
        scope = Scope({name: [term] for name, term in (variables or {}).items()}, sees)
        return recurse((node, scope), self._visit)

    def check(self, definition: Definition) -> Term:
        """Converts a definition's body to a term, with variables for the parameters. Raises ClaimError if its sort
        differs from the declared one."""
        variables = {name: self.terms.variable(name, sort) for name, sort in definition.parameters}
        return coerced(self.terms, self.term(definition.body, variables, definition.sees), definition.range)

    def _step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise ClaimError("too large, with its definitions expanded")

    def _visit(self, place: Place) -> Term | Elaboration:
        node, scope = place
        self._step()
        if isinstance(node, Atom):
            return self._atom(node, scope)
        if not node.items:
            raise ClaimError("empty parentheses are not a term", node.at)
        head, *rest = node.items
        if isinstance(head, Atom):
            match symbol(head, "what is applied"):
                case "let":
                    return self._let(node, scope)
                case "forall" | "exists":
                    return self._quantifier(node, scope)
                case "_":
                    return self._indexed_literal(node)
                case "!":
                    raise ClaimError("annotations are not allowed inside terms", node.at)
                case name if not rest:
                    raise ClaimError(f"a constant is written without parentheses: {escaped(name)}", node.at)
                case name if scope.locals.get(name):
                    raise ClaimError(f"{escaped(name)} is a variable here, not a function", head.at)
                case name:
                    return self._application(name, (), rest, scope, node)
        match head.items:
            case (Atom("symbol", "_"), Atom("symbol", name), *indices) if indices:
                return self._application(name, tuple(map(_index, indices)), rest, scope, node)
            case (Atom("symbol", "as"), Atom("symbol", "const"), sort) if len(rest) == 1:
                return self._constant_array(self.names.sort(sort), rest[0], scope, node)
        raise ClaimError("this cannot be applied", head.at)

    def _atom(self, node: Atom, scope: Scope) -> Term | Elaboration:
        match node.kind:
            case "numeral":
                return self.terms.literal(int(node.text), INT)
            case "decimal":
                return self.terms.literal(Fraction(node.text), REAL)
            case "hexadecimal":
                return self.terms.literal(int(node.text, 16), bits(4 * len(node.text)))
            case "binary":
                return self.terms.literal(int(node.text, 2), bits(len(node.text)))
            case "symbol":
                bound = scope.locals.get(node.text)
                return bound[-1] if bound else self._application(node.text, (), [], scope, node)
        raise ClaimError("text and keywords are not terms", node.at)

    def _let(self, node: Form, scope: Scope) -> Elaboration:
        _, bindings, body = form(node, "let", 3)
        values: dict[str, Node] = {}
        for pair in form(bindings, "the bindings of let"):
            name_node, value = form(pair, "a binding of let", 2)
            name = symbol(name_node, "what let binds")
            if name in values or name in RESERVED:
                raise ClaimError(f"{escaped(name)} cannot be bound here", name_node.at)
            values[name] = value
        if not values:
            raise ClaimError("let binds nothing", node.at)
        bound = {}
        for name, value in values.items():
            bound[name] = yield value, scope
        return (yield from self._within(bound, body, scope))

    def _quantifier(self, node: Form, scope: Scope) -> Elaboration:
        kind, declared, body = form(node, "a quantifier", 3)
        sorts = self.names.variables(declared, "a bound variable")
        bound = {name: self.terms.variable(name, sort) for name, sort in sorts}
        if not bound:
            raise ClaimError("a quantifier binds nothing", node.at)
        made = yield from self._within(bound, body, scope)
        op = symbol(kind, "a quantifier")
        if made.sort != BOOL:
            raise ClaimError(f"{op} over a term that is not Bool", node.at)
        return self.terms.make(op, (made,), BOOL, tuple(bound.values()))

    def _within(self, bound: dict[str, Term], body: Node, scope: Scope) -> Elaboration:
        """Converts an expression to a term in which the names of `bound` stand for the given terms."""
        for name, term in bound.items():
            scope.locals.setdefault(name, []).append(term)
        made = yield body, scope
        for name in bound:
            scope.locals[name].pop()
        return made

    def _indexed_literal(self, node: Form) -> Term:
        match node.items:
            case (_, Atom("symbol", name), Atom("numeral", width)) if name[:2] == "bv" and name[2:].isdigit():
                sort = bits(int(width) if len(width) < 6 else 0)
                value = int(name[2:])
                if value.bit_length() > sort.width:
                    raise ClaimError(f"{escaped(name)} does not fit into {width} bits", node.at)
                return self.terms.literal(value, sort)
        raise ClaimError("unknown constant", node.at)

    def _constant_array(self, sort: Sort, element: Node, scope: Scope, node: Node) -> Elaboration:
        value = yield element, scope
        if sort.name != "Array" or sort.declared:
            raise ClaimError("only an array can be constant", node.at)
        return self.terms.make("constant_array", (coerced(self.terms, value, sort.parameters[1]),), sort)

    def _application(
        self, name: str, index: tuple[int, ...], nodes: Sequence[Node], scope: Scope, node: Node
    ) -> Elaboration:
        args = []
        for each in nodes:
            args.append((yield each, scope))  # noqa: PERF401 - a generator has no comprehension that yields
        self._step()
        with _located(node):
            if name in OPERATORS:
                return apply_operator(self.terms, name, index, args)
            if index or (scope.sees is not None and name not in scope.sees):
                raise ClaimError(f"{escaped(name)} is not known here")
            definition, function = self.names.definitions.get(name), self.names.functions.get(name)
            if definition is not None:
                given = self._arguments(name, [sort for _, sort in definition.parameters], args)
            elif function is not None:
                given = self._arguments(name, function.domain, args)
                return self.terms.make("apply", given, function.range, function)
            else:
                raise ClaimError(f"{escaped(name)} is not declared")
        local = {parameter: [term] for (parameter, _), term in zip(definition.parameters, given, strict=True)}
        made = yield definition.body, Scope(local, definition.sees)
        with _located(definition.body):
            return coerced(self.terms, made, definition.range)

    def _arguments(self, name: str, domain: Sequence[Sort], args: list[Term]) -> list[Term]:
        if len(domain) != len(args):
            raise ClaimError(f"{escaped(name)} takes {len(domain)} arguments and has {len(args)}")
        return [coerced(self.terms, arg, sort) for arg, sort in zip(args, domain, strict=True)]


@contextmanager
def _located(node: Node) -> Iterator[None]:
    """Adds the position of an expression to any ClaimError raised inside this context."""
    try:
        yield
    except ClaimError as error:
        raise ClaimError(str(error), node.at) from None


def _index(node: Node) -> int:
    if isinstance(node, Atom) and node.kind == "numeral" and len(node.text) < 7 and int(node.text) <= MAX_INDEX:
        return int(node.text)
    raise ClaimError(f"an index must be a numeral up to {MAX_INDEX:,}", node.at)

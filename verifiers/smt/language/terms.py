"""Sorts and terms. Equal terms are one shared object, so a term is a graph, and its size is its cost.

Divisions by zero in a term: the condition under which none of them matters.

In SMT-LIB a division of integers or reals by zero has some, arbitrary, value: `x/0 = 1` is satisfiable. A proof that
relies on it proves nothing useful. The condition respects the guards of the language from left to right: in `(and
(distinct d 0) (> (/ n d) 1))` the divisor is safe. Under a quantifier it must be safe for every value.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import GeneratorType
from typing import Any, TypeVar

from verifiers.smt.language.errors import ClaimError

MAX_TERMS = 200_000
MAX_DEPTH = 3_000
"""Maximum depth of the graph, over which solvers recurse."""
MAX_WIDTH = 1_024
"""Maximum width of a bit vector, in bits."""
MAX_SIZE = 14_000
"""Maximum size in bits of the numbers that a term can produce if each symbol had one bit. So `x` squared forty times is
refused before any solver expands it."""


@dataclass(frozen=True, slots=True)
class Sort:
    name: str
    parameters: tuple[Any, ...] = ()
    """Width of a bit vector; index and element sorts of an array."""
    declared: bool = False
    """True if the claim declares the sort: its elements are up to the solver."""

    def __str__(self) -> str:
        if not self.parameters:
            return self.name if self.name.isidentifier() else f"|{self.name}|"
        inner = " ".join(map(str, self.parameters))
        return f"(_ BitVec {inner})" if self.name == "BitVec" else f"({self.name} {inner})"

    @property
    def width(self) -> int:
        return int(self.parameters[0])


BOOL, INT, REAL = Sort("Bool"), Sort("Int"), Sort("Real")
QUANTIFIERS = ("forall", "exists")


def bits(width: int) -> Sort:
    """Returns the sort of bit vectors with `width` bits. Raises ClaimError for a width outside 1 to MAX_WIDTH."""
    if not 1 <= width <= MAX_WIDTH:
        raise ClaimError(f"bit vectors have from 1 to {MAX_WIDTH:,} bits")
    return Sort("BitVec", (width,))


def array(index: Sort, element: Sort) -> Sort:
    return Sort("Array", (index, element))


def leaves(sort: Sort) -> Iterator[Sort]:
    """Yields the index and element sorts of an array sort, nested arrays resolved; any other sort itself."""
    if sort.name == "Array" and not sort.declared:
        for inner in sort.parameters:
            yield from leaves(inner)
    else:
        yield sort


@dataclass(frozen=True, slots=True)
class Function:
    """A symbol that an SMT claim declares; a constant has no arguments."""

    name: str
    domain: tuple[Sort, ...]
    range: Sort


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A term. `op` is an operator of `verifiers.smt.language.operators`, or one of:

    `value` (payload: bool, int or Fraction), `apply` (payload: Function), `variable` (payload: name, and a unique
    number), `forall` and `exists` (payload: variables; args: the body), `constant_array`.
    """

    op: str
    args: tuple[Term, ...]
    sort: Sort
    payload: Any
    """Indices of an indexed operator, or as above."""
    depth: int
    size: int
    """Size in bits; see MAX_SIZE."""
    number: int
    """Creation index: arguments precede the terms made of them."""

    def __repr__(self) -> str:
        return f"<{self.op} {self.payload!r} {[each.number for each in self.args]}>"


@dataclass(slots=True)
class Terms:
    """Creates SMT terms, each only once."""

    _known: dict[tuple[Any, ...], Term] = field(default_factory=dict)
    _variables: int = 0

    def make(self, op: str, args: Sequence[Term], sort: Sort, payload: Any = None) -> Term:
        """Returns the one shared term with an operator, arguments and sort, creating it if new. Raises ClaimError if
        there are too many terms, or it is too deep or too large."""
        key = (op, tuple(each.number for each in args), sort, type(payload), payload)
        found = self._known.get(key)
        if found is None:
            depth = 1 + max((each.depth for each in args), default=0)
            if depth > MAX_DEPTH:
                raise ClaimError(f"terms nested more than {MAX_DEPTH:,} deep, definitions expanded")
            if len(self._known) >= MAX_TERMS:
                raise ClaimError(f"more than {MAX_TERMS:,} different terms, definitions expanded")
            size = _size(op, args, payload)
            if size > MAX_SIZE:
                raise ClaimError(f"numbers of more than {MAX_SIZE:,} bits, or a power as high")
            found = Term(op, tuple(args), sort, payload, depth, size, len(self._known))
            self._known[key] = found
        return found

    def variable(self, name: str, sort: Sort) -> Term:
        """Creates a bound variable that is distinct from earlier ones of the same name."""
        self._variables += 1
        return self.make("variable", (), sort, (name, self._variables))

    def boolean(self, value: bool) -> Term:
        return self.make("value", (), BOOL, value)

    def literal(self, value: bool | int | Fraction, sort: Sort) -> Term:
        """Returns the literal term for a value of sort Bool, Int, Real or a bit vector."""
        return self.make("value", (), sort, Fraction(value) if sort == REAL else value)

    def negation(self, term: Term) -> Term:
        if term.op == "value":
            return self.boolean(not term.payload)
        return term.args[0] if term.op == "not" else self.make("not", (term,), BOOL)

    def conjunction(self, terms: Sequence[Term]) -> Term:
        """Returns the conjunction of terms, simplified; the literal true for no terms."""
        return self._joined("and", True, terms)

    def disjunction(self, terms: Sequence[Term]) -> Term:
        return self._joined("or", False, terms)

    def _joined(self, op: str, neutral: bool, terms: Sequence[Term]) -> Term:
        remaining: dict[int, Term] = {}
        for term in terms:
            if term.op == "value":
                if term.payload is not neutral:
                    return term
            else:
                remaining[term.number] = term
        if not remaining:
            return self.boolean(neutral)
        first = next(iter(remaining.values()))
        return first if len(remaining) == 1 else self.make(op, tuple(remaining.values()), BOOL)

    def implication(self, premise: Term, conclusion: Term) -> Term:
        return self.disjunction([self.negation(premise), conclusion])


def _size(op: str, args: Sequence[Term], payload: Any) -> int:
    if op == "value":
        value: int | Fraction = payload
        return max(value.numerator.bit_length(), value.denominator.bit_length())
    sizes = [each.size for each in args]
    if op in ("*", "/"):
        return sum(sizes)
    if op in ("+", "-"):
        return max(sizes) + len(sizes).bit_length()
    return max(sizes, default=1)


def walk(roots: Sequence[Term], without: Container[Term] = (), closed: Container[str] = ()) -> Iterator[Term]:
    """Yields every subterm of the given terms once, arguments first. Skips the terms in `without` with their subterms,
    and the arguments of operators in `closed`."""
    seen: set[int] = set()
    stack: list[tuple[Term, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        term, done = stack.pop()
        if done:
            yield term
        elif term.number not in seen and term not in without:
            seen.add(term.number)
            if term.args and term.op not in closed:
                stack.append((term, True))
                stack.extend([(each, False) for each in reversed(term.args)])
            else:
                yield term


def functions(roots: Sequence[Term]) -> list[Function]:
    """Returns the declared symbols, constants included, that occur in terms, in order of first occurrence."""
    return list(dict.fromkeys(term.payload for term in walk(roots) if term.op == "apply"))


Q = TypeVar("Q")
A = TypeVar("A")


def recurse(question: Q, answer: Callable[[Q], A | Generator[Q, A, A]]) -> A:
    """Evaluates `answer(question)` without Python recursion. An answer is a value, or a generator that yields
    subquestions, receives their answers, and returns its own."""
    waiting: list[Generator[Q, A, A]] = []
    found: Any = answer(question)
    while True:
        if isinstance(found, GeneratorType):
            waiting.append(found)
            found = None
        elif not waiting:
            return found  # type: ignore[no-any-return]
        try:
            question = waiting[-1].send(found)
        except StopIteration as done:
            waiting.pop()
            found = done.value
        else:
            found = answer(question)


PARTIAL = frozenset({"/", "div", "mod"})


def defined(terms: Terms, roots: Sequence[Term]) -> Term:
    """Returns the condition under which no division by zero affects the terms' values. Raises ClaimError if it is too
    large."""
    known: dict[int, Term] = {}
    for term in walk(roots):
        known[term.number] = _condition(terms, term, [known[each.number] for each in term.args])
    return terms.conjunction([known[root.number] for root in roots])


def _condition(terms: Terms, term: Term, parts: list[Term]) -> Term:
    match term.op:
        case "and":
            return _in_order(terms, term.args, parts)
        case "or":
            return _in_order(terms, [terms.negation(each) for each in term.args], parts)
        case "ite":
            condition = term.args[0]
            yes = terms.implication(condition, parts[1])
            no = terms.implication(terms.negation(condition), parts[2])
            return terms.conjunction([parts[0], yes, no])
        case "forall" | "exists":
            (inner,) = parts
            return inner if inner.op == "value" else terms.make("forall", (inner,), BOOL, term.payload)
        case op if op in PARTIAL:
            return terms.conjunction([*parts, _not_zero(terms, term.args[1])])
        case _:
            return terms.conjunction(parts)


def _in_order(terms: Terms, guards: Sequence[Term], parts: Sequence[Term]) -> Term:
    """Returns the condition that each part holds wherever all guards up to it hold."""
    made = terms.boolean(True)
    for guard, part in zip(reversed(guards), reversed(parts), strict=True):
        made = terms.conjunction([part, terms.implication(guard, made)])
    return made


def _not_zero(terms: Terms, divisor: Term) -> Term:
    if divisor.op == "value":
        return terms.boolean(bool(divisor.payload))
    zero = terms.literal(0, divisor.sort)
    return terms.negation(terms.make("=", (divisor, zero), BOOL))

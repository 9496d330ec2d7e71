"""A parsed spec: its claim, and the checks that each question needs.

Answers of an SMT solver.

Base of the translations from our terms to one solver's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

from verifiers.contract.text import escaped
from verifiers.smt.language.elaborate import RESERVED, Definition
from verifiers.smt.language.errors import ClaimError
from verifiers.smt.language.operators import OPERATORS
from verifiers.smt.language.reader import CLAIM, Form, Node, atoms, head, read
from verifiers.smt.language.script import DEFINES, Assertion, SmtClaim, definition, read_claim
from verifiers.smt.language.terms import Function, Sort, Term, functions, walk
from verifiers.smt.language.values import Interpretation
from verifiers.smt.spec import SmtSpec

DECLARES = ("set-logic", "set-info", "declare-sort", "declare-const", "declare-fun")


@dataclass(frozen=True, slots=True)
class SmtProblem:
    spec: SmtSpec
    nodes: list[Node]
    claim: SmtClaim
    """Claim of the spec, with holes as declared functions."""

    def filled(self, fills: Mapping[str, Definition]) -> SmtClaim:
        """Returns the spec's claim with submitted definitions in place of declared symbols. Raises ClaimError if one
        does not fit."""
        return read_claim(_holes_late(self.nodes, self.spec.holes), fills, self.claim.terms)

    def as_definition(self, node: Node) -> Definition | None:
        """Parses an expression as a definition; None if it is some other one. Raises ClaimError for a malformed
        definition."""
        return definition(node, self.claim.names) if head(node) in DEFINES else None

    def parted(self, assumed: Sequence[Assertion]) -> tuple[list[Assertion], list[Assertion]]:
        """Splits a filled claim's assumptions into those that mentioned a hole before it was filled, and the others."""
        holes = set(self.holes())
        open_ = {id(each.body) for each in self.claim.assertions if not holes.isdisjoint(functions([each.term]))}
        supplied = [each for each in assumed if id(each.body) in open_]
        return supplied, [each for each in assumed if id(each.body) not in open_]

    def holes(self) -> list[Function]:
        wanted = set(self.spec.holes)
        return [each for each in self.claim.declared if each.name in wanted]


@lru_cache(maxsize=4)
def _nodes(claim: str) -> list[Node]:
    """Parses a claim's text to expressions, cached because a spec is parsed for its check and for verdicts. The list
    must not be modified."""
    return read(claim, CLAIM)


def problem(spec: SmtSpec) -> SmtProblem:
    """Parses an SMT spec's claim. Raises ClaimError if it is unreadable or lacks what its question needs."""
    nodes = _nodes(spec.claim)
    found = SmtProblem(spec, nodes, read_claim(nodes))
    claim = found.claim
    declared = {each.name for each in claim.declared}
    known = declared | set(claim.names.definitions)
    for name in spec.holes:
        if name not in declared:
            raise ClaimError(f"the hole {escaped(name)} is not declared")
    for name in spec.uses:
        if name not in known or name in spec.holes:
            raise ClaimError(f"{escaped(name)}, which submissions may use, is not declared, or is a hole")
    for name in (*(spec.allowed or ()), *spec.forbidden):
        if name not in OPERATORS and name not in RESERVED and name not in known:
            raise ClaimError(f"{escaped(name)} is not an operator")
    if claim.objective is not None and spec.question != "optimum":
        raise ClaimError("only an optimum has something to minimise or maximise")
    if spec.holes and spec.question != "entails":
        raise ClaimError("only an entailment has holes")
    match spec.question:
        case "entails":
            split_goal(claim, spec.goal)
        case "model" | "optimum":
            _check_values(claim)
            if not claim.assertions and spec.question == "model":
                raise ClaimError("nothing is asserted: every model is valid")
            if spec.question == "optimum" and claim.objective is None:
                raise ClaimError("nothing is minimised or maximised")
        case "equivalent":
            reference = claim.names.definitions.get(spec.reference)
            if reference is None or reference.parameters:
                raise ClaimError(f"no definition {escaped(spec.reference)} without parameters")
            if spec.reference in spec.uses:
                raise ClaimError("a submission that may use the reference has nothing to do")
    return found


def _holes_late(nodes: Sequence[Node], holes: Sequence[str]) -> list[Node]:
    """Moves the declarations of a claim's holes behind everything that a submission may use. That is all other
    declarations, and the definitions before the first command that mentions a hole."""
    declaring: list[Node] = []
    holding: list[Node] = []
    others: list[Node] = []
    for node in nodes:
        of_a_hole = any(atom.text in holes for atom in atoms([node]))
        if head(node) in DECLARES:
            (holding if of_a_hole else declaring).append(node)
        elif of_a_hole or head(node) == "check-sat":
            others += holding
            holding = []
            others.append(node)
        else:
            others.append(node)
    return [*declaring, *others, *holding]


def split_goal(claim: SmtClaim, name: str) -> tuple[list[Assertion], Assertion]:
    """Splits a claim's assertions into assumptions and goal. The goal is the assertion with a given name; without one,
    the last assertion must be its negation. Raises ClaimError if there is neither."""
    for place, each in enumerate(claim.assertions):
        if each.name == name:
            return [*claim.assertions[:place], *claim.assertions[place + 1 :]], each
    negated = _negated(claim.assertions[-1].body) if claim.assertions else None
    if negated is None:
        raise ClaimError(
            f"no goal: name an assertion, (assert (! ... :named {escaped(name)})), or negate it and assert it last"
        )
    last = claim.assertions[-1]
    return claim.assertions[:-1], Assertion(last.name, claim.elaborator.term(negated), negated)


def _negated(node: Node) -> Node | None:
    """Returns the expression inside a negation, which may stand under `let`; None if it is not a negation."""
    lets: list[Form] = []
    while head(node) == "let" and isinstance(node, Form) and len(node.items) == 3:
        lets.append(node)
        node = node.items[2]
    if head(node) != "not" or not isinstance(node, Form) or len(node.items) != 2:
        return None
    goal = node.items[1]
    for let in reversed(lets):
        goal = Form((*let.items[:2], goal), let.at)
    return goal


def _check_values(claim: SmtClaim) -> None:
    """Raises ClaimError if a claim declares no symbol, or declares sorts: their elements have no literals."""
    if claim.names.sorts:
        raise ClaimError("elements of declared sorts have no literals")
    if not claim.declared:
        raise ClaimError("no symbol is declared that needs a value")


class Satisfiable(StrEnum):
    YES = "sat"
    NO = "unsat"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SolverAnswer:
    satisfiable: Satisfiable
    why: str = ""
    """Reason for `unknown`, in the solver's words."""
    exhausted: bool = False
    """True if the solver ran out of its effort limit."""
    interpretation: Interpretation = field(default_factory=dict)
    """Values for `sat`, of the requested symbols, where our value types can represent them."""
    shown: dict[str, str] = field(default_factory=dict)
    """Values for `sat`, of every constant and function, as text."""


class Translation(ABC):
    """Translator from our terms to one solver's; each sort, symbol and term is translated once."""

    def __init__(self) -> None:
        self._sorts: dict[Sort, Any] = {}
        self._functions: dict[Function, Any] = {}
        self._terms: dict[Term, Any] = {}

    def _term(self, root: Term) -> Any:
        for term in walk([root], self._terms):
            self._terms[term] = self._new_term(term)
        return self._terms[root]

    def _sort(self, sort: Sort) -> Any:
        if sort not in self._sorts:
            self._sorts[sort] = self._new_sort(sort)
        return self._sorts[sort]

    def _function(self, function: Function) -> Any:
        if function not in self._functions:
            self._functions[function] = self._new_function(function)
        return self._functions[function]

    @abstractmethod
    def _new_term(self, term: Term) -> Any:
        """Converts one of our terms to the solver's own; its arguments are converted already, in `_terms`."""

    @abstractmethod
    def _new_sort(self, sort: Sort) -> Any: ...

    @abstractmethod
    def _new_function(self, function: Function) -> Any: ...

"""Proposals of puzzles: bounds and conditions in the language of `constraints`, with one solution, proved by Z3.

Invariants: the label is a solution that the verifier's own arithmetic found to meet every condition, and that Z3 proved
unique, without contradiction by cvc5. A puzzle is refused if a condition is vacuous, if no assignment meets it, or if
each value is written out in it.

A small language for puzzles over integers: names with bounds, and conditions, a line each.

    a, b in 1..9
    c in 0..20
    a * b + c == 31
    a < b
    distinct a, b, c

Pure, with its own grammar: `+`, `-`, `*`, `%` by a positive number, brackets, comparisons, `distinct`. `%` is the
remainder that is never negative, as SMT-LIB's `mod`. Invariants: a parsed puzzle has at most `MOST_NAMES` names, and a
finite number of assignments.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from curriculum.contract.task import Task, asked
from curriculum.proposing.kind import Precedents, Provers, SpecChecker, checked, precedents_in, prompt
from curriculum.proposing.labels import Basis, ProposedQuestion, ProvenLabel, ProvenTask, _minted, statement_digest
from curriculum.proposing.refusals import Reason, RefusedProposal, parts
from runtime.errors import InfrastructureError
from verifiers.contract.kinds import AnswerForm
from verifiers.contract.verdict import Ground, Outcome, SpecProblem, Verdict
from verifiers.registry import ways
from verifiers.registry.spec import Spec
from verifiers.smt.spec import SmtSpec

MOST_NAMES, MOST_LINES, MOST_CHARACTERS, MOST_DEPTH = 8, 40, 1_500, 20
LEAST_ASSIGNMENTS, MOST_ASSIGNMENTS = 50, 10**9
LARGEST = 10_000
COMPARISONS = {"==": "=", "!=": "distinct", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TOKEN = re.compile(r"\s*(?:(\d{1,5})|(distinct\b|[a-z][a-z0-9]{0,3})|(\.\.|==|!=|<=|>=|[-+*%(),<>]))")
_WORDS = ("in", "distinct")


class Tree(NamedTuple):
    """Expression or condition: an operator applied to parts. A leaf has no parts."""

    head: str
    parts: tuple[Tree, ...] = ()

    @property
    def smt(self) -> str:
        """Expression in SMT-LIB notation."""
        return f"({self.head} {' '.join(one.smt for one in self.parts)})" if self.parts else self.head

    @property
    def names(self) -> frozenset[str]:
        """Variable names in the expression."""
        own = frozenset([self.head]) if not self.parts and self.head[0].isalpha() else frozenset()
        return own.union(*(one.names for one in self.parts))


@dataclass(frozen=True)
class Puzzle:
    """Parsed integer puzzle: names with bounds, and conditions."""

    bounds: dict[str, tuple[int, int]]
    """Inclusive bounds by name, in the given order."""
    conditions: tuple[Tree, ...]

    @property
    def claim(self) -> str:
        """SMT-LIB commands that declare the puzzle's names and assert its bounds and conditions."""
        declared = [f"(declare-const {name} Int)" for name in self.bounds]
        within = [f"(assert (<= {_number(low)} {name} {_number(high)}))" for name, (low, high) in self.bounds.items()]
        return "\n".join([*declared, *within, *(f"(assert {one.smt})" for one in self.conditions)])

    @property
    def assignments(self) -> int:
        return math.prod(high - low + 1 for low, high in self.bounds.values())

    @property
    def key(self) -> str:
        """Identity of the puzzle, independent of its names and the order of conditions."""
        order = {name: f"v{place}" for place, name in enumerate(self.bounds)}
        said = sorted(_renamed(one, order).smt for one in self.conditions)
        return hashlib.sha256(repr([list(self.bounds.values()), said]).encode()).hexdigest()


def read_puzzle(text: str) -> Puzzle:
    """Parses an integer puzzle: names with bounds and conditions, a line each. Raises RefusedProposal if invalid."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(text) > MOST_CHARACTERS or len(lines) > MOST_LINES:
        raise RefusedProposal(Reason.UNREADABLE, "too many lines or characters")
    bounds: dict[str, tuple[int, int]] = {}
    conditions: list[Tree] = []
    for line in lines:
        reader = _PuzzleLine(line, bounds)
        if "in" in reader.tokens:
            if conditions:
                raise RefusedProposal(Reason.UNREADABLE, "bounds come before conditions")
            reader.bounds()
        else:
            conditions.append(reader.condition())
    puzzle = Puzzle(bounds, tuple(dict.fromkeys(conditions)))
    used = frozenset().union(*(one.names for one in conditions)) if conditions else frozenset()
    if not 1 <= len(bounds) <= MOST_NAMES or used != bounds.keys():
        raise RefusedProposal(Reason.UNREADABLE, f"one to {MOST_NAMES} names, each in a condition")
    if not LEAST_ASSIGNMENTS <= puzzle.assignments <= MOST_ASSIGNMENTS:
        raise RefusedProposal(Reason.UNCHECKABLE, "too few assignments to have to think, or too many to try")
    return puzzle


class _PuzzleLine:
    """Parses one line of an integer puzzle by recursive descent."""

    def __init__(self, line: str, known: dict[str, tuple[int, int]]) -> None:
        self.tokens: list[str] = []
        self._known = known
        self._at = 0
        place = 0
        line = line.rstrip()
        while place < len(line):
            found = _TOKEN.match(line, place)
            if found is None:
                raise RefusedProposal(Reason.UNREADABLE, "a character that is not in the language")
            self.tokens.append(found[0].strip())
            place = found.end()

    def bounds(self) -> None:
        """Parses a line such as `a, b in 1..9` and stores the bounds of its names."""
        names = [self._name(new=True)]
        while self._take(","):
            names.append(self._name(new=True))
        self._need("in")
        low = self._whole()
        self._need("..")
        high = self._whole()
        self._end()
        if low >= high or len(set(names)) < len(names):
            raise RefusedProposal(Reason.UNREADABLE, "bounds without room, or a name twice")
        self._known.update(dict.fromkeys(names, (low, high)))

    def condition(self) -> Tree:
        """Parses a puzzle's condition: `distinct a, b`, or a comparison."""
        if self._take("distinct"):
            names = [Tree(self._name())]
            while self._take(","):
                names.append(Tree(self._name()))
            self._end()
            if len(set(names)) < max(2, len(names)):
                raise RefusedProposal(Reason.UNREADABLE, "distinct is of two names or more")
            return Tree("distinct", tuple(names))
        left = self._sum(0)
        sign = COMPARISONS.get(self._next())
        if sign is None:
            raise RefusedProposal(Reason.UNREADABLE, "a comparison is missing")
        right = self._sum(0)
        self._end()
        return Tree(sign, (left, right))

    def _sum(self, depth: int) -> Tree:
        if depth > MOST_DEPTH:
            raise RefusedProposal(Reason.UNREADABLE, "nested too deep")
        made = self._product(depth)
        while self._peek() in ("+", "-"):
            made = Tree(self._next(), (made, self._product(depth)))
        return made

    def _product(self, depth: int) -> Tree:
        made = self._factor(depth)
        while self._peek() in ("*", "%"):
            if self._next() == "*":
                made = Tree("*", (made, self._factor(depth)))
                continue
            divisor = self._whole()
            if divisor < 2:
                raise RefusedProposal(Reason.UNREADABLE, "a remainder is by 2 or more")
            made = Tree("mod", (made, Tree(str(divisor))))
        return made

    def _factor(self, depth: int) -> Tree:
        if self._take("("):
            made = self._sum(depth + 1)
            self._need(")")
            return made
        if self._peek().isdigit():
            return Tree(str(self._whole()))
        return Tree(self._name())

    def _name(self, *, new: bool = False) -> str:
        name = self._next()
        if not name[:1].isalpha() or name in _WORDS or (name in self._known) is new:
            raise RefusedProposal(Reason.UNREADABLE, "a name that is not known, or known already")
        return name

    def _whole(self) -> int:
        token = self._next()
        if not token.isdigit() or int(token) > LARGEST:
            raise RefusedProposal(Reason.UNREADABLE, f"a whole number up to {LARGEST} is missing")
        return int(token)

    def _peek(self) -> str:
        return self.tokens[self._at] if self._at < len(self.tokens) else ""

    def _next(self) -> str:
        self._at += 1
        return self.tokens[self._at - 1] if self._at <= len(self.tokens) else ""

    def _take(self, token: str) -> bool:
        if self._peek() != token:
            return False
        self._at += 1
        return True

    def _need(self, token: str) -> None:
        if not self._take(token):
            raise RefusedProposal(Reason.UNREADABLE, f"{token!r} is missing")

    def _end(self) -> None:
        if self._peek():
            raise RefusedProposal(Reason.UNREADABLE, "more than one condition in a line")


def _renamed(tree: Tree, order: dict[str, str]) -> Tree:
    return Tree(order.get(tree.head, tree.head), tuple(_renamed(one, order) for one in tree.parts))


def _integer(value: int) -> str:
    return str(value) if value >= 0 else f"(- {-value})"


SECONDS = 5.0
EFFORT = 500_000
ENTAILED = "entailed"
TURNS, TOKENS = 8, 4_000
_VALUE = re.compile(r"\(define-fun\s+([a-z][a-z0-9]*)\s+\(\)\s+Int\s+(\d+|\(-\s+\d+\))\s*\)")
_ASKS = (
    "Invent a puzzle over whole numbers that has exactly one solution, which takes several steps of thought to find. "
    "Write it in one fenced code block ```puzzle: first lines such as `a, b in 1..9` that bound each name, then a "
    "condition in each line. Conditions are comparisons (== != < <= > >=) of expressions with + - * and % by a number, "
    "or `distinct a, b, c`. All conditions are needed, and the solution is not written in them."
)


class PuzzleProposals:
    name = "puzzle"

    def is_like(self, task: Task) -> bool:
        return isinstance(task.spec, SmtSpec) and task.spec.question == "model"

    def ask(self, rng: Random, precedents: Precedents) -> Task:
        return prompt(self.name, _ASKS + precedents_in(rng, precedents), rng)

    def missing(self) -> str:
        return ""

    def make(self, text: str, provers: Provers) -> ProvenTask:
        written = parts(text, ("puzzle",))["puzzle"]
        puzzle = read_puzzle(written)
        label = solved(puzzle, provers.checker)
        lines = "\n".join(line.strip() for line in written.split("\n") if line.strip())
        form = " ".join(f"({name} {place})" for place, name in enumerate(puzzle.bounds, 1))
        said = (
            f"Find whole numbers that meet all of this; the first lines are bounds, both ends included:\n```puzzle\n"
            f"{lines}\n```\nAnswer in one fenced code block with a value for each name, in this form: ({form})"
        )
        question = ProposedQuestion(
            kind=self.name,
            of=label.of,
            key=f"puzzle:{puzzle.key}",
            messages=asked(said),
            specify=lambda _: SmtSpec(claim=puzzle.claim, question="model", second="none"),
            form=AnswerForm.BLOCK,
            turns=TURNS,
            tokens=TOKENS,
        )
        return checked(question, label, label.answer, provers)


def solved(puzzle: Puzzle, checker: SpecChecker) -> ProvenLabel:
    """Finds a puzzle's only solution, proved unique, as the label. Raises RefusedProposal, InfrastructureError."""
    spec = SmtSpec(claim=puzzle.claim, question="model", effort=EFFORT)
    reply = checker.propose(spec, ways(spec)[0], "", SECONDS)
    if not reply.texts:
        raise RefusedProposal(Reason.CONTRADICTORY if reply.hopeless else Reason.UNPROVED, "no solution was found")
    values = {name: int(re.sub(r"[^-\d]", "", value)) for name, value in _VALUE.findall(reply.texts[0])}
    if values.keys() != puzzle.bounds.keys():
        raise RefusedProposal(Reason.UNPROVED, "the solution cannot be read")
    answer = "(" + " ".join(f"({name} {_number(values[name])})" for name in puzzle.bounds) + ")"
    goal = " ".join(f"(= {name} {_number(values[name])})" for name in puzzle.bounds)
    alone = SmtSpec(claim=f"{puzzle.claim}\n(assert (! (and {goal} true) :named goal))", effort=EFFORT)
    _require(checker, [(spec, answer)], Reason.UNPROVED, "its values do not meet it")
    _require(checker, [(alone, ENTAILED)], Reason.AMBIGUOUS, "another solution exists")
    _refuse_needless(puzzle, values, checker)
    return _minted(Basis.SOLVED, statement_digest("puzzle", puzzle.claim), answer)


def _refuse_needless(puzzle: Puzzle, values: Mapping[str, int], checker: SpecChecker) -> None:
    """Raises RefusedProposal for a puzzle that states its solution or has a vacuous condition."""
    given = sum(
        one.head == "=" and any(len(side.parts) == 0 and side.head in values for side in one.parts)
        and any(side.head.isdigit() for side in one.parts)
        for one in puzzle.conditions
    )  # fmt: skip
    if given >= len(values):
        raise RefusedProposal(Reason.SHOWN, "each value is written in a condition")
    within = Puzzle(puzzle.bounds, ()).claim
    pairs: list[tuple[Spec, str]] = [
        (SmtSpec(claim=f"{within}\n(assert (! {one.smt} :named goal))", effort=EFFORT, second="none"), ENTAILED)
        for one in puzzle.conditions
    ]
    if any(_decided(one).passed for one in checker.check_many(pairs)):
        raise RefusedProposal(Reason.VACUOUS, "a condition that everything meets")


def _require(checker: SpecChecker, pairs: list[tuple[Spec, str]], reason: Reason, detail: str) -> None:
    """Checks all (spec, answer) pairs. Raises RefusedProposal with `reason` and `detail` if one fails, or with
    `Reason.UNPROVED` if one is not settled."""
    for verdict in map(_decided, checker.check_many(pairs)):
        if verdict.ground in (Ground.UNKNOWN, Ground.TIMEOUT, Ground.MEMORY):
            raise RefusedProposal(Reason.UNPROVED, "not settled within the effort that is given")
        if not verdict.passed:
            raise RefusedProposal(reason, detail)


def _decided(found: Verdict | SpecProblem) -> Verdict:
    if isinstance(found, SpecProblem):
        raise RefusedProposal(Reason.UNPROVED, "the solver cannot read it")
    if found.outcome is Outcome.INFRA_ERROR:
        raise InfrastructureError(f"a proof of a proposal failed to run: {found.reason}", hint="run `assay doctor`")
    return found


def _number(value: int) -> str:
    return str(value) if value >= 0 else f"(- {-value})"

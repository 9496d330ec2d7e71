"""Proposals of puzzles: bounds and conditions in the language of `constraints`, with one solution, proved by Z3.

Invariants: the label is a solution that the verifier's own arithmetic found to meet every condition, and that Z3 proved
unique, without contradiction by cvc5. A puzzle is refused if a condition is vacuous, if no assignment meets it, or if
each value is written out in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random

from curriculum.contract.task import Task, asked
from curriculum.proposing.constraints import Puzzle, read_puzzle
from curriculum.proposing.kind import Provers, SpecChecker, checked, examples_of, prompt
from curriculum.proposing.labels import Basis, ProposedQuestion, ProvenLabel, ProvenTask, _minted, statement_digest
from curriculum.proposing.reading import parts
from curriculum.proposing.refusals import Reason, RefusedProposal
from runtime.errors import InfrastructureError
from verifiers.contract.kinds import AnswerForm
from verifiers.contract.verdict import Ground, Outcome, SpecProblem, Verdict
from verifiers.registry import ways
from verifiers.registry.spec import Spec
from verifiers.smt.spec import SmtSpec

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

    def ask(self, rng: Random, references: Sequence[Task]) -> Task:
        return prompt(self.name, _ASKS + examples_of(references), rng)

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
    """Finds a puzzle's only solution, proved unique, and returns it as the label. Raises RefusedProposal, and
    InfrastructureError."""
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

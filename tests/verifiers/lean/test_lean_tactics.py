"""A theorem as a job: a closing tactic proves it, the kernel says so, and a false one is not proved by any."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from appliance.jobs.solve import JobSolver
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.jobs import Job, JobState
from verifiers.contract.protocols import ProposalReply, SolverTools
from verifiers.contract.verdict import Verdict
from verifiers.lean.solvers import TacticSolver, signature
from verifiers.lean.spec import LeanSpec
from verifiers.lean.verifier import LeanVerifier
from verifiers.registry.spec import Spec

AT = "2026-01-01T00:00:00.000+00:00"


class ProofChecker:
    """The Lean of these tests, asked as a checker is."""

    def __init__(self, lean: LeanVerifier) -> None:
        self._lean = lean

    def check_many(self, pairs: Sequence[tuple[Spec, str]]) -> list[Verdict]:
        return [self._lean.verify(spec, text, 120) for spec, text in pairs if isinstance(spec, LeanSpec)]

    def propose(self, spec: Spec, way: str, question: str, seconds: float) -> ProposalReply:
        return ProposalReply()


def solve(lean: LeanVerifier, statement: str, folder: Path) -> tuple[Job, str]:
    """The job as it ended, and the proof."""
    spec = LeanSpec(statement=statement, seconds=120)
    job = Job(id="j1", question="Prove it.", spec=spec, state=JobState.QUEUED, created=AT, updated=AT)
    with SqliteLedger(folder / "ledger.sqlite3") as ledger:
        ended = JobSolver(None, None, ProofChecker(lean), ledger, folder, {}, lambda: AT).solve(job, [])
        artifact = ledger.artifact("j1")
    return ended, "" if artifact is None else artifact.answer


def test_a_tactic_closes_a_theorem_and_the_job_names_it(lean: LeanVerifier, tmp_path: Path) -> None:
    ended, proof = solve(lean, "theorem target (p q : Prop) (h : p) (k : q) : p ∧ q := sorry", tmp_path)
    assert ended.state is JobState.SOLVED, (ended.reason, ended.tried)
    assert ended.solved_by.startswith("lean ")
    assert proof.startswith("theorem target (p q : Prop) (h : p) (k : q) : p ∧ q := by\n")
    assert ended.solved_by.removeprefix("lean ") in proof


def test_a_false_theorem_is_closed_by_none_and_what_was_tried_is_told(lean: LeanVerifier, tmp_path: Path) -> None:
    ended, _ = solve(lean, "theorem target : 1 = 2 := sorry", tmp_path)
    assert (ended.state, ended.solvers_done) == (JobState.QUEUED, True)
    assert any("decide" in line for line in ended.tried)


@pytest.mark.parametrize("proof", ["", " := sorry", " := by\n  sorry", " := rfl"])
def test_the_theorem_is_taken_without_its_proof(proof: str) -> None:
    spec = LeanSpec(statement=f"def one := 1\ntheorem target (n : Nat) : n = n{proof}")
    assert signature(spec) == ("theorem target (n : Nat) : n = n", ())


def test_numbers_of_the_statement_are_tried_by_induction(lean: LeanVerifier) -> None:
    spec = LeanSpec(statement="theorem target (n m : Nat) (k : Nat) : n + m = m + n := sorry")
    tools = SolverTools(ProofChecker(lean), None, {}, "j1", lambda: False)
    tried = [each.by for each in TacticSolver().proposals(spec, "Prove it.", tools, 1.0)]
    assert "lean induction m <;> simp_all" in tried
    assert not any("induction k" in each for each in tried)

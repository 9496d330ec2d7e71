"""An artifact says no more of itself than what carries it."""

from __future__ import annotations

from typing import Any

from tables import table

from appliance.jobs.statement import mark, statement, statement_of
from appliance.records.jobs import MEANING, Job, JobFile, JobState, Validation
from verifiers.contract.statement import Assurance, StatementPart
from verifiers.contract.verdict import Ground, Outcome, Verdict
from verifiers.registry.spec import SPEC, Spec

SPECS: dict[str, dict[str, Any]] = {
    "exact": {"kind": "exact", "expected": "yes"},
    "integer": {"kind": "answer", "notation": "digits", "expected": "6"},
    "expression": {"kind": "answer", "notation": "plain", "domain": "complex", "expected": "2*x", "variables": []},
    "predicate": {"kind": "predicate", "predicate": "7*x + 3 == 45", "domain": "integer"},
    "answer": {"kind": "answer", "expected": "1/2"},
    "tolerance": {"kind": "answer", "expected": "1/3", "absolute": "0.001"},
    "smt": {"kind": "smt", "claim": "(declare-const x Int)(assert (> x 2))(assert (! (> x 1) :named goal))"},
    "lean": {"kind": "lean", "statement": "theorem t : 1 = 1 := sorry"},
    "program": {"kind": "program", "function": "f", "examples": [{"arguments": "1", "expected": "2"}]},
    "checklist": {
        "kind": "checklist",
        "items": [
            {"item": "words", "name": "names Rome", "required": ["Rome"]},
            {"item": "soft", "name": "tone", "point": "The tone is friendly."},
        ],
    },
}
WORD = Validation(
    verdict="meant", shown="a" * 64, person="ada", created="2026-01-02T03:04:05+00:00", key="SHA256:abc", envelope="{}"
)


def spec(name: str, **more: Any) -> Spec:
    return SPEC.validate_python(SPECS[name] | more)


def passed(ground: Ground | None, **evidence: Any) -> Verdict:
    return Verdict(
        outcome=Outcome.PASS,
        score=1.0,
        reason="it holds",
        ground=ground,
        evidence=evidence,
        verifier="the verifier",
        version="7",
        seconds=0.1,
    )


def ground_of(name: str) -> Ground:
    return Ground.TESTED if name in ("program", "checklist") else Ground.PROVED


@table("name", SPECS)
def test_every_kind_says_what_carries_it_and_what_it_leaves_open(name) -> None:
    claims = statement_of(spec(name), passed(ground_of(name)))
    assert claims[0].standing is (Assurance.TESTED if name in ("program", "checklist") else Assurance.PROVED)
    assert "the verifier 7" in claims[0].by
    assert [claim.standing for claim in claims if claim.part == MEANING] == [Assurance.OPEN]
    assert any(claim.standing is Assurance.OPEN and not claim.needed for claim in claims)
    label = "verified by tests" if name in ("program", "checklist") else "verified"
    assert mark(claims) == f"{label}, not validated"
    assert mark(statement_of(spec(name), passed(ground_of(name)), meaning=WORD)) == f"{label} and validated"


@table("name", SPECS)
def test_what_was_not_passed_is_not_verified_whoever_validates_it(name) -> None:
    failed = passed(None).model_copy(update={"outcome": Outcome.INFRA_ERROR, "score": 0.0, "reason": "no sandbox"})
    assert mark(statement_of(spec(name), failed, meaning=WORD)) == "not verified, but validated"
    assert mark(statement_of(spec(name), failed)) == "not verified, not validated"


@table("name", SPECS)
def test_a_pass_without_a_ground_is_never_told_as_a_proof(name) -> None:
    assert Assurance.PROVED not in {claim.standing for claim in statement_of(spec(name), passed(None))}


def test_the_word_that_it_was_not_meant_is_no_validation() -> None:
    against = WORD.model_copy(update={"verdict": "not_meant"})
    claims = statement_of(spec("integer"), passed(Ground.PROVED), meaning=against)
    [meant] = [claim for claim in claims if claim.part == MEANING]
    assert (meant.standing, "ada" in meant.by, "does not" in meant.by) == (Assurance.OPEN, True, True)
    assert mark(claims) == "verified, but not what was meant"


def test_a_proof_that_was_not_replayed_says_so_and_needs_it_only_where_the_statement_asks() -> None:
    claims = statement_of(spec("lean"), passed(Ground.PROVED, kernel_replayed="no", axioms=["propext"]))
    assert "kernel_replayed: no" in claims[0].by
    assert "propext" in claims[0].by
    assert mark(claims) == "verified, not validated"
    asked = statement_of(spec("lean", require_replay=True), passed(Ground.PROVED, kernel_replayed="no"))
    assert mark(asked) == "not verified, not validated"
    yes = statement_of(spec("lean"), passed(Ground.PROVED, kernel_replayed="yes"))
    assert not [claim for claim in yes if "second time" in claim.part]


def test_a_soft_item_is_judged_or_open_and_weakens_the_mark_only_where_it_is_needed() -> None:
    graded = passed(Ground.TESTED, soft=[{"name": "tone", "grade": 0.5}])
    judged = [claim for claim in statement_of(spec("checklist"), graded) if claim.standing is Assurance.JUDGED]
    assert ["grade 0.5" in claim.by for claim in judged] == [True]
    assert mark(statement_of(spec("checklist"), graded, meaning=WORD)) == "verified by tests and validated"
    assert mark(statement_of(spec("checklist", soft_needed=0.5), graded, meaning=WORD)) == "judged and validated"
    unjudged = statement_of(spec("checklist"), passed(Ground.TESTED))
    assert [claim.by for claim in unjudged if "tone" in claim.part] == ["no model judged it"]


def test_a_tolerance_is_no_equality() -> None:
    claims = statement_of(spec("tolerance"), passed(Ground.PROVED))
    assert "within 0.001" in claims[0].part
    assert [claim.standing for claim in claims if "is equal" in claim.part] == [Assurance.OPEN]


def test_a_claim_names_what_each_solver_said_and_that_one_alone_was_asked() -> None:
    both = statement_of(spec("smt"), passed(Ground.PROVED, solvers={"z3": "unsat", "cvc5": "unsat"}))
    assert "z3 says unsat, cvc5 says unsat" in both[0].by
    alone = statement_of(spec("smt"), passed(Ground.PROVED, solvers={"z3": "unsat"}))
    assert [claim.part for claim in alone if "second solver" in claim.part] == ["that a second solver agrees"]


@table("evidence", [{"solvers": "z3"}, {"soft": {"name": 1}}, {"axioms": 7}, {"tests": "many"}])
@table("name", ["smt", "lean", "program", "checklist"])
def test_evidence_of_another_shape_breaks_nothing(name, evidence) -> None:
    assert mark(statement_of(spec(name), passed(ground_of(name), **evidence))).endswith("not validated")


def test_files_of_a_job_are_named_and_not_vouched_for() -> None:
    job = Job(
        id="j",
        question="the mean of a",
        spec=spec("integer"),
        files=(JobFile(name="table.csv", sha256="0" * 64, bytes=3),),
        state=JobState.SOLVED,
        validation=WORD,
        created="2026-01-02T03:04:05+00:00",
        updated="2026-01-02T03:04:05+00:00",
    )
    claims = statement(job, passed(Ground.PROVED))
    assert [claim.standing for claim in claims if "table.csv" in claim.part] == [Assurance.OPEN]
    assert mark(claims) == "verified and validated"


def test_nothing_at_all_is_not_verified() -> None:
    assert mark(()) == "not verified, not validated"
    validated = StatementPart(part=MEANING, standing=Assurance.VALIDATED, by="ada")
    assert mark([validated]) == "not verified, but validated"

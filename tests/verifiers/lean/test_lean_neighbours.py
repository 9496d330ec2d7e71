"""What a person is shown of a Lean statement: neighbours of it that the kernel refutes, or proves as well."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from appliance.jobs.validation import page_of
from appliance.records.jobs import Job, JobState
from policies.statements import Page
from verifiers.contract.verdict import Verdict
from verifiers.lean.spec import LeanSpec
from verifiers.lean.verifier import LeanVerifier
from verifiers.registry.spec import Spec

AT = "2026-01-01T00:00:00.000+00:00"


def page(lean: LeanVerifier, statement: str, answer: str | None = None) -> Page:
    def ask(pairs: Sequence[tuple[Spec, str]], seconds: float) -> list[Verdict]:
        return [lean.verify(spec, text, 120) for spec, text in pairs if isinstance(spec, LeanSpec)]

    spec = LeanSpec(statement=statement, seconds=120)
    job = Job(id="j", question="Prove it.", spec=spec, state=JobState.QUEUED, created=AT, updated=AT)
    return page_of(job, answer, ask, lambda: time.monotonic() * 0)


def test_neighbours_of_a_true_statement_are_refuted(lean: LeanVerifier) -> None:
    found = page(lean, "theorem target : 2 + 2 = 4 := sorry", "theorem target : 2 + 2 = 4 := by decide")
    assert [look.accepted for look in found.examples if look.sort == "example"] == [True, True]
    assert {look.what: look.outcome for look in found.examples if look.sort == "mutant"} == {
        "5 in place of the last 4": "refuted",
        "≠ in place of =": "refuted",
    }
    assert found.first == ("All 2 variants that were changed on purpose are rejected",)


def test_of_a_false_statement_the_first_line_says_so(lean: LeanVerifier) -> None:
    found = page(lean, "theorem target (n : Nat) : n + 1 = n := sorry")
    assert found.first[0] == "THE STATEMENT IS FALSE: Lean proves its opposite"


@pytest.mark.parametrize("header", ["variable (n : Nat)\n", ""])
def test_what_cannot_be_settled_or_made_is_said(lean: LeanVerifier, header: str) -> None:
    found = page(lean, f"{header}theorem target (p q : Prop) (h : p ∧ q) : q ∧ p := sorry")
    assert not [look for look in found.examples if look.sort == "mutant"]
    assert any("none could be made" in note if header else "not settled" in note for note in found.notes)

"""Every known proof passes and every known cheat does not, in the boxes that people use."""

from __future__ import annotations

import json

import pytest

from verifiers.contract.verdict import Ground, Outcome
from verifiers.lean import verifier
from verifiers.lean.kind import LEAN
from verifiers.lean.reading.lexer import normalized, words
from verifiers.lean.reading.screening import parts, screen
from verifiers.lean.spec import LeanSpec
from verifiers.lean.statement import read_statement
from verifiers.lean.verifier import LeanVerifier
from verifiers.registry.canaries import Case, cases_of

CASES = list(cases_of(LEAN))
OWN_FAULT = (Ground.TIMEOUT, Ground.MEMORY, Ground.REFUTED, Ground.UNREADABLE)
MOST_EVIDENCE = 20_000


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_canary_is_judged_as_it_has_to_be(lean: LeanVerifier, case: Case) -> None:
    verdict = lean.verify(case.spec, case.submission)
    assert verdict.passed == case.honest, verdict
    assert verdict.outcome is not Outcome.INFRA_ERROR, verdict
    assert not case.suspected or verdict.outcome is Outcome.HACK_SUSPECTED, verdict
    assert verdict.ground is not None
    assert 42 not in case.rows or verdict.ground in OWN_FAULT, verdict
    assert len(json.dumps(verdict.evidence)) < MOST_EVIDENCE


def is_screened(case: Case) -> bool:
    """True if the verdict depends on words: without screening, the others get the verdict that the test above saw."""
    assert isinstance(case.spec, LeanSpec)
    try:
        text = normalized(case.submission)
        found = screen(text, list(words(text)), allowed=parts(case.spec.statement))
        return bool(found or screen(read_statement(case.spec).source))
    except ValueError:
        return True


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if not case.honest and 42 not in case.rows and is_screened(case)],
    ids=lambda case: case.name,
)
def test_no_cheat_passes_when_its_words_are_not_looked_at(
    lean: LeanVerifier, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifier, "screen", lambda *_, **__: [])
    verdict = lean.verify(case.spec, case.submission)
    assert verdict.outcome in (Outcome.FAIL, Outcome.HACK_SUSPECTED), verdict


def test_names_are_unique_and_rows_are_covered() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert {row for case in CASES for row in case.rows} >= set(range(37, 44))
    assert sum(case.honest for case in CASES) >= 20

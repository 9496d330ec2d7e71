"""Every attack on a checklist is refused, every honest text passes, and always for the same reason."""

from __future__ import annotations

import pytest

from verifiers.case import Case
from verifiers.checklists.canaries import SLOW, cases
from verifiers.checklists.hard import HardVerifier
from verifiers.verdict import Outcome

CASES = [case for case in cases() if case.spec != SLOW]
"""The pattern that never ends needs a worker's clock: the self-test has it."""


def test_names_are_unique() -> None:
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_canary_gets_the_verdict_it_deserves(case: Case) -> None:
    verifier = HardVerifier()
    verifier.check(case.spec, prove=True)
    verdict = verifier.verify(case.spec, case.submission)
    assert verdict.passed == case.honest, verdict.reason
    assert (verdict.outcome is Outcome.HACK_SUSPECTED) == case.suspected, verdict.reason
    assert verdict == verifier.verify(case.spec, case.submission)
    assert verdict.score == (1.0 if case.honest else 0.0)
    assert len(verdict.model_dump_json()) < 20_000
    assert verdict.reason.isprintable()

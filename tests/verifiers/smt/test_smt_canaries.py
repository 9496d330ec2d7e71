"""Every attack on a claim is refused, every honest submission passes, and always for the same reason."""

from __future__ import annotations

import pytest

from verifiers.contract.verdict import Outcome
from verifiers.registry.canaries import Case, cases_of
from verifiers.smt.kind import SMT
from verifiers.smt.verifier import SmtVerifier


def test_names_are_unique() -> None:
    names = [case.name for case in cases_of(SMT)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", list(cases_of(SMT)), ids=lambda case: case.name)
def test_a_canary_gets_the_verdict_it_deserves(case: Case) -> None:
    verifier = SmtVerifier()
    verifier.check(case.spec, prove=True)
    verdict = verifier.verify(case.spec, case.submission)
    assert verdict.passed == case.honest, verdict.reason
    assert verdict.outcome is not Outcome.INFRA_ERROR
    assert (verdict.outcome is Outcome.HACK_SUSPECTED) == case.suspected, verdict.reason
    assert verdict == verifier.verify(case.spec, case.submission)
    assert len(verdict.model_dump_json()) < 20_000
    assert verdict.reason.isprintable()

"""Every attack of the canaries fails, every honest program passes, and none of it breaks anything of ours."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from verifiers.contract.verdict import Outcome, Verdict
from verifiers.programs.kind import PROGRAM
from verifiers.programs.verifier import ProgramVerifier
from verifiers.registry.canaries import Case, cases_of

CASES = list(cases_of(PROGRAM))
PARTS = 8
AT_ONCE = 4


def judged(verifier: ProgramVerifier, part: int, *, honest: bool) -> list[tuple[Case, Verdict]]:
    """Every so many-th case, several at once: most of the time is waiting for sandboxes and limits."""
    chosen = [case for case in CASES if case.honest is honest][part::PARTS]
    assert chosen
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(
            zip(chosen, threads.map(lambda case: verifier.verify(case.spec, case.submission), chosen), strict=True)
        )


@pytest.mark.parametrize("part", range(PARTS))
def test_an_attack_never_passes_and_is_judged(verifier: ProgramVerifier, part: int) -> None:
    for case, verdict in judged(verifier, part, honest=False):
        assert verdict.outcome in (Outcome.FAIL, Outcome.HACK_SUSPECTED), (case.name, verdict)
        assert verdict.score == 0.0, (case.name, verdict)
        if case.suspected:
            assert verdict.outcome is Outcome.HACK_SUSPECTED, (case.name, verdict)


@pytest.mark.parametrize("part", range(PARTS))
def test_an_honest_program_passes(verifier: ProgramVerifier, part: int) -> None:
    for case, verdict in judged(verifier, part, honest=True):
        assert verdict.outcome is Outcome.PASS, (case.name, verdict)
        assert verdict.score == 1.0, (case.name, verdict)


def test_every_row_of_the_catalogue_that_concerns_programs_is_tried() -> None:
    tried = {row for case in CASES for row in case.rows}
    assert tried >= set(range(1, 25))


def test_names_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)

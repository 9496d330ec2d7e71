"""Every attack of the canaries fails, every honest program passes, and none of it breaks anything of ours."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from verifiers.case import Case
from verifiers.programs.canaries import cases
from verifiers.programs.verifier import ProgramVerifier
from verifiers.verdict import Outcome, Verdict

CASES = list(cases())
AT_ONCE = 4
Verdicts = dict[str, Verdict]


@pytest.fixture(scope="module")
def verdicts(verifier: ProgramVerifier) -> Verdicts:
    """Of all cases, several at once: most of the time is waiting for sandboxes and limits."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = threads.map(lambda case: verifier.verify(case.spec, case.submission), CASES)
        return dict(zip([case.name for case in CASES], found, strict=True))


@pytest.mark.parametrize("case", [case for case in CASES if not case.honest], ids=lambda case: case.name)
def test_an_attack_never_passes_and_is_judged(verdicts: Verdicts, case: Case) -> None:
    verdict = verdicts[case.name]
    assert verdict.outcome in (Outcome.FAIL, Outcome.HACK_SUSPECTED), verdict
    assert verdict.score == 0.0
    if case.suspected:
        assert verdict.outcome is Outcome.HACK_SUSPECTED, verdict


@pytest.mark.parametrize("case", [case for case in CASES if case.honest], ids=lambda case: case.name)
def test_an_honest_program_passes(verdicts: Verdicts, case: Case) -> None:
    verdict = verdicts[case.name]
    assert verdict.outcome is Outcome.PASS, verdict
    assert verdict.score == 1.0


def test_every_row_of_the_catalogue_that_concerns_programs_is_tried() -> None:
    tried = {row for case in CASES for row in case.rows}
    assert tried >= set(range(1, 25))


def test_names_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)

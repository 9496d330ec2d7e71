"""Every attack on a checklist is refused, every honest text passes, and always for the same reason."""

from __future__ import annotations

from typing import get_args

import pytest

from verifiers.case import Case
from verifiers.checklists.canaries import cases
from verifiers.checklists.canary_lists import SLOW
from verifiers.checklists.hard import HardVerifier
from verifiers.checklists.spec import ChecklistSpec, Guard, SoftItem
from verifiers.verdict import Outcome

CASES = [case for case in cases() if case.spec != SLOW]
"""The pattern that never ends needs a worker's clock: the self-test has it."""


ATTACKS = [case for case in CASES if not case.honest]


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


@pytest.mark.parametrize("guard", get_args(Guard))
def test_every_guard_is_needed(guard: Guard) -> None:
    """Without it an attack passes: the canaries would notice its loss."""
    loose = [(case.spec.model_copy(update={"allowed": (guard,)}), case.submission) for case in ATTACKS]
    assert any(HardVerifier().verify(spec, submission).passed for spec, submission in loose)


@pytest.mark.parametrize(
    "kind", ["words", "length", "count", "headings", "table", "citations", "numbers", "code", "script"]
)
def test_every_sort_of_item_is_needed(kind: str) -> None:
    """Without it an attack passes."""
    for case in ATTACKS:
        assert isinstance(case.spec, ChecklistSpec)
        rest = tuple(item for item in case.spec.items if item.item != kind)
        hard = [item for item in rest if not isinstance(item, SoftItem)]
        changed = case.spec.model_copy(update={"items": rest})
        if hard and len(rest) < len(case.spec.items) and HardVerifier().verify(changed, case.submission).passed:
            return
    pytest.fail(f"no canary depends on {kind} alone")

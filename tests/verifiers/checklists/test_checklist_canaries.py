"""Every attack on a checklist is refused, every honest text passes, and always for the same reason."""

from __future__ import annotations

from typing import get_args

import pytest
from checklist_kit import CASES as ALL
from checklist_kit import SPECS
from tables import table

from verifiers.checklists.hard import HardVerifier
from verifiers.checklists.spec import OLDER, ChecklistSpec, Guard, SoftItem, Unreadable
from verifiers.contract.verdict import Ground, Outcome
from verifiers.registry.canaries import Case

CASES = [case for case in ALL if case.spec != SPECS["slow"]]
"""The pattern that never ends needs a worker's clock: the self-test has it."""


ATTACKS = [case for case in CASES if not case.honest]


def test_names_are_unique() -> None:
    names = [case.name for case in ALL]
    assert len(set(names)) == len(names)


@table("spec", list(dict.fromkeys(case.spec for case in CASES)), ids=lambda spec: spec.items[0].name)
def test_every_list_says_something(spec: ChecklistSpec) -> None:
    HardVerifier().check(spec, prove=True)


@table("case", CASES, ids=lambda case: case.name)
def test_a_canary_gets_the_verdict_it_deserves(case: Case) -> None:
    verifier = HardVerifier()
    verdict = verifier.verify(case.spec, case.submission)
    assert verdict.passed == case.honest, verdict.reason
    assert (verdict.outcome is Outcome.HACK_SUSPECTED) == case.suspected, verdict.reason
    assert verdict == verifier.verify(case.spec, case.submission)
    assert verdict.score == (1.0 if case.honest else 0.0)
    assert len(verdict.model_dump_json()) < 20_000
    assert verdict.reason.isprintable()


UNREADABLE = [case for case in CASES if case.name.startswith("unreadable-")]


@table("case", UNREADABLE, ids=lambda case: case.name)
def test_what_is_not_allowed_is_unreadable_and_the_place_is_named(case: Case) -> None:
    verdict = HardVerifier().verify(case.spec, case.submission)
    assert verdict.ground is Ground.UNREADABLE
    place = verdict.evidence["unreadable"][0]
    assert verdict.reason.startswith(
        f"cannot be read at line {place['line']}, column {place['column']}: {place['what']}"
    )
    assert len(case.submission.split("\n")) >= place["line"]


@table("guard", [*get_args(Guard), *get_args(Unreadable), *OLDER])
def test_every_guard_is_needed(guard: str) -> None:
    """Without it an attack passes: the canaries would notice its loss."""
    loose = [(case.spec.model_copy(update={"allowed": (guard,)}), case.submission) for case in ATTACKS]
    assert any(HardVerifier().verify(spec, submission).passed for spec, submission in loose)


@table("kind", ["words", "length", "count", "headings", "table", "citations", "numbers", "code", "script"])
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

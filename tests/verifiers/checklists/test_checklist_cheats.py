"""Texts that miss their list in a reader's eyes are refused, ordinary texts pass: `cheats_and_controls.jsonl`.

Each line has a list, a text, and why it is what it is. A cheat meets the letter of an item that a reader of the page
would not call fulfilled.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tables import table

from verifiers.checklists.hard import HardVerifier
from verifiers.checklists.spec import ChecklistSpec

FILE = Path(__file__).parent / "cheats_and_controls.jsonl"
CASES: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def test_names_are_unique() -> None:
    assert len({case["name"] for case in CASES}) == len(CASES)


@table("case", CASES, ids=lambda case: case["name"])
def test_a_text_gets_the_verdict_that_a_reader_would_give(case: dict[str, Any]) -> None:
    verifier = HardVerifier()
    spec = ChecklistSpec.model_validate(case["spec"])
    verifier.check(spec)
    verdict = verifier.verify(spec, case["text"])
    assert verdict.passed == case["honest"], f"{case['why']}: {verdict.reason}"

"""Specs and programs, written by somebody who had read the document for users and nothing else.

Each takes a sandbox: `pytest -m slow tests/verifiers/programs/test_program_strangers.py`; every eighth is in the suite,
but for what computes until a limit of 30 seconds ends it: that takes minutes where others have the processors.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from verifiers.contract.verdict import Outcome
from verifiers.programs.spec import ProgramSpec
from verifiers.programs.verifier import ProgramVerifier

FILE = Path(__file__).parent / "strangers.jsonl"
CASES: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


QUICK = [case for case in CASES[::8] if not case["name"].endswith("hangs")]


def named(cases: list[dict[str, Any]], *marks: pytest.MarkDecorator) -> list[Any]:
    return [pytest.param(case, id=case["name"], marks=marks) for case in cases]


@pytest.mark.parametrize(
    "case", [*named(QUICK), *named([case for case in CASES if case not in QUICK], pytest.mark.slow)]
)
def test_a_strangers_program_is_judged_as_its_writer_says(verifier: ProgramVerifier, case: dict[str, Any]) -> None:
    verdict = verifier.verify(ProgramSpec.model_validate(case["spec"]), case["submission"])
    assert verdict.passed == case["honest"], f"{case['why']}: {verdict.reason}"
    assert verdict.outcome is not Outcome.INFRA_ERROR, verdict

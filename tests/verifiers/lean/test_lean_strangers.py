"""Statements and proofs, written by somebody who had read the document for users and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from verifiers.contract.verdict import Outcome
from verifiers.lean.spec import LeanSpec
from verifiers.lean.verifier import LeanVerifier

FILE = Path(__file__).parent / "strangers.jsonl"
CASES: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_strangers_case_is_judged_as_its_writer_says(lean: LeanVerifier, case: dict[str, Any]) -> None:
    verdict = lean.verify(LeanSpec.model_validate(case["spec"]), case["submission"])
    assert verdict.passed == case["honest"], f"{case['why']}: {verdict.reason}"
    assert verdict.outcome is not Outcome.INFRA_ERROR, verdict

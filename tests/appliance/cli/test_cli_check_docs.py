"""docs/verifiers.md says what is there: every field, every ground, every attack, and examples that work."""

from __future__ import annotations

import json
import re
import textwrap
from collections import defaultdict
from pathlib import Path
from typing import get_args

import pytest

from verifiers.answers.spec import AnswerSpec
from verifiers.checklists.files import checklist_from
from verifiers.checklists.spec import ChecklistSpec, HardItem, ItemData, SoftItem
from verifiers.contract.verdict import Ground, Outcome, Verdict
from verifiers.lean.spec import LeanSpec
from verifiers.programs.files import spec_of_toml
from verifiers.programs.spec import ProgramSpec
from verifiers.registry import KINDS
from verifiers.registry.spec import SPEC
from verifiers.selftest_cases import trials
from verifiers.smt.files import claim_spec, default_submission
from verifiers.smt.spec import SmtSpec

TEXT = (Path(__file__).parents[3] / "docs" / "verifiers.md").read_text()
NOTHING_TO_TRY = {27}
"""Is about monitors of what a model says, and no verifier looks at that."""


def section(heading: str) -> str:
    return re.split(r"(?m)^## ", TEXT.split(f"\n## {heading}\n")[1])[0]


def blocks(text: str) -> list[str]:
    """What is set off by four spaces."""
    return [textwrap.dedent(found) for found in re.findall(r"(?:(?:^    .*\n)+\n?)+", text, re.MULTILINE)]


@pytest.mark.parametrize(
    ("heading", "spec"),
    [
        ("Answers", AnswerSpec),
        ("Claims in SMT-LIB", SmtSpec),
        ("Proofs in Lean 4", LeanSpec),
        ("Programs", ProgramSpec),
        ("Checklists", ChecklistSpec),
    ],
)
def test_every_field_of_a_spec_is_described(heading: str, spec: type) -> None:
    text = section(heading)
    missing = [name for name in spec.model_fields if name != "kind" and f"`{name}`" not in text]
    assert missing == []


def test_every_field_of_every_item_of_a_checklist_is_described_with_its_item() -> None:
    text = section("Checklists")
    described = {row.split("`")[1]: row for row in text.splitlines() if row.startswith("| `")}
    missing = [
        (kind.model_fields["item"].default, name)
        for kind in (*get_args(HardItem), SoftItem)
        for name in kind.model_fields
        if f"`{name}`" not in (text if name in ItemData.model_fields else described[kind.model_fields["item"].default])
        if name != "item"
    ]
    assert missing == []


def test_every_field_outcome_and_ground_of_a_verdict_is_described() -> None:
    text = section("A verdict")
    words = [*Verdict.model_fields, *Outcome, *Ground]
    assert [str(word) for word in words if f"`{word}`" not in text] == []


def rows() -> dict[int, set[str]]:
    """Row of the catalogue to the kinds of verifiers that it is tried on."""
    found: dict[int, set[str]] = {}
    for line in TEXT.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0].isdigit():
            assert int(cells[0]) not in found
            found[int(cells[0])] = (
                {kind.name for kind in KINDS} if cells[3] == "all" else set(cells[3].split(", ")) - {"nothing to try"}
            )
    return found


def test_every_attack_of_the_catalogue_is_tried_where_the_catalogue_says() -> None:
    tried = defaultdict(set)
    for trial in trials():
        for row in trial.rows:
            tried[row].add(trial.verifier)
    documented = rows()
    assert set(documented) >= set(range(1, 44))
    assert {row for row, kinds in documented.items() if not kinds} == NOTHING_TO_TRY
    assert {row: kinds - tried[row] for row, kinds in documented.items() if kinds - tried[row]} == {}
    assert set(tried) - set(documented) == set(), "cases of rows that the catalogue does not have"


def test_the_examples_are_specs() -> None:
    answers = [json.loads(found) for found in re.findall(r"^    (\{.*?\})(?:  .*)?$", section("Answers"), re.MULTILINE)]
    assert [SPEC.validate_python(example).kind for example in answers] == ["answer"] * 5
    (claim,) = blocks(section("Claims in SMT-LIB"))
    assert default_submission(claim_spec(claim)) == "entailed"
    (program,) = blocks(section("Programs"))
    assert spec_of_toml(program).function == "median"
    (statement,) = blocks(section("Proofs in Lean 4"))
    (checklist,) = blocks(section("Checklists"))
    assert [item.item for item in checklist_from(checklist, Path()).items] == ["length", "words"]
    assert LeanSpec(statement=statement).statement.startswith("theorem")

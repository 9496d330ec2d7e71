"""The pages on verifiers name every field and every ground, their examples work, and every attack is tried."""

from __future__ import annotations

import json
import re
import textwrap
from collections import defaultdict
from pathlib import Path
from typing import get_args

from tables import table
from typer.testing import CliRunner

from appliance.cli.main import app
from verifiers.answers.spec import AnswerSpec
from verifiers.checklists.files import checklist_from
from verifiers.checklists.spec import ChecklistSpec, HardItem, ItemData, SoftItem
from verifiers.contract.spec_data import SpecModel
from verifiers.contract.verdict import Ground, Outcome, Verdict
from verifiers.exact.spec import ExactSpec
from verifiers.files.spec import FilesSpec
from verifiers.lean.spec import LeanSpec
from verifiers.predicate.spec import PredicateSpec
from verifiers.programs.files import spec_of_toml
from verifiers.programs.spec import ProgramSpec
from verifiers.registry import KINDS
from verifiers.registry.spec import SPEC
from verifiers.selftest.cases import attack_catalogue, catalogue_rows, trials
from verifiers.smt.files import claim_spec, default_submission
from verifiers.smt.spec import SmtSpec

DOCS = Path(__file__).parents[4] / "docs"
NOTHING_TO_TRY = {27}
"""Attacks that no verifier can meet: monitors of what a model says."""


def page(kind: str) -> str:
    return (DOCS / "verifiers" / f"{kind}.md").read_text()


def blocks(text: str) -> list[str]:
    """What is set off by four spaces."""
    return [textwrap.dedent(found) for found in re.findall(r"(?:(?:^    .*\n)+\n?)+", text, re.MULTILINE)]


@table(
    "spec",
    [AnswerSpec, ChecklistSpec, ExactSpec, FilesSpec, LeanSpec, PredicateSpec, ProgramSpec, SmtSpec],
    ids=lambda spec: spec.model_fields["kind"].default,
)
def test_every_field_of_a_spec_is_described(spec: type[SpecModel]) -> None:
    text = page(spec.model_fields["kind"].default)
    missing = [name for name in spec.model_fields if name != "kind" and f"`{name}`" not in text]
    assert missing == []


def test_every_kind_has_a_page() -> None:
    pages = {path.stem for path in (DOCS / "verifiers").glob("*.md")}
    assert {"games" if name == "game" else name for name in KINDS} == pages


def test_every_field_of_every_item_of_a_checklist_is_described_with_its_item() -> None:
    text = page("checklist")
    items = re.split(r"(?m)^- ", text.split("\n## Items\n")[1].split("\n## ")[0])
    missing = [
        (kind.model_fields["item"].default, name)
        for kind in (*get_args(HardItem), SoftItem)
        for name in kind.model_fields
        if name != "item" and f"`{name}`" not in described(items, kind.model_fields["item"].default, name)
    ]
    assert missing == []


def described(items: list[str], item: str, field: str) -> str:
    """The text that has to name a field: that of its item, or the one before all items for a field of all."""
    return items[0] if field in ItemData.model_fields else next(text for text in items if f"`{item}`: " in text)


def test_every_field_outcome_and_ground_of_a_verdict_is_described() -> None:
    text = (DOCS / "verifiers.md").read_text()
    words = [*Verdict.model_fields, *Outcome, *Ground]
    assert [str(word) for word in words if f"`{word}`" not in text] == []


def test_every_attack_of_the_catalogue_is_tried_on_each_kind_that_it_names() -> None:
    tried = defaultdict(set)
    for trial in trials():
        for row in trial.rows:
            tried[row].add(trial.verifier)
    rows = {row.row: row.kinds for row in catalogue_rows()}
    assert {*range(1, 44), 50, 80, 81} - set(rows) == set(), "an attack left the catalogue"
    assert {row for row, kinds in rows.items() if not kinds} == NOTHING_TO_TRY
    assert {row: kinds - tried[row] for row, kinds in rows.items() if kinds - tried[row]} == {}
    assert set(tried) - set(rows) == set(), "cases of rows that the catalogue does not have"


def test_the_catalogue_shows_every_row_and_every_attack() -> None:
    cases = trials()
    text = attack_catalogue(cases)
    assert [row.row for row in catalogue_rows() if f"\n| {row.row} | {row.attack}" not in text] == []
    assert [case.name for case in cases if case.sort == "attack" and f"\n| `{case.name}` |" not in text] == []
    part = attack_catalogue(cases, ["lean"])
    assert "\n## lean\n" in part
    assert "\n## program\n" not in part
    assert "\n| 1 |" not in part


def test_the_command_prints_the_catalogue() -> None:
    result = CliRunner().invoke(app, ["check", "selftest", "--catalogue", "--verifier", "game"])
    assert result.exit_code == 0, result.output
    assert "| 80 | a claimed win" in result.output


def test_the_examples_are_specs() -> None:
    answers = [json.loads(found) for found in re.findall(r"^    (\{.*?\})(?:  .*)?$", page("answer"), re.MULTILINE)]
    assert [SPEC.validate_python(example).kind for example in answers] == ["answer"] * 5
    (claim,) = blocks(page("smt"))
    assert default_submission(claim_spec(claim)) == "entailed"
    (program,) = blocks(page("program"))
    assert spec_of_toml(program).function == "median"
    (statement,) = blocks(page("lean"))
    (checklist,) = blocks(page("checklist"))
    assert [item.item for item in checklist_from(checklist, Path()).items] == ["length", "words"]
    assert LeanSpec(statement=statement).statement.startswith("theorem")

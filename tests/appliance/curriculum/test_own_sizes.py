"""Who adds few rows is told how many are missing, before a night is."""

from __future__ import annotations

from pathlib import Path

import pytest
from tables import table

from appliance.curriculum.own_files import FOLDER
from appliance.curriculum.own_sizes import rows_missing, small_tasksets
from appliance.curriculum.own_tasksets import catalog_in
from appliance.learning.recipes.recipe import Recipe
from appliance.worker.evaluation.anchors import others_with_anchor, rows_of
from appliance.worker.setup.cycle_setup import CycleSetup
from curriculum.contract.task import Split
from curriculum.own.rows import OwnRow, with_levels
from curriculum.own.taskset import OwnContent
from curriculum.sealed import sealed_set
from policies.policy import load
from verifiers.answers.spec import AnswerSpec

POLICY = load()


@table(
    ("sealed", "says"),
    [
        (0, "about 100 more rows are missing"),
        (12, "12 sealed rows, and the policy judges a taskset alone from 20: about 40 more rows are missing"),
        (19, "about 5 more rows are missing"),
        (20, "the observed loss decides once all were asked"),
        (60, "more rows would help"),
        (200, ""),
    ],
)
def test_the_rows_that_are_missing_are_counted(sealed: int, says: str) -> None:
    found = rows_missing(sealed, POLICY)
    assert says in found if says else not found


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with one taskset of sixty rows."""
    rows = with_levels(
        [OwnRow(question=f"What is {n} + 1?", spec=AnswerSpec(expected=str(n + 1)), origin=str(n)) for n in range(60)]
    )
    content = OwnContent(name="sums", licence="", source="test", added="", rows=rows)
    content = content.model_copy(update={"digest": content.rows_digest()})
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "sums.json").write_text(content.model_dump_json(), encoding="utf-8")
    return tmp_path


def test_a_folder_s_small_tasksets_are_named(data: Path) -> None:
    found = small_tasksets(data, ["arithmetic", "own/sums"], POLICY)
    assert found.keys() == {"own/sums"}
    assert "more rows are missing" in found["own/sums"]
    assert small_tasksets(data, ["own/gone"], POLICY) == {}


def test_an_evaluation_records_how_many_sealed_rows_there_are(data: Path) -> None:
    catalog = catalog_in(data)
    names = ("arithmetic", "own/sums")
    sealed = sealed_set(40, 1, tasksets=names, catalog=catalog)
    rows = rows_of(CycleSetup("c", 0, Recipe(), names, sealed, catalog))
    assert rows == {"own/sums": len(catalog.finite("own/sums").keys(Split.SEALED))}
    assert 0 < rows["own/sums"] < 20


def test_a_taskset_with_an_anchor_is_asked_although_training_leaves_it_out(data: Path) -> None:
    made = {"own/sums": "x"}
    beside = others_with_anchor(["arithmetic", "own/gone", "own/sums"], catalog_in(data, []), data, made, None)
    assert beside.names == ("arithmetic",)
    assert beside.not_askable["own/gone"] == "no such taskset: 'own/gone'"
    assert "not certified" in beside.not_askable["own/sums"]
    assert "own/sums" in beside.catalog.tasksets

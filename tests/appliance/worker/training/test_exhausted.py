"""A family of tasks that has nothing new to ask is named once a night."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from appliance.learning.recipes.recipe import Recipe
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import Cycle, CycleState
from appliance.worker.setup.cycle_setup import CycleSetup, TrainingRules
from appliance.worker.setup.progress import CycleProgress
from appliance.worker.training.known_levels import say_exhausted
from curriculum.contract.task import Split
from curriculum.own.rows import OwnRow, with_levels
from curriculum.own.taskset import OwnContent, OwnTaskset
from curriculum.registry import BUILT_IN
from curriculum.sealed import sealed_set
from verifiers.answers.spec import AnswerSpec

NAMES = ("own/words", "arithmetic", "divisors")
AT = "2026-03-01T02:00:00+00:00"


def test_a_family_without_new_questions_is_named_once_with_its_rows(tmp_path: Path) -> None:
    rows = [
        OwnRow(question=f"Say the word {at}", spec=AnswerSpec(expected="1"), answer="1", origin="w") for at in range(30)
    ]
    own = OwnTaskset(OwnContent(name="words", added="", rows=with_levels(rows), digest="0" * 64))
    asked = own.keys(Split.TRAIN)
    catalog = BUILT_IN.with_domain("own", [own])
    setup = CycleSetup("n", 1, Recipe(), NAMES, sealed_set(4, 1, tasksets=("digits",)), catalog)
    with SqliteLedger(tmp_path / "ledger.sqlite3") as ledger:
        cycle = Cycle(id="n", kind="night", seed=1, plan={}, phase="", state=CycleState.RUNNING, created=AT, updated=AT)
        progress = CycleProgress(cycle, ledger, lambda: 0.0)
        for _ in ("the first stage", "the second stage"):
            rules = TrainingRules(shares=dict.fromkeys(NAMES, 40.0), met=asked)
            stream = setup.training_tasks(rules, exhausted=partial(say_exhausted, progress, catalog))
            assert [len(stream.tasks(step, 6)) for step in range(2)] == [6, 6]
        [(_, event)] = ledger.events(after=0, limit=10)
    assert event.kind == "warning"
    assert event.text.startswith("own/words has too few questions that recent cycles did not ask")
    assert f"(0 of its {len(asked)} training rows)" in event.text

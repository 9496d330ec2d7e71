"""Somebody's text that copies what an earlier night was judged by is trained on by no later one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from records_of_nights import SEED, judged, put_night

from appliance.curriculum.kept_files import recent_questions
from appliance.curriculum.separation_audit import audit_separation
from appliance.learning.recipes.recipe import Recipe
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.training import StepRecord
from appliance.worker.setup.cycle_setup import CycleSetup, TrainingRules
from appliance.worker.setup.progress import apart
from curriculum.contract.task import Split, Task
from curriculum.own.rows import OwnRow, split_of_question, with_levels
from curriculum.own.taskset import OwnContent, OwnTaskset
from curriculum.registry import BUILT_IN
from curriculum.sealed import TaskStream, sealed_set
from verifiers.answers.spec import AnswerSpec

NAMES = ("modular_arithmetic", "calendars")
EARLIER = sealed_set(12, SEED, tasksets=NAMES)
OWN = "own/copies"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with SqliteLedger(tmp_path / "ledger.sqlite3") as ledger:
        put_night(ledger, tmp_path, EARLIER, [], [])
        yield ledger


def copies() -> OwnTaskset:
    """An owner's rows for training: one nearly asks what the earlier night kept apart, the others are clean."""
    spec = AnswerSpec(expected="1")
    near = (f"{EARLIER.tasks[1].question} Thank you, reader {at}!" for at in range(50))
    clean = (
        f"How many {animal} are in {at + 2} baskets of one each?" for at in range(20) for animal in ("owls", "cats")
    )
    texts = [next(text for text in near if split_of_question(text) is Split.TRAIN)]
    texts += [text for text in clean if split_of_question(text) is Split.TRAIN]
    rows = [OwnRow(question=text, spec=spec, answer="1", origin=f"f:{at}") for at, text in enumerate(texts)]
    return OwnTaskset(OwnContent(name="copies", added="", rows=with_levels(rows), digest="0" * 64))


def drawn(earlier: tuple[Task, ...]) -> list[Task]:
    """What a later night would train on, of the owner's rows alone."""
    catalog = BUILT_IN.with_domain("own", [copies()])
    tonight = sealed_set(4, 99, tasksets=("digits",))
    setup = CycleSetup("night-2", 8, Recipe(), ("digits", OWN), tonight, catalog, earlier)
    rules = TrainingRules(shares={OWN: 100.0}, met=frozenset())
    return setup.training_tasks(rules).tasks(0, len(copies().content.rows) - 1)


def unclean(ledger: SqliteLedger, data: Path, tasks: list[Task]) -> int:
    night = ledger.cycle("night-1")
    assert night is not None
    ledger.put_cycle(night.model_copy(update={"id": "night-2"}))
    records = tuple(task.record() for task in tasks)
    ledger.commit_step(StepRecord(cycle="night-2", step=0, tasks=records, judged=(), groups=(), metrics={}))
    return audit_separation(ledger, data, lambda path: []).met


def test_an_owner_s_copy_of_an_older_question_makes_the_audit_unclean_no_more(
    ledger: SqliteLedger, tmp_path: Path
) -> None:
    earlier = tuple(recent_questions(tmp_path, ledger.cycles(30), BUILT_IN))
    assert {task.id for task in earlier} == {task.id for task in EARLIER.tasks}
    assert unclean(ledger, tmp_path, drawn(earlier)) == 0


def test_with_only_tonight_s_questions_at_the_door_the_audit_found_it(ledger: SqliteLedger, tmp_path: Path) -> None:
    assert unclean(ledger, tmp_path, drawn(())) == 1


def test_an_older_question_in_a_tool_s_result_is_not_learned_from() -> None:
    task = TaskStream(Split.TRAIN, 1, EARLIER.questions, tasksets=("digits",)).tasks(0, 1)[0]
    told = judged(task, output=f"notes\n{EARLIER.tasks[2].question}\n")
    setup = CycleSetup("n", 8, Recipe(), ("digits",), sealed_set(4, 99, tasksets=("digits",)), earlier=EARLIER.tasks)
    assert apart([told], {task.id: task}, setup.kept_of_recent)[0] == []
    assert apart([told], {task.id: task}, setup.kept)[0] == [told]


def test_a_set_without_a_file_is_made_again_and_one_that_cannot_be_is_left_out(
    ledger: SqliteLedger, tmp_path: Path
) -> None:
    night = ledger.cycle("night-1")
    assert night is not None
    items = {"evaluation": {"sealed_items": 12}}
    known = night.model_copy(update={"id": "no-file", "plan": {"recipe": items, "tasksets": NAMES}})
    gone = known.model_copy(update={"plan": {"recipe": items, "tasksets": ("own/gone",)}})
    made = recent_questions(tmp_path, [known, gone, night], BUILT_IN)
    assert {task.id for task in made} == {task.id for task in EARLIER.tasks}

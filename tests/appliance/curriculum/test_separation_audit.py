"""The audit finds what was planted in a ledger, wherever it lies, and is clean where nothing was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from checkpoint_records import checkpoint_record
from records_of_nights import AT, SEED, judged, put_decision, put_night
from records_of_nights import verdict as judging
from typer.testing import CliRunner

from appliance.cli.main import app
from appliance.curriculum.copy_bearing import CopyBearing
from appliance.curriculum.kept_files import (
    KeptLesson,
    is_sealed_set,
    keep_lessons,
    keep_questions,
    kept_lessons,
    kept_questions,
    trained_until,
)
from appliance.curriculum.separation_audit import SeparationReport, audit_separation
from appliance.ledger.ledger import LedgerError
from appliance.ledger.read_only import ReadOnlyLedger
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import SEPARATION, Cycle, CycleState, Event
from appliance.records.rollouts import Message, Role
from appliance.worker.sft.traces import VerifiedTrace, kept_file
from appliance.worker.stages import TRACES
from curriculum.contract.task import Split, Task, asked
from curriculum.registry import BUILT_IN
from curriculum.sealed import SealedSet, TaskStream, sealed_set
from curriculum.seeds import derive
from curriculum.separation.index import SeparationIndex, TrainedQuestions
from curriculum.separation.rules import Check

NAMES = ("modular_arithmetic", "calendars")
SEALED = sealed_set(12, SEED, tasksets=NAMES)
CLEAN = TaskStream(Split.TRAIN, 1, SEALED.questions, tasksets=NAMES).tasks(0, 6)
"""None of them is a copy: the tests below hold them against the sealed ones."""
NO_CALL = Message(parent=None, role=Role.USER, ids=(1,), sampled=False)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with SqliteLedger(tmp_path / "ledger.sqlite3") as ledger:
        yield ledger


def audited(ledger: SqliteLedger, data: Path) -> SeparationReport:
    return audit_separation(ledger, data, lambda path: [])


def train_copy(task: Task, **changes: object) -> Task:
    return task.model_copy(update={"split": Split.TRAIN, "seed": 4, **changes})


def test_a_clean_ledger_is_clean_and_what_was_thrown_out_is_added_up(ledger: SqliteLedger, tmp_path: Path) -> None:
    put_night(ledger, tmp_path, SEALED, [judged(task) for task in CLEAN], CLEAN)
    for count in (2.0, 1.0):
        ledger.put_event(Event(kind=SEPARATION, text="", figures={"owner/exact": count}, created=AT))
    report = audited(ledger, tmp_path)
    assert report.clean, report
    assert (report.sealed, report.tasks, report.results, report.met) == (12, 6, 6, 0)
    assert report.thrown_out == {"owner/exact": 3}


def test_a_sealed_question_that_was_trained_on_is_found(ledger: SqliteLedger, tmp_path: Path) -> None:
    planted = train_copy(SEALED.tasks[0])
    put_night(ledger, tmp_path, SEALED, [judged(planted)], [*CLEAN, planted])
    report = audited(ledger, tmp_path)
    assert [(one.kept, one.check) for one in report.copies] == [(SEALED.tasks[0].id, Check.KEY)]
    assert not report.clean


def test_a_near_copy_by_somebody_else_is_found(ledger: SqliteLedger, tmp_path: Path) -> None:
    text = SEALED.tasks[1].question.replace("Give", "Please give", 1)
    planted = train_copy(SEALED.tasks[1], taskset="somebody's", key="", messages=asked(f"{text} Thank you!"))
    put_night(ledger, tmp_path, SEALED, [], [planted])
    report = audited(ledger, tmp_path)
    assert [one.kept for one in report.copies] == [SEALED.tasks[1].id]


def test_a_sealed_question_in_the_result_of_a_tool_is_found(ledger: SqliteLedger, tmp_path: Path) -> None:
    output = f"notes.txt\n{SEALED.tasks[2].question}\n42\n"
    put_night(ledger, tmp_path, SEALED, [judged(CLEAN[0], output=output)], CLEAN)
    report = audited(ledger, tmp_path)
    assert [(one.kept, one.task) for one in report.copies] == [(SEALED.tasks[2].id, CLEAN[0].id)]


def test_results_of_tools_that_were_pruned_are_not_taken_for_clean(ledger: SqliteLedger, tmp_path: Path) -> None:
    silent = judged(CLEAN[0], output="")
    quiet = silent.model_copy(
        update={"rollout": silent.rollout.model_copy(update={"id": "quiet", "nodes": (NO_CALL,)})}
    )
    put_night(ledger, tmp_path, SEALED, [silent, quiet], CLEAN)
    assert audited(ledger, tmp_path).clean
    ledger.drop_tokens(["night-1"])
    report = audited(ledger, tmp_path)
    assert report.unproved == ("the results of tools in 1 rollouts of night-1 were pruned",)
    assert not report.clean


def test_a_demonstration_is_read_too(ledger: SqliteLedger, tmp_path: Path) -> None:
    put_night(ledger, tmp_path, SEALED, [], CLEAN)
    keep_lessons(tmp_path, "night-1", "warm_start", [KeptLesson(train_copy(SEALED.tasks[3]), ("6",))])
    assert [one.where for one in audited(ledger, tmp_path).copies] == ["demonstration"]
    assert [one.texts for one in kept_lessons(tmp_path, "night-1")] == [("6",)]


def test_a_set_whose_file_is_gone_or_was_changed_is_made_again(ledger: SqliteLedger, tmp_path: Path) -> None:
    planted = train_copy(SEALED.tasks[0])
    put_night(ledger, tmp_path, SEALED, [], [planted])
    [file] = (tmp_path / "separation").glob("*.kept.*")
    file.write_bytes(b"nothing")
    assert kept_questions(tmp_path, "night-1") == []
    report = audited(ledger, tmp_path)
    assert (report.sealed, report.met) == (12, 1)
    assert report.unproved == ()
    assert is_sealed_set(SEALED.tasks, SEALED.digest)
    assert not is_sealed_set(SEALED.tasks[1:], SEALED.digest)


def test_a_set_that_cannot_be_made_again_is_not_taken_for_clean(ledger: SqliteLedger, tmp_path: Path) -> None:
    put_night(ledger, tmp_path, SEALED, [], CLEAN, tasksets=("modular_arithmetic",))
    next((tmp_path / "separation").iterdir()).unlink()
    report = audited(ledger, tmp_path)
    assert report.met == 0
    assert SEALED.digest[:12] in report.unproved[0]
    assert not report.clean


def test_the_command_reads_beside_the_daemon_and_says_what_met(ledger: SqliteLedger, tmp_path: Path) -> None:
    put_night(ledger, tmp_path, SEALED, [], [*CLEAN, train_copy(SEALED.tasks[0])])
    ran = CliRunner().invoke(app, ["curriculum", "audit", "--data", str(tmp_path)])
    assert ran.exit_code == 1, ran.output
    assert f"key of {SEALED.tasks[0].id}" in ran.stdout
    assert SEALED.tasks[0].question not in ran.stdout, "no command shows a sealed question"
    clean = CliRunner().invoke(app, ["curriculum", "audit", "--json", "--data", str(tmp_path)])
    assert '"clean": false' in clean.stdout


def test_a_ledger_that_is_only_read_takes_no_record(ledger: SqliteLedger, tmp_path: Path) -> None:
    with ReadOnlyLedger(tmp_path / "ledger.sqlite3") as reader:
        assert reader.cycles() == []
        with pytest.raises(LedgerError, match="read-only"):
            reader.put_event(Event(kind="x", text="", created=AT))
    with pytest.raises(LedgerError, match="no such ledger"):
        ReadOnlyLedger(tmp_path / "none.sqlite3")


LCM, PRODUCT = (
    BUILT_IN.task("arithmetic", 1, seed, split).model_copy(
        update={"messages": asked(text), "key": text, "spec": BUILT_IN.task("arithmetic", 1, 4, Split.TRAIN).spec}
    )
    for text, split, seed in (
        ("What is the lcm of 21 and 13?", Split.SEALED, 2),
        ("What is the product of 21 and 13?", Split.TRAIN, 4),
    )
)
"""A word apart, with one check: by chance the product is the least common multiple, too."""
LATER = SealedSet((LCM,), derive("sealed", 9))


def put_evaluation_cycle(ledger: SqliteLedger, data: Path, *, decided: bool) -> None:
    """A cycle after `night-1` that asked two models what is a word from what `night-1` trained on."""
    cycle = Cycle(
        id="evaluation-2",
        kind="evaluation",
        seed=9,
        plan={"tasksets": ("arithmetic",)},
        phase="done",
        state=CycleState.DONE if decided else CycleState.CANCELLED,
        created="2026-03-02T02:00:00+00:00",
        updated=AT,
    )
    ledger.put_cycle(cycle)
    ledger.put_sealed_set(LATER.digest, LATER.description)
    keep_questions(data, cycle.id, LATER.tasks)
    if decided:
        put_decision(ledger, cycle.id, LATER, champion="d" * 64)


def put_line(ledger: SqliteLedger) -> None:
    """What that night trained, from a model that somebody brought."""
    ledger.put_checkpoint(checkpoint_record("d" * 64, stage="imported", step=0))
    trained = checkpoint_record("c" * 64, stage="training", step=1)
    ledger.put_checkpoint(trained.model_copy(update={"cycle": "night-1", "parent": "d" * 64}))


def test_what_a_cancelled_evaluation_kept_apart_later_is_a_note(ledger: SqliteLedger, tmp_path: Path) -> None:
    put_night(ledger, tmp_path, SEALED, [], [PRODUCT])
    put_line(ledger)
    put_evaluation_cycle(ledger, tmp_path, decided=False)
    report = audited(ledger, tmp_path)
    assert [(one.check, one.bearing) for one in report.copies] == [(Check.WORD, CopyBearing.NONE)]
    assert (report.clean, report.met, report.noted) == (True, 0, 1)
    ran = CliRunner().invoke(app, ["curriculum", "audit", "--data", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    assert "no decision rests on a copy" in ran.stdout
    assert "are disjoint" not in ran.stdout


def test_a_decision_that_rests_on_a_copy_is_named_with_what_to_do(ledger: SqliteLedger, tmp_path: Path) -> None:
    put_night(ledger, tmp_path, SEALED, [], [PRODUCT])
    put_line(ledger)
    put_evaluation_cycle(ledger, tmp_path, decided=True)
    [copy] = audited(ledger, tmp_path).copies
    assert (copy.bearing, copy.evaluation) == (CopyBearing.DECISION, "evaluation-2.evaluation")
    ran = CliRunner().invoke(app, ["curriculum", "audit", "--data", str(tmp_path)])
    assert ran.exit_code == 1
    assert "the decision of evaluation-2 rests on a copy: `assay model evaluate cccccccccccc`" in ran.stdout
    put_decision(ledger, "evaluation-3", SEALED, champion="d" * 64, at="2026-03-03T02:00:00+00:00")
    again = audited(ledger, tmp_path)
    assert ([one.bearing for one in again.copies], again.clean) == ([CopyBearing.ANEW], True)


def test_what_both_models_had_learned_touches_no_decision(ledger: SqliteLedger, tmp_path: Path) -> None:
    put_night(ledger, tmp_path, SEALED, [], [PRODUCT])
    put_line(ledger)
    further = checkpoint_record("e" * 64, stage="training", step=1)
    ledger.put_checkpoint(further.model_copy(update={"cycle": "night-2", "parent": "c" * 64}))
    put_evaluation_cycle(ledger, tmp_path, decided=False)
    put_decision(ledger, "evaluation-2", LATER, candidate="e" * 64)
    report = audited(ledger, tmp_path)
    assert ([one.bearing for one in report.copies], report.clean) == ([CopyBearing.BOTH], True)


def test_a_sealed_set_is_drawn_clear_of_what_was_trained_on_and_made_again_so(
    ledger: SqliteLedger, tmp_path: Path
) -> None:
    """Steps, demonstrations and a teacher's tasks of every cycle until then; the audit makes the same set again without
    its file."""
    names = ("arithmetic",)
    drawn = sealed_set(40, SEED, tasksets=names)
    short = [task for task in drawn.tasks if TrainedQuestions([task]).meets(task)]
    stepped, shown, taught = short[:3]
    trace = VerifiedTrace(
        task=one_word_from(taught), calls=(), results=(), last="6", verdict=judging(), source="a teacher"
    )
    path = tmp_path / TRACES / "verified.jsonl"
    digest = kept_file(path, [trace])
    path.rename(path.with_name(digest))
    stage = {"stage_1": {"traces": digest}}
    put_night(ledger, tmp_path, drawn, [], [one_word_from(stepped)], tasksets=names, notes=stage)
    keep_lessons(tmp_path, "night-1", "warm_start", [KeptLesson(one_word_from(shown), ())])
    trained = trained_until(ledger, tmp_path, "night-1")
    assert all(map(trained.meets, (stepped, shown, taught)))
    clear = sealed_set(40, SEED, tasksets=names, trained=trained)
    assert not {stepped.id, shown.id, taught.id} & {task.id for task in clear.tasks}
    assert len(clear.tasks) == 40
    index = SeparationIndex(clear.tasks)
    assert not any(index.met_by_task(one_word_from(task)) for task in (stepped, shown, taught))
    ledger.put_sealed_set(clear.digest, clear.description)
    put_decision(ledger, "night-1", clear)
    next((tmp_path / "separation").glob("*.kept.*")).unlink()
    assert [text for text in audited(ledger, tmp_path).unproved if "cannot be regenerated" in text] == []


def one_word_from(task: Task) -> Task:
    words = task.question.split()
    place = next(place for place, word in enumerate(words) if word.isalpha())
    text = " ".join([*words[:place], "other", *words[place + 1 :]])
    return train_copy(task, key=f"key {text}", messages=asked(text))


def test_a_file_that_is_damaged_anywhere_stops_nothing_and_is_named(ledger: SqliteLedger, tmp_path: Path) -> None:
    put_night(ledger, tmp_path, SEALED, [], CLEAN)
    keep_lessons(tmp_path, "night-1", "stage-1", [KeptLesson(one, ()) for one in CLEAN])
    keep_lessons(tmp_path, "night-1", "stage-2", [KeptLesson(one, ()) for one in CLEAN])
    [file] = (tmp_path / "separation").glob("*.stage-2.lessons.*")
    whole = file.read_bytes()
    for place in range(12, len(whole), 29):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        assert len(kept_lessons(tmp_path, "night-1")) == len(CLEAN)
    report = audited(ledger, tmp_path)
    assert report.unproved == ("the demonstrations of night-1, stage-2, cannot be read",)


def test_each_part_with_demonstrations_has_to_have_its_file(ledger: SqliteLedger, tmp_path: Path) -> None:
    stage = {"kind": "sft", "data": "demonstrations"}
    put_night(ledger, tmp_path, SEALED, [], CLEAN, notes={"stages": [stage, stage], "stage_1": {}, "stage_2": {}})
    keep_lessons(tmp_path, "night-1", "stage-1", [KeptLesson(one, ()) for one in CLEAN])
    assert audited(ledger, tmp_path).unproved == ("the demonstrations of night-1, stage-2, are in no file",)

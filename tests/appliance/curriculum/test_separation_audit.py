"""The audit finds what was planted in a ledger, wherever it lies, and is clean where nothing was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from records_of_nights import AT, SEED, judged, put_night
from typer.testing import CliRunner

from appliance.cli.main import app
from appliance.curriculum.kept_files import KeptLesson, is_sealed_set, keep_lessons, kept_lessons, kept_questions
from appliance.curriculum.separation_audit import SeparationReport, audit_separation
from appliance.ledger.ledger import LedgerError
from appliance.ledger.read_only import ReadOnlyLedger
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.events import SEPARATION, Event
from curriculum.contract.task import Split, Task, asked
from curriculum.sealed import TaskStream, sealed_set
from curriculum.separation.rules import Check

NAMES = ("triangles", "calendars")
SEALED = sealed_set(12, SEED, tasksets=NAMES)
CLEAN = TaskStream(Split.TRAIN, 1, SEALED.questions, tasksets=NAMES).tasks(0, 6)
"""None of them is a copy: the tests below hold them against the sealed ones."""


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
    put_night(ledger, tmp_path, SEALED, [], CLEAN, tasksets=("triangles",))
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
        with pytest.raises(LedgerError, match="only read"):
            reader.put_event(Event(kind="x", text="", created=AT))
    with pytest.raises(LedgerError, match="there is no ledger"):
        ReadOnlyLedger(tmp_path / "none.sqlite3")

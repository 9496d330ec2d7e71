"""What of a night's work counts is what the audit log carries: answers of an evaluation, and steps of training."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import ledger_records as made
import pytest

from appliance.audit.log import log_file
from appliance.audit.machine_keys import load_or_make
from appliance.clock import utc_now
from appliance.ledger.audited import AuditedLedger, TamperedError
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.rollouts import Purpose
from appliance.records.training import RolloutFilter


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[AuditedLedger]:
    key = load_or_make(tmp_path, "daemon")
    with AuditedLedger(tmp_path / "ledger.sqlite3", log_file(tmp_path), key, utc_now) as opened:
        yield opened


def execute(ledger: AuditedLedger, text: str) -> None:
    with closing(sqlite3.connect(ledger.data / "ledger.sqlite3", timeout=10)) as connection:
        connection.execute(text)
        connection.commit()


def test_planted_answers_of_an_evaluation_are_not_there_and_changed_ones_are_refused(ledger: AuditedLedger) -> None:
    answers = [made.judged(f"answer-{n}", purpose=Purpose.EVALUATION) for n in range(3)]
    with SqliteLedger(ledger.data / "ledger.sqlite3") as beside:
        beside.put_rollouts(answers)
    cycle, step = answers[0].rollout.cycle, answers[0].rollout.step

    def read() -> list[object]:
        return [*ledger.rollouts(RolloutFilter(cycle=cycle, purpose=Purpose.EVALUATION, step=step), limit=3)]

    assert read() == []
    ledger.put_rollouts(answers)
    assert read() == answers[::-1]
    execute(ledger, "DELETE FROM rollouts WHERE sequence = (SELECT max(sequence) FROM rollouts)")
    with pytest.raises(TamperedError, match="the answers of evaluation"):
        read()


def test_what_was_trained_on_cannot_be_made_less_or_other(ledger: AuditedLedger) -> None:
    """Contamination is looked for in it."""
    steps = [made.step_record(step=step) for step in range(2)]
    for step in steps:
        ledger.commit_step(step)
    cycle = steps[0].cycle
    assert len(ledger.step_tasks(cycle)) == sum(len(step.tasks) for step in steps)
    assert ledger.mismatches(None) == []
    execute(ledger, "DELETE FROM steps WHERE step = 1")
    assert ledger.mismatches(None) == [f"the steps of {cycle} are not those of the log"]
    with pytest.raises(TamperedError, match="the steps of"):
        ledger.step_tasks(cycle)

"""What a person sees who follows a job: one line that changes, or a line for each change."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from appliance.cli.jobs.watch import JobProgress, ended_code
from appliance.records.jobs import Job, JobState
from verifiers.answers.spec import AnswerSpec

AT = "2026-05-01T12:00:00+00:00"


def job(state: JobState, **changes: object) -> Job:
    made = Job(
        id="j", question="q", spec=AnswerSpec(notation="digits", expected="6"), state=state, created=AT, updated=AT
    )
    return made.model_copy(update=changes)


SEEN = [
    job(JobState.QUEUED, reason="waits"),
    job(JobState.RUNNING, step="solver z3\x1b[2J", spent_seconds=1.0),
    job(JobState.RUNNING, step="solver z3\x1b[2J", spent_seconds=2.0),
    job(JobState.RUNNING, step="attempt 1 of 16", tries_done=3, spent_seconds=3.0),
    job(JobState.SOLVED, tries_done=4, reason="verified"),
]


def shown(capsys: pytest.CaptureFixture[str], *, as_json: bool, live: bool) -> str:
    with closing(JobProgress(as_json=as_json, live=live)) as progress:
        for one in SEEN:
            progress.show(one)
    return capsys.readouterr().out


def test_away_from_a_terminal_each_change_is_a_line_and_seconds_are_none(capsys) -> None:
    assert shown(capsys, as_json=False, live=False).splitlines() == [
        "queued, waits",
        "running, solver z3\\x1b[2J",
        "running, attempt 1 of 16, 3 tries done",
        "solved, 4 tries done",
    ]


def test_for_a_program_each_change_is_a_line_of_json(capsys) -> None:
    states = [json.loads(line)["state"] for line in shown(capsys, as_json=True, live=True).splitlines()]
    assert states == ["queued", "running", "running", "solved"]


def test_on_a_terminal_one_line_changes_with_the_seconds_and_is_gone_at_the_end(capsys) -> None:
    out = shown(capsys, as_json=False, live=True)
    assert "\n" not in out
    assert "running, attempt 1 of 16, 3 tries done, 3 s" in out
    assert "\x1b" not in out.replace("\x1b[K", "")
    assert out.endswith("\r\x1b[K")


def test_the_exit_code_says_how_it_ended() -> None:
    codes = {state: int(ended_code(job(state))) for state in JobState if state.ended}
    assert codes == {JobState.SOLVED: 0, JobState.UNSOLVED: 1, JobState.CANCELLED: 1, JobState.FAILED: 5}

"""What a person sees who follows a job: one line that changes, or a line for each change."""

from __future__ import annotations

from contextlib import closing

from appliance.cli.jobs.watch import JobProgress, changes_of, ended_code, line_of
from appliance.client.messages import JobDetail
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


def test_away_from_a_terminal_each_change_is_a_line_and_seconds_are_none() -> None:
    details = [JobDetail(job=one, artifact=None, bundle=None) for one in SEEN]
    assert [line_of(detail.job) for detail in changes_of(details)] == [
        "queued, waits",
        "running, solver z3\x1b[2J",
        "running, attempt 1 of 16, 3 tries done",
        "solved, 4 tries done",
    ]


def test_on_a_terminal_one_line_changes_with_the_seconds_and_is_gone_at_the_end(capsys) -> None:
    with closing(JobProgress()) as progress:
        for one in SEEN:
            progress.show(one)
    out = capsys.readouterr().out
    assert "\n" not in out
    assert "running, attempt 1 of 16, 3 tries done, 3 s" in out
    assert "\x1b" not in out.replace("\x1b[K", "")
    assert out.endswith("\r\x1b[K")


def test_the_exit_code_says_how_it_ended() -> None:
    codes = {state: int(ended_code(job(state))) for state in JobState if state.ended}
    assert codes == {JobState.SOLVED: 0, JobState.UNSOLVED: 1, JobState.CANCELLED: 1, JobState.FAILED: 5}

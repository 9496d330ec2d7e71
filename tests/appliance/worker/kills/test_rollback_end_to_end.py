"""In the middle of a job, its model is taken out of service: the job is put back, and the one before answers it.

`benchmarks/rollback.py` measures the same with a daemon and the command."""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from checkpoint_records import checkpoint_record
from short_nights import AT, FIXTURE

from appliance.config.configuration import Settings
from appliance.learning.checkpoints import publish
from appliance.ledger.sqlite import SqliteLedger
from appliance.promotion.evidence import CHAMPION, PREVIOUS
from appliance.records.jobs import Job, JobState
from appliance.records.training import RolloutFilter
from appliance.worker import work_on_jobs as working
from appliance.worker.setup.context import WorkContext
from appliance.worker.work_on_jobs import JobWatchdog
from benchmarks.rollback import emptied
from verifiers.answers.spec import AnswerSpec


def put_model(context: WorkContext, folder: Path) -> str:
    digest = publish(folder, context.data / "models")
    context.ledger.put_checkpoint(checkpoint_record(digest))
    return digest


def test_a_job_of_a_model_that_is_taken_back_is_answered_by_the_one_before(
    context: WorkContext, ledger: SqliteLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The work stops at its next token, however long that takes on a busy machine.
    monkeypatch.setattr(working, "JobWatchdog", partial(JobWatchdog, grace_seconds=100))
    torch.set_num_threads(1)
    good, bad = put_model(context, FIXTURE), put_model(context, emptied(FIXTURE, tmp_path / "emptied"))
    ledger.set_aliases({CHAMPION: bad, PREVIOUS: good}, "a bad promotion", AT)
    spec = AnswerSpec(notation="digits", expected="6")
    job = Job(
        id="j1",
        question="gcd of 12 and 18?",
        spec=spec,
        attempts=1024,
        solvers_done=True,
        state=JobState.QUEUED,
        created=AT,
        updated=AT,
    )
    ledger.put_job(job)
    settings = Settings.load({"data": str(context.data)}, environ={"HOME": str(tmp_path)}, etc_dir=tmp_path)
    left: list[str] = []
    worker = threading.Thread(
        target=working.work_on_jobs, args=(context, settings), kwargs={"leave": lambda: left.append("x")}
    )
    worker.start()
    deadline = time.monotonic() + 120
    while (seen := ledger.job("j1")) is not None and (seen.weights != bad or seen.tries_done == 0):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    ledger.set_aliases({CHAMPION: good, PREVIOUS: None}, "rollback", AT)
    worker.join(timeout=120)
    ended = ledger.job("j1")
    assert ended is not None
    assert (ended.state, ended.weights, left) == (JobState.SOLVED, good, [])
    artifact = ledger.artifact("j1")
    assert artifact is not None
    assert (artifact.weights, artifact.answer) == (good, "6")
    assert {one.rollout.weights for one in ledger.rollouts(RolloutFilter(job="j1"), limit=2000)} == {good, bad}

"""One of several learners that the kernel kills for want of memory: the night says so, and goes on from its last
checkpoint; no rollout is judged by it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from memory_groups import MIB, limit, memory_group, used
from short_nights import FIXTURE, cycle_of
from test_cluster_night import COUNTS, NIGHT, STEPS

from appliance.config.configuration import Settings
from appliance.learning import rank_processes
from appliance.learning.rank_processes import RankProcesses
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.rollouts import RolloutEnd
from appliance.settings.policy_files import load_policy
from appliance.worker.tasks import run_cycle
from runtime.errors import InfrastructureError
from runtime.settings import RuntimeSettings

ROOM = 32 * MIB
"""That a group has left when another one in it asks for four times as much."""
ASKS = (sys.executable, "-c", "bytes(range(256)) * (1 << 19)")


@pytest.mark.slow  # in the suite: test_learner_process.py, and test_out_of_memory.py of the daemon
def test_a_night_whose_learner_runs_out_of_memory_says_so_and_goes_on_from_its_checkpoint(
    runtime: RuntimeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"data": str(tmp_path), "model.path": str(FIXTURE), "sandbox.broker": str(runtime.broker)}
    given |= {"threads": 2, "model.learners": 2}
    settings = Settings.load(given, environ={}, etc_dir=tmp_path).model_copy(update={"recipe": NIGHT})
    ask, asked, rewards = RankProcesses.ask, [], []

    with memory_group(64 << 30) as group, SqliteLedger(tmp_path / "ledger.sqlite3") as ledger:

        def inside(line: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
            """Starts a process in the group, and returns when it is there."""
            made = subprocess.Popen(["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh", *line], **how)
            while str(made.pid) not in (group / "cgroup.procs").read_text().split():
                assert made.poll() is None
                time.sleep(0.01)
            return made

        def starved(self: RankProcesses, what: str, **message: Any) -> dict[str, Any]:
            asked.append(what)
            if what != "step" or asked.count("step") != 2:
                return ask(self, what, **message)
            rewards.extend(_rewards(ledger))
            os.kill(self.pids[1], signal.SIGSTOP)  # so that it is in the middle of the step for certain
            Path(f"/proc/{self.pids[1]}/oom_score_adj").write_text("1000")
            limit(group, used(group) + ROOM)
            other = inside(ASKS)
            try:
                return ask(self, what, **message)
            finally:
                assert other.wait() == 0, "the kernel took another one"
                limit(group, 64 << 30)

        monkeypatch.setattr(RankProcesses, "ask", starved)
        monkeypatch.setattr(rank_processes, "STOPPED_SECONDS", 600.0)
        known = {name: getattr(subprocess, name) for name in ("DEVNULL", "TimeoutExpired")}
        monkeypatch.setattr(rank_processes, "subprocess", SimpleNamespace(Popen=inside, **known))
        ledger.put_cycle(cycle_of("n", recipe=NIGHT))
        policy = load_policy(tmp_path)
        with pytest.raises(
            InfrastructureError, match="the request to step: memory ran out, and the kernel killed it"
        ) as met:
            run_cycle("train", "n", tmp_path, settings, ledger, policy)
        assert "from the last checkpoint" in met.value.hint
        assert _rewards(ledger) == rewards != []
        run_cycle("train", "n", tmp_path, settings, ledger, policy)
        events = [event.text for _, event in ledger.events(limit=1000) if event.kind == "resume"]
        assert events == ["resumes from step 1"]
        assert ledger.recorded_steps("n") == list(range(STEPS))
        assert ledger.rollout_counts("n") == COUNTS
        assert _rewards(ledger)[: len(rewards)] == rewards


def _rewards(ledger: SqliteLedger) -> list[tuple[str, bool]]:
    """Of the steps on record, each rollout once and none that the infrastructure lost."""
    steps = [ledger.step("n", number) for number in ledger.recorded_steps("n")]
    judged = [one for step in steps if step is not None for one in step.judged]
    assert all(one.rollout.ended is not RolloutEnd.INFRA_ERROR for one in judged)
    found = [(one.rollout.id, one.verdict.passed) for one in judged]
    assert len(set(found)) == len(found)
    return found

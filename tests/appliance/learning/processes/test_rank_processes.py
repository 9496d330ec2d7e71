"""Processes that train leave nothing in memory, however those that had them ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from learning_builders import varied
from test_learning_ranks import SMALL, files_of
from test_learning_trainer import records

from appliance.inference.folder import open_model
from appliance.learning import rank_processes
from appliance.learning.rank_processes import PATIENCE, RankProcesses
from appliance.learning.training.ranked_trainer import RankedTrainer
from appliance.system.process_state import is_stopped
from runtime.errors import InfrastructureError


def test_what_a_killed_process_left_in_memory_goes_with_the_next_ones_and_what_is_held_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_processes, "_memory", lambda: tmp_path)
    left = tmp_path / "assay-ranks-left"
    left.mkdir(mode=0o700)
    (left / "model").write_bytes(b"weights")
    an_hour_ago = time.time() - 3600
    os.utime(left, (an_hour_ago, an_hour_ago))
    with RankProcesses(("cpu",), threads=1) as first:
        assert not left.exists()
        assert b"CUDA_DEVICE_ORDER=PCI_BUS_ID" in Path(f"/proc/{first.pids[0]}/environ").read_bytes().split(b"\0")
        os.utime(first.folder, (an_hour_ago, an_hour_ago))
        with RankProcesses(("cpu",), threads=1):
            assert first.folder.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_one_that_a_signal_holds_ends_all_and_one_that_goes_on_does_not(
    ranks: Callable[[int], RankProcesses], monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = ranks(2)
    os.kill(processes.pids[1], signal.SIGSTOP)
    threading.Timer(1.0, os.kill, (processes.pids[1], signal.SIGCONT)).start()
    with pytest.raises(InfrastructureError, match="failed to step"):  # no model was opened, which both can say
        processes.ask("step", step=0, judged=[], groups=[], told=[])
    processes = ranks(2)
    monkeypatch.setattr(rank_processes, "STOPPED_SECONDS", 1.0)
    os.kill(processes.pids[1], signal.SIGSTOP)
    with pytest.raises(InfrastructureError, match="was stopped by a signal and did not continue") as met:
        processes.ask("step", step=0, judged=[], groups=[], told=[[0.5] * (1 << 18)])  # more than a socket holds
    assert "from the last checkpoint" in met.value.hint
    assert not any(Path(f"/proc/{pid}").exists() for pid in processes.pids)


ASLEEP = """#!{python} -I
import sys, time
from appliance.learning.training import rank
from appliance.learning.ranks import Ranks
real = Ranks.summed
def summed(self, figures):
    if self.number == 1:
        time.sleep(3600)
    return real(self, figures)
Ranks.summed = summed
del sys.argv[1:5]
rank.main()
"""
"""Ranks of which the second sleeps inside of a step."""


def test_one_that_sleeps_inside_of_a_step_ends_all_and_so_does_one_that_never_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    program.write_text(ASLEEP.format(python=sys.executable))
    program.chmod(0o700)
    monkeypatch.setattr(rank_processes.sys, "executable", str(program))
    files = files_of(varied(layers=2), tmp_path / "model")
    with RankProcesses(("cpu", "cpu"), threads=2) as processes:
        learner = RankedTrainer(processes, open_model(files), SMALL, 1, max_tokens=64, companions=files)
        processes.patience = replace(PATIENCE, idle_seconds=5.0)
        with pytest.raises(InfrastructureError, match=r"2 of them, asked to step, did not answer.*for 5 s") as met:
            learner.train_step(0, *records(0))
        assert "from the last checkpoint" in met.value.hint
        assert not any(Path(f"/proc/{pid}").exists() for pid in processes.pids)
        assert not processes.folder.exists()
        with monkeypatch.context() as patched:  # who was ended is not ended again
            patched.setattr(rank_processes.os, "killpg", lambda group, _: pytest.fail(f"{group} may be anybody"))
            processes.close()
    program.write_text("#!/bin/sh\nexec sleep 3600\n")
    with pytest.raises(InfrastructureError, match="1 of them, which started, did not answer"):
        RankProcesses(("cpu",), patience=replace(PATIENCE, idle_seconds=2.0))


OWNER = """
from appliance.learning.rank_processes import RankProcesses
processes = RankProcesses(("cpu",), threads=1)
print(processes.pids[0], flush=True)
input()
"""


def test_one_that_is_busy_ends_with_who_started_it_however_that_ends() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdout
    rank = int(owner.stdout.readline())
    os.kill(rank, signal.SIGSTOP)  # so it does not see that nobody asks any more
    owner.kill()
    owner.communicate()
    latest = time.monotonic() + 60
    try:
        while is_stopped(rank):
            assert time.monotonic() < latest
            time.sleep(0.02)
    finally:
        with suppress(ProcessLookupError):
            os.kill(rank, signal.SIGKILL)

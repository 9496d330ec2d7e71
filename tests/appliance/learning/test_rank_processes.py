"""Processes that train leave nothing in memory, however those that had them ended."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from appliance.learning import rank_processes
from appliance.learning.rank_processes import RankProcesses
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
    with pytest.raises(InfrastructureError, match="was stopped by a signal and did not go on") as met:
        processes.ask("step", step=0, judged=[], groups=[], told=[])
    assert "from the last checkpoint" in met.value.hint
    assert not any(Path(f"/proc/{pid}").exists() for pid in processes.pids)

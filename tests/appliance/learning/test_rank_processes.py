"""Processes that train leave nothing in memory, however those that had them ended."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from appliance.learning import rank_processes
from appliance.learning.rank_processes import RankProcesses


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

"""Jobs of all priorities and a daemon that is killed, in short form; `benchmarks/job_kills.py` has 200 and 20 kills."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import guest_roots as building
import pytest

from benchmarks.job_kills import trial


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a short path: a Unix socket's must stay below 100 bytes."""
    made = Path(tempfile.mkdtemp(prefix="assay-j-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def test_each_job_is_done_once_and_in_order_when_the_daemon_is_killed(folder: Path, guest_roots: Path) -> None:
    tally = trial(6, 1, 1, folder, lambda data: building.lend(guest_roots, data / "run"))
    assert tally.faults == []
    assert tally.states == {"solved": 5, "unsolved": 1}
    assert (tally.kills, tally.starts) == (1, 2)

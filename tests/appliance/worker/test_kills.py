"""kill -9 of everything, in its short form; `benchmarks/kills.py` makes thirty."""

from __future__ import annotations

from pathlib import Path

from benchmarks.kills import FIXTURE, trial


def test_a_killed_night_goes_on_counts_nothing_twice_and_leaves_nothing(tmp_path: Path) -> None:
    tally = trial(kills=2, seed=7, model=FIXTURE, folder=tmp_path, longest=10.0)
    assert tally.faults == []
    assert tally.kills == 2

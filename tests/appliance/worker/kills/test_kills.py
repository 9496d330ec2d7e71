"""kill -9 of everything at random moments; `benchmarks/kills.py` makes thirty, and `test_demo_command.py` is its short
form."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.kills import FIXTURE, trial


@pytest.mark.slow
def test_a_night_killed_twice_at_random_moments_has_no_fault(tmp_path: Path) -> None:
    tally = trial(kills=2, seed=7, model=FIXTURE, folder=tmp_path, longest=10.0)
    assert (tally.faults, tally.kills) == ([], 2)

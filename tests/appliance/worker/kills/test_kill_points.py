"""kill -9 in a push and in a checkpoint, in its short form; `benchmarks/kill_points.py` makes a hundred everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.kill_points import FIXTURE, Trials
from runtime.settings import RuntimeSettings


@pytest.mark.timeout(1_200)
def test_c12_killed_in_a_push_and_in_a_checkpoint_tasks_are_the_same_and_losses_equal_to_the_bit(
    runtime: RuntimeSettings, tmp_path: Path
) -> None:
    tally = Trials(runtime, FIXTURE, tmp_path).trial(2, 3, ("push", "checkpoint"))
    assert tally.faults == []
    assert set(tally.kills) == {"push", "checkpoint"}


@pytest.mark.slow
@pytest.mark.timeout(7_200)
def test_c12_killed_at_a_hundred_points_it_has_no_fault(runtime: RuntimeSettings, tmp_path: Path) -> None:
    tally = Trials(runtime, FIXTURE, tmp_path).trial(100, 0)
    assert (tally.faults, sum(tally.kills.values())) == ([], 100)
    assert tally.replayed > 0

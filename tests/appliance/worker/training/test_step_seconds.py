"""Each second of a training's step is counted once."""

from __future__ import annotations

import pytest

from appliance.worker.training.failure_figures import CHECKPOINT, PUSH, WATCH, StepSeconds


def test_a_step_says_what_its_parts_took_and_how_long_engines_waited() -> None:
    now, worked = [100.0], [7.0]
    seconds = StepSeconds(lambda: now[0], lambda: worked[0])

    def spend(passed: float, engine: float = 0.0) -> None:
        now[0], worked[0] = now[0] + passed, worked[0] + engine

    for _ in range(2):  # the second step has nothing of the first
        with seconds.of(WATCH):
            spend(4.0, engine=3.0)
        with seconds.of(CHECKPOINT):
            spend(2.0)
        with seconds.of(PUSH):
            spend(1.0)
        with seconds.of(PUSH):
            spend(0.5)
        spend(8.0, engine=4.0)  # sampling
        assert seconds.figures() == {"push_seconds": 1.5, "checkpoint_seconds": 2.0, "watch_seconds": 4.0}
        spend(4.5)  # learning
        assert seconds.end() == {"engine_wait_share": pytest.approx(1 - (3 + 1.5 + 4) / 20)}

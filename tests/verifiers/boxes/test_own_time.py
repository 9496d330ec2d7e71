"""A clock counts what was computed: neither how busy the machine is nor how long it took decides."""

from __future__ import annotations

import os
import time

import pytest
from tables import table

from verifiers.boxes.own_time import LAST_PATIENCE, PATIENCE, computed_by, is_over


@table(
    ("computed", "wall", "over"),
    [
        (0.5, 0.5, False),
        (0.5, 8 * 0.5, False),
        (0.99, PATIENCE - 0.01, False),
        (1.0, 1.0, True),
        (1.0, 8.0, True),
        (0.0, 0.99, False),
        (0.0, 1.0, True),
        (0.2, PATIENCE, True),
    ],
)
def test_it_is_over_when_all_was_computed_or_nothing_is_or_nobody_waits_any_longer(
    computed: float, wall: float, over: bool
) -> None:
    assert is_over(computed, wall, 1.0) is over


@pytest.mark.parametrize(
    ("computed", "wall", "over"),
    [
        (0.0, 1.0, False),
        (0.01, 10.0, False),
        (0.9, 59.0, False),
        (1.0, 1.0, True),
        (0.0, 60.0, True),
        (0.9, 60.0, True),
    ],
)
def test_whoever_is_kept_waiting_on_a_full_machine_is_not_taken_to_rest(
    computed: float, wall: float, over: bool
) -> None:
    assert is_over(computed, wall, 1.0, least=60.0) is over


def test_what_a_process_computes_is_counted_and_what_it_rests_is_not() -> None:
    before = computed_by(os.getpid())
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    between = computed_by(os.getpid())
    assert between - before >= 0.05
    time.sleep(0.05)
    assert computed_by(os.getpid()) - between < 0.05


def test_of_a_process_that_is_gone_nothing_is_known() -> None:
    assert computed_by(2**22 + 1) == 0.0


@pytest.mark.parametrize("load", [1, 8, 23, 60])
def test_a_hang_comes_to_the_end_of_its_own_time_on_its_last_attempt(load: int) -> None:
    """Two processors, so many that compute beside it: by arithmetic, ten looks a second."""
    share = min(1.0, 2 / (load + 1))
    walls = (look / 10 for look in range(1, 10_000))
    ended = next(wall for wall in walls if is_over(share * wall, wall, 5.0, patience=LAST_PATIENCE))
    assert share * ended >= 5.0

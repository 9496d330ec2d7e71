"""Figures are measured from work that was done, with right answers, and leave nothing open."""

from __future__ import annotations

import time

import pytest
from lying_pools import LyingPool, telling

from runtime.conformance import Violation, bench, host
from runtime.sandbox import CallStatus, Tier
from runtime.sessions import Sessions


def test_a_spread_is_the_median_and_the_95th_percentile_in_milliseconds() -> None:
    assert bench.spread([0.001 * n for n in range(1, 101)]) == (50.5, 95.05, 100)
    assert bench.spread([0.25]) == (250.0, 250.0, 1)


@pytest.mark.parametrize("tier", list(Tier))
def test_a_warm_call_takes_less_than_a_python_that_is_started(gvisor: Sessions, tier: Tier) -> None:
    assert 0 < bench.warm_calls(gvisor, tier, 50).p50 < bench.python_c(5).p50


def test_calls_a_second_are_counted_over_several_sessions(gvisor: Sessions) -> None:
    began = time.monotonic()
    rate = bench.calls_per_second(gvisor, 3, 300)
    assert rate >= 300 / (time.monotonic() - began)


def test_snapshots_rollbacks_and_branches_have_their_figures(gvisor: Sessions) -> None:
    snapshot, heavy = bench.snapshots(gvisor, 2), bench.snapshots(gvisor, 1, heap_mib=50)
    assert 0 < snapshot.p50 < 120_000
    assert 0 < heavy.p50 < 120_000
    found = [(bench.rollbacks(gvisor, 3, ready=True).p50, bench.rollbacks(gvisor, 3).p50)]
    while found[-1][0] >= found[-1][1] and len(found) < 8:  # what else the machine does may fall upon one side
        found.append((bench.rollbacks(gvisor, 3, ready=True).p50, bench.rollbacks(gvisor, 3).p50))
    assert found[-1][0] < found[-1][1], found
    assert bench.branches(gvisor, 2, 1).times == 1
    assert bench.opened(gvisor, 1).p50 > 0


def test_idle_sandboxes_cost_memory_that_is_counted_once(gvisor: Sessions) -> None:
    found = bench.idle(gvisor, 2, settle_seconds=0.2)
    assert 3 < found.mib < 80


def test_a_figure_of_calls_that_fail_is_none(gvisor: Sessions) -> None:
    broken = LyingPool(gvisor, session=telling(status=CallStatus.DIED))
    with pytest.raises(Violation):
        bench.warm_calls(broken, Tier.SHARED, 3)
    with pytest.raises(Violation, match="output of another"):
        bench.warm_calls(LyingPool(gvisor, session=telling(output="7\n")), Tier.SHARED, 3)


def test_after_a_figure_nothing_is_open(gvisor: Sessions) -> None:
    bench.opened(gvisor, 1)
    before = host.descriptors()
    bench.opened(gvisor, 3)
    bench.branches(gvisor, 2, 1)
    assert host.becomes_true(lambda: host.descriptors() <= before, seconds=120)

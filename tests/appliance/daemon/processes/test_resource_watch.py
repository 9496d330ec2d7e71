"""Work pauses before disk or memory run out, says why, and goes on alone; it does not begin and pause in turns."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from daemon_kit import attempts, dispatched, until
from hypothesis import given
from hypothesis import strategies as st

from appliance.config.configuration import Settings
from appliance.daemon.api.read_models import status_of
from appliance.daemon.contract import NoRoomError
from appliance.daemon.coordination import threads
from appliance.daemon.coordination.core import Core
from appliance.daemon.service.resource_watch import (
    GPUS,
    FreeResources,
    GpuReader,
    GpuState,
    ResourceLimits,
    ResourceWatch,
    free_resources,
    pause_reasons,
    read_gpus,
)
from appliance.records.cycles import CycleState

LIMITS = ResourceLimits(disk_gib=2.0, memory_gib=0.5)
PLENTY = FreeResources(disk_gib=100.0, memory_gib=8.0)
AMOUNTS = st.floats(0, 10, allow_nan=False)


WARMTH = st.floats(0, 120, allow_nan=False)


@given(AMOUNTS, st.none() | AMOUNTS, st.none() | WARMTH, AMOUNTS, WARMTH)
def test_what_may_begin_may_go_on(disk, memory, celsius, limit, most) -> None:
    free = FreeResources(disk, memory, (GpuState(0, celsius, memory),))
    limits = ResourceLimits(limit, limit, limit, most)
    if pause_reasons(free, limits, paused=False):
        assert pause_reasons(free, limits, paused=True)


@pytest.mark.parametrize(
    ("free", "running", "paused"),
    [
        (PLENTY, 0, 0),
        (FreeResources(1.5, 8.0), 0, 1),
        (FreeResources(0.9, 8.0), 1, 1),
        (FreeResources(100.0, 0.7), 0, 1),
        (FreeResources(0.9, 0.4), 2, 2),
        (FreeResources(100.0, None), 0, 0),
    ],
)
def test_each_resource_has_its_reason(free, running, paused) -> None:
    assert len(pause_reasons(free, LIMITS, paused=False)) == running
    assert len(pause_reasons(free, LIMITS, paused=True)) == paused


MINE, FORMER, ELSEWHERE = 4000, 812, 99_999
TWO_GPUS = "0, GPU-a1, 41, 81559\n1, GPU-b2, 93, 81559\n"
USERS = f"GPU-a1, {MINE}, 70000\nGPU-b2, {FORMER}, 81000\nGPU-b2, {ELSEWHERE}, 500\n"


def test_a_gpu_pauses_work_by_what_others_take_and_by_its_warmth_and_never_by_our_own_use() -> None:
    seen = read_gpus(TWO_GPUS, USERS, lambda pid: pid == FORMER)
    assert [(gpu.celsius, round(gpu.left_gib or 0, 2), gpu.others) for gpu in seen] == [
        (41.0, 79.65, ()),
        (93.0, 0.55, (FORMER,)),
    ]
    memory, warmth = pause_reasons(FreeResources(100.0, 8.0, seen), ResourceLimits(0, 0, 1.0, 90.0), paused=False)
    assert memory == "others (process 812) leave 0.5 GiB of GPU 1, and work needs 1"
    assert warmth == "GPU 1 has 93 °C, and work needs less than 90"
    assert pause_reasons(FreeResources(100.0, 8.0, seen), ResourceLimits(0, 0), paused=True) == []


def test_a_gpu_that_cooled_has_to_be_ten_degrees_cooler_before_work_goes_on() -> None:
    limits = ResourceLimits(0, 0, 0, 90.0)
    for celsius, running, paused in ((92.0, 1, 1), (85.0, 0, 1), (79.0, 0, 0)):
        free = FreeResources(100.0, 8.0, (GpuState(0, celsius, None),))
        assert [len(pause_reasons(free, limits, paused=one)) for one in (False, True)] == [running, paused]


@pytest.mark.parametrize(
    "printed",
    [
        "No devices were found\n",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
        "0, GPU-a1, [N/A], [N/A]\n",
        "0, GPU-a1, ERR!, [Insufficient Permissions]\n",
        "0, GPU-a1, nan, inf\n",
        "",
    ],
)
def test_what_the_tool_does_not_say_pauses_nothing(printed: str) -> None:
    seen = read_gpus(printed, f"GPU-a1, {FORMER}, [N/A]\n[N/A]\n", lambda pid: True)
    assert pause_reasons(FreeResources(100.0, 8.0, seen), ResourceLimits(0, 0, 1.0, 90.0), paused=True) == []


def test_the_reader_asks_seldom_and_counts_nobody_whose_process_it_does_not_see() -> None:
    now, asked = [0.0], []

    def run(command) -> str:
        asked.append(command)
        return TWO_GPUS if command == GPUS else f"GPU-a1, 1, 70000\nGPU-b2, {2**30}, 81000\n"

    reader = GpuReader(os.getpid(), run=run, clock=lambda: now[0])
    first, _ = reader.look(), reader.look()
    assert (len(asked), first[0].others, first[1].others) == (2, (1,), ())
    now[0] = 16.0
    reader.look()
    assert len(asked) == 4
    assert GpuReader(os.getpid(), run=lambda command: None).look() == ()


def test_after_a_pause_more_is_needed_than_to_go_on() -> None:
    free = [PLENTY]
    watch = ResourceWatch(lambda: free[0], lambda: LIMITS)
    free[0] = FreeResources(100.0, 0.7)
    watch.require()
    assert watch.pause_reason() == ""
    free[0] = FreeResources(100.0, 0.4)
    assert "0.40 GiB of memory" in watch.pause_reason()
    free[0] = FreeResources(100.0, 0.7)
    with pytest.raises(NoRoomError, match="memory"):
        watch.require()
    free[0] = PLENTY
    watch.require()


@given(st.floats(0.1, 100.0), st.floats(0.01, 0.99))
def test_on_a_machine_that_nobody_else_uses_work_goes_on_however_large_the_limit_is(total, share) -> None:
    limits = ResourceLimits(0.0, share * total, share * total)
    free = FreeResources(1.0, total, (GpuState(0, 40.0, total, total_gib=total),), memory_total_gib=total)
    assert pause_reasons(free, limits, paused=True) == []


def test_on_a_large_limit_more_is_needed_to_begin_than_to_go_on() -> None:
    seen = read_gpus("0, GPU-a1, 41, 81920\n", f"GPU-a1, {FORMER}, 21504\n", lambda pid: True)
    free, limits = FreeResources(1.0, None, seen), ResourceLimits(0, 0, 50.0)
    assert pause_reasons(free, limits, paused=False) == []
    assert pause_reasons(free, limits, paused=True) == [
        "others (process 812) leave 59.0 GiB of GPU 0, and work needs 65"
    ]


def test_this_machine_says_what_it_has(tmp_path: Path) -> None:
    found = free_resources(tmp_path)
    assert found.disk_gib > 0
    assert found.memory_gib is not None
    assert found.memory_gib > 0
    assert free_resources(tmp_path, tmp_path / "none").memory_gib is None


def test_a_cycle_pauses_while_memory_is_low_and_goes_on_alone(data, monkeypatch, lent) -> None:
    monkeypatch.setattr(threads, "WAITING_SECONDS", 0.02)
    child = Path(__file__).parents[1] / "child_worker.py"
    with Core(Settings(data=data), worker=[sys.executable, str(child), "hang-once"]) as running:
        free = [PLENTY]
        running.readiness.watch._look = lambda: free[0]
        running.supervisor.process.look_seconds = 0.05
        cycle = running.cycles.start("night")
        with dispatched(running) as thread:
            thread.wake()
            until(lambda: attempts(data) == 1)
            free[0] = FreeResources(100.0, 0.01)
            until(lambda: "memory" in status_of(running).worker.waits_for)
            assert running.ledger.cycle(cycle.id).state is CycleState.RUNNING
            assert running.ledger.leases.deaths(f"cycle {cycle.id}") == 0
            free[0] = PLENTY
            until(lambda: running.ledger.cycle(cycle.id).state is CycleState.DONE, 180.0)
        assert any("paused" in event.text for _, event in running.ledger.events())

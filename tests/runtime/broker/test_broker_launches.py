"""Sandboxes are handed over ready, to one holder, once; and when they are over, the holder learns why."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from concurrent.futures import Future
from pathlib import Path

import pytest
from broker_kit import JAIL, BrokerProbe, Settings, call, opened, profile, python, result
from sandbox_groups import groups, is_resting

from runtime.broker_api import Handle, Ticket
from runtime.errors import BadRequestError, BusyError, InfrastructureError, RefusedError
from runtime.guest.wire import Op, ReplyKind
from runtime.profile import BackendName, Cause
from runtime.sandbox import Priority


def descriptors(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def test_a_sandbox_is_ready_when_it_is_handed_over_and_gone_when_it_is_ended(probe: BrokerProbe) -> None:
    handle = probe.launch(profile("shared"))
    assert python(handle, "print(6 * 7)") == "42\n"
    assert probe.usage(handle).memory_mib > 5
    assert handle.id in {line.box for line in probe.listing().boxes if line.state == "held"}
    termination = probe.end(handle)
    assert termination.cause is Cause.ASKED
    assert termination.usage.peak_memory_mib > 5
    assert handle.id not in {line.box for line in probe.listing().boxes}
    with pytest.raises(BadRequestError, match="no such sandbox"):
        probe.usage(handle)
    assert probe.end(handle).cause is Cause.DIED


def test_ten_at_once_make_one_golden_image_and_nobody_gets_anothers_sandbox(probe: BrokerProbe) -> None:
    wanted = profile("shared", memory_mib=193)  # nobody else's image
    before = probe.stats()
    asked = [probe.begin_launch(wanted, caller=str(number)) for number in range(10)]
    handles: list[Handle] = [result(answer) for answer in asked]
    assert len({handle.id for handle in handles}) == 10
    for number, handle in enumerate(handles):
        python(handle, f"mine = {number}")
    assert [python(handle, "print(mine)") for handle in handles] == [f"{number}\n" for number in range(10)]
    after = probe.stats()
    assert after["launches_cold"] - before["launches_cold"] == 1
    for handle in handles:
        probe.end(handle)


def test_fresh_sandboxes_begin_alike_but_for_what_the_kernel_draws(probe: BrokerProbe) -> None:
    handles = [opened(probe.launch(profile())) for _ in range(3)]
    drawn = [python(handle, "import random, os; print(random.random(), os.urandom(8).hex())") for handle in handles]
    assert len({line.split()[0] for line in drawn}) == 1  # a history can be repeated in another one
    assert len({line.split()[1] for line in drawn}) == 3
    for handle in handles:
        probe.end(handle)


def test_what_was_used_is_never_handed_over_again(probe: BrokerProbe) -> None:
    seen = set()
    for _ in range(4):
        handle = probe.launch(JAIL)
        assert call(handle, Op.RUN, b"print(left)", session=1).kind == ReplyKind.EXCEPTION
        assert call(handle, Op.RUN, b"left = 1", session=1).kind == ReplyKind.OK
        seen.add(handle.id)
        probe.end(handle)
    assert len(seen) == 4


def test_a_ready_sandbox_is_handed_over_at_once(make_settings: Settings) -> None:
    took = []
    with BrokerProbe.own(make_settings(ready=2)) as probe:
        probe.end(probe.launch(profile("shared")))
        while len(took) < 8 or (min(took) >= 0.03 and len(took) < 80):
            probe.until(lambda figures: figures["ready_copies"] > 0)
            begun = time.monotonic()
            handle = probe.launch(profile("shared"))
            took.append(time.monotonic() - begun)
            probe.end(handle)
        assert probe.stats()["ready_hits"] == len(took)
    assert min(took) < 0.03, took  # under a millisecond where nothing else runs; a start takes 100


def test_a_ready_sandbox_rests_until_it_is_handed_over(make_settings: Settings) -> None:
    with BrokerProbe.own(make_settings(ready=1)) as probe:
        patient = profile("shared", slice_seconds=30.0)
        held = probe.launch(patient)
        probe.until(lambda figures: figures["ready_copies"] == 1)
        (ready,) = (line.box for line in probe.listing().boxes if line.state == "ready")
        assert is_resting(ready)
        assert not is_resting(held.id)
        assert python(held, "print(1)") == "1\n"
        handle = probe.launch(patient)
        assert handle.id == ready
        assert not is_resting(ready)
        assert python(handle, "print(sum(range(3_000_000)))") == "4499998500000\n"  # more than it may rest with


@pytest.mark.parametrize("backend", [BackendName.GVISOR, BackendName.NSJAIL])
def test_cpu_time_and_life_end_by_the_hosts_clock(probe: BrokerProbe, backend: BackendName) -> None:
    busy = probe.launch(profile("shared", backend, cpu_seconds=0.4, slice_seconds=30.0))
    asleep = probe.launch(profile("shared", backend, life_seconds=0.6))
    begun = time.monotonic()
    with pytest.raises(EOFError):
        call(busy, Op.RUN, b"while True: pass", session=1)
    assert time.monotonic() - begun < 120
    while {busy.id, asleep.id} & {line.box for line in probe.listing().boxes}:
        assert time.monotonic() - begun < 120
        time.sleep(0.05)
    spent = probe.end(busy)
    assert spent.cause is Cause.CPU
    assert spent.usage.cpu_seconds > 0.4
    assert probe.end(asleep).cause is Cause.EXPIRED


def test_a_guest_that_ends_or_takes_too_much_memory_is_told_apart(probe: BrokerProbe) -> None:
    dead = probe.launch(profile("shared"))
    for group in groups(f"assay-*.{dead.id}"):
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    with pytest.raises((EOFError, BrokenPipeError)):
        call(dead, Op.PING)
    greedy = opened(probe.launch(profile(process_memory_mib=640)))
    with contextlib.suppress(EOFError):  # the kernel chose one process, or all
        call(greedy, Op.RUN, b"x = [b'x' * (1 << 20) for _ in range(1 << 10)]")
    assert probe.end(greedy).cause is Cause.MEMORY
    assert probe.end(dead).cause is Cause.DIED


def test_a_cancelled_request_is_answered_with_nothing_and_leaves_nothing(probe: BrokerProbe) -> None:
    held = {line.box for line in probe.listing().boxes if line.state == "held"}
    late: list[Handle] = []
    for pause in (0.0, 0.01, 0.03, 0.05):
        on_ready: list[Handle] = []
        ticket = probe.ticket(JAIL, on_ready.append)
        time.sleep(pause)
        cancelled: Future[bool] = Future()

        def cancel(
            ticket: Ticket = ticket, on_ready: list[Handle] = on_ready, cancelled: Future[bool] = cancelled
        ) -> None:
            cancelled.set_result(not on_ready)
            ticket.cancel()

        probe.reactor.call(cancel)
        if cancelled.result(120):
            time.sleep(0.1)
            assert on_ready == []
        late += on_ready
    for handle in late:
        probe.end(handle)
    assert {line.box for line in probe.listing().boxes if line.state == "held"} == held
    assert probe.stats()["waiting"] == 0


def test_a_backend_that_may_not_be_used_is_refused(make_settings: Settings) -> None:
    own = BrokerProbe.own(make_settings(backends=(BackendName.GVISOR,)))
    with own, pytest.raises(RefusedError, match="nsjail is not allowed"):
        own.launch(JAIL)


def test_jobs_go_first_callers_take_turns_and_too_many_are_told(make_settings: Settings) -> None:
    with BrokerProbe.own(make_settings(boxes=2, launches=1, waiting=12, ready=0)) as probe:
        holders = [probe.launch(JAIL) for _ in range(2)]
        order: list[str] = []
        asked = []
        for number, (caller, priority) in enumerate(
            [("flood", Priority.TRAINING)] * 6 + [("late", Priority.TRAINING)] * 2 + [("job", Priority.JOB)]
        ):
            answer = probe.begin_launch(JAIL, caller, priority)
            answer.add_done_callback(lambda done, name=f"{caller}{number}": order.append(name))
            asked.append(answer)
        probe.until(lambda figures: figures["waiting"] == 9)
        more = [probe.begin_launch(JAIL, "flood") for _ in range(5)]
        assert [isinstance(answer.result(120), BusyError) for answer in more[4:]] == [True]
        for handle in holders:
            probe.end(handle)
        while asked:  # two may have come at once
            before = time.monotonic()
            while not (done := [answer for answer in asked if answer.done()]):
                assert time.monotonic() - before < 120
                time.sleep(0.005)
            for answer in done:
                asked.remove(answer)
                probe.end(result(answer))
        assert order[0] == "job8"
        assert {"late6", "late7"} <= set(order[1:6])


@pytest.mark.parametrize("rounds", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_nothing_is_lost_over_many_launches(make_settings: Settings, rounds: int) -> None:
    with BrokerProbe.own(make_settings(ready=2)) as probe:
        assert probe.process is not None
        for _ in range(5):
            probe.end(probe.launch(JAIL))
        settled = lambda figures: figures["boxes_held"] + figures["boxes_ending"] + figures["boxes_starting"] == 0  # noqa: E731
        first = probe.until(settled)
        ours = descriptors(os.getpid())
        for _ in range(rounds):
            handles = [result(answer) for answer in [probe.begin_launch(JAIL) for _ in range(10)]]
            assert call(handles[0], Op.PING).kind == ReplyKind.READY
            for answer in [
                probe.begin(lambda done, handle=handle: probe.client.end(handle, done)) for handle in handles
            ]:
                assert answer.result(120).cause is Cause.ASKED
        last = probe.until(settled)
        assert last["descriptors"] <= first["descriptors"] + 10  # the two that are ready have five each
        assert descriptors(os.getpid()) <= ours + 2
        assert last["rss_mib"] < first["rss_mib"] + 4
        assert last["boxes"] <= 2


def test_a_closed_client_answers_at_once(make_settings: Settings) -> None:
    probe = BrokerProbe.own(make_settings())
    handle = probe.launch(JAIL)
    waiting = probe.begin_launch(profile("shared", memory_mib=201))
    probe.close()
    assert isinstance(waiting.result(120), InfrastructureError)
    assert probe.begin_launch(JAIL).result(120).__class__ is InfrastructureError
    assert probe.end(handle).cause is Cause.DIED
    assert not probe.gone.done()

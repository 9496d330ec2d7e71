"""Rows 60, 61 and 63 of the catalogue: what restored copies share, and who measures time."""

from __future__ import annotations

import json
import time

import pytest
from attack_kit import OK, PATIENCE, TIMEOUT, AttackBench

from runtime.errors import RefusedError
from runtime.profile import BackendName
from runtime.sandbox import Tier

DRAWS = """import json, os, random, secrets, time, uuid
print(json.dumps([random.random(), random.getrandbits(64), os.urandom(8).hex(), str(uuid.uuid4()), secrets.token_hex(8),
    random.SystemRandom().random(), [time.time(), time.monotonic(), time.perf_counter()]]))
"""


def test_copies_of_one_snapshot_draw_other_numbers_and_know_what_time_it_is(bench: AttackBench) -> None:
    if bench.backend is BackendName.NSJAIL:
        with bench.sandbox() as box, pytest.raises(RefusedError):
            box.snapshot()
        return
    with bench.sandbox() as box:
        bench.call(box, "import random\nrandom.seed(5)")
        before = json.loads(bench.call(box, DRAWS).output)
        taken = box.snapshot()
        time.sleep(0.3)
        copies = box.fork(taken, 4)
        try:
            drawn = [json.loads(bench.call(copy, DRAWS).output) for copy in copies]
        finally:
            for copy in copies:
                copy.close()
    for position in range(6):
        assert len({json.dumps(draw[position]) for draw in drawn}) == 4, f"number {position} is the same in copies"
    for *_, (wall, monotonic, counter) in drawn:
        assert abs(wall - time.time()) < 240
        assert wall > before[-1][0]
        assert monotonic >= before[-1][1]
        assert counter >= before[-1][2]


def test_fresh_sandboxes_draw_other_numbers_where_it_matters(bench: AttackBench) -> None:
    """The seeds of `random` are the same in fresh ones, so that a history can be repeated; what keys are made of is
    not."""
    drawn = []
    for _ in range(3):
        with bench.sandbox() as box:
            drawn.append(json.loads(bench.call(box, DRAWS).output))
    for position in (2, 3, 4, 5):
        assert len({json.dumps(draw[position]) for draw in drawn}) == 3
    assert len({json.dumps(draw[0]) for draw in drawn}) == 1


def test_copies_share_nothing_that_came_after(bench: AttackBench) -> None:
    if bench.backend is BackendName.NSJAIL:
        return
    with bench.sandbox() as box:
        bench.call(box, "secret = 'before'\nopen('/work/a', 'w').write('before')")
        taken = box.snapshot()
        bench.call(box, "secret = 'after'\nopen('/work/a', 'w').write('after'); open('/tmp/b', 'w').write('after')")
        copies = box.fork(taken, 2)
        try:
            bench.call(copies[0], "secret = 'sibling'\nopen('/tmp/b', 'w').write('sibling')")
            look = "import os\nprint(secret, open('/work/a').read(), os.path.exists('/tmp/b'))"
            assert bench.call(copies[1], look).output == "before before False\n"
            assert bench.call(box, look).output == "after after True\n"
            box.restore(taken)
            assert bench.call(box, look).output == "before before False\n"
        finally:
            for copy in copies:
                copy.close()


def test_forked_sessions_do_not_see_each_other(bench: AttackBench) -> None:
    tiers = [Tier.SHARED, Tier.PROCESS] + ([Tier.SANDBOX] if bench.backend is BackendName.GVISOR else [])
    for tier in tiers:
        with bench.pool.open(tier=tier) as session:
            assert session.run("x = [1]").status is OK
            children = session.fork(2)
            try:
                assert children[0].run("x.append(2)\nprint(x)").output == "[1, 2]\n"
                assert children[1].run("print(x)").output == "[1]\n"
                assert session.run("print(x)").output == "[1]\n"
            finally:
                for child in children:
                    child.close()


LIES = """import builtins, sys, time
for name in ('time', 'monotonic', 'perf_counter', 'process_time', 'time_ns', 'monotonic_ns', 'perf_counter_ns'):
    setattr(time, name, lambda: 0)
real, time.sleep = time.sleep, lambda seconds: real(0)
real(0.3)
"""


def test_time_is_what_the_host_measured(bench: AttackBench) -> None:
    with bench.sandbox() as box:
        started = time.monotonic()
        result = bench.call(box, LIES)
        passed = time.monotonic() - started
        assert result.status is OK
        assert 0.3 <= result.seconds <= passed
        assert box.usage.seconds >= 0.3


def test_a_guest_that_stops_its_clock_is_late_all_the_same(bench: AttackBench) -> None:
    code = "import time\ntime.monotonic = time.time = lambda: 0\nwhile time.time() < 1: pass"
    with bench.sandbox() as box:
        result = bench.call(box, code, seconds=0.3)
        assert result.status is TIMEOUT
        assert 0.3 <= result.seconds < PATIENCE


def test_processor_time_is_counted_by_the_host_and_ends(bench: AttackBench) -> None:
    spin = "import time\nuntil = time.process_time() + 0.25\nwhile time.process_time() < until: pass"
    with bench.sandbox(cpu_seconds=0.6, call_seconds=60.0) as box:
        statuses = []
        while len(statuses) < 40 and set(statuses) <= {OK}:  # a guest counts time in which others had the processor
            statuses.append(box.run(spin).status)
        assert statuses[-1].value == "cpu"
    assert box.usage.cpu_seconds is not None
    assert 0.6 <= box.usage.cpu_seconds < 6


def test_a_life_has_an_end_by_the_host_s_clock(bench: AttackBench) -> None:
    with bench.sandbox(life_seconds=0.5, call_seconds=600.0) as box:
        result = bench.call(box, "import time\ntime.sleep(600)")
        assert result.status.value == "expired"
        assert result.seconds < PATIENCE

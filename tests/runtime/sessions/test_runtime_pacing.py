"""A call that is waited for with patience: what others took from it does not count, and it ends all the same."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from runtime.errors import BadRequestError, InfrastructureError, SandboxError
from runtime.guest.wire import ReplyKind
from runtime.profile import BoxUsage
from runtime.sandbox import CallStatus, Limits, Tier
from runtime.sessions import Sessions, pacing
from runtime.sessions.outcomes import CallOutcome, LossCause
from runtime.sessions.pacing import Answered, OwnTime, Pace, Spent, Watched, is_over, spent, until_answered

PYTHON = "/usr/bin/python3"
DONE = CallOutcome(ReplyKind.OK, b"", b"", 1.0)
STOPPED = CallOutcome(LossCause.TIMEOUT, b"", b"", 1.0)
FOR_EVER = 1_000.0


def test_a_call_waited_as_long_as_its_two_threads_that_waited_longest() -> None:
    before = BoxUsage(cpu_seconds=1.0, waits={1: 5.0, 2: 0.5})
    assert spent(before, BoxUsage(cpu_seconds=3.0, waits={1: 5.5, 2: 3.0, 3: 1.0})) == Spent(2.0, 3.5)
    assert spent(before, BoxUsage(cpu_seconds=0.5)) == Spent(0.0, 0.0)


@pytest.mark.parametrize(
    ("used", "wall", "over"),
    [
        (Spent(1.9, 0.0), 1.99, False),
        (Spent(0.0, 0.0), 2.0, True),
        (Spent(1.0, 7.0), 8.9, False),
        (Spent(2.0, 7.9), 9.0, True),
        (Spent(0.0, 20.0), 20.0, True),
        (Spent(None, 0.0), 2.0, True),
    ],
)
def test_a_call_ends_by_its_own_time_by_its_computing_or_by_its_wall_clock(
    used: Spent, wall: float, over: bool
) -> None:
    assert is_over(Pace(2.0, 20.0, 1.0), used, wall) is over


def test_several_processors_compute_more() -> None:
    assert not is_over(Pace(2.0, 20.0, 2.0), Spent(3.9, 10.0), 10.0)
    assert is_over(Pace(2.0, 20.0, 2.0), Spent(4.0, 10.0), 10.0)


class CallProbe:
    """What a call that is watched asked for; at first its sandbox had used nothing."""

    def __init__(self, usage: Callable[[], BoxUsage | SandboxError]) -> None:
        self.usage, self.signals, self.fresh = usage, list[str](), True
        self.answer: Future[CallOutcome] = Future()

    def wait(self, pace: Pace) -> Spent:
        def measure(done: Answered) -> None:
            done(BoxUsage() if self.fresh else self.usage())
            self.fresh = False

        def end() -> None:
            self.signals.append("end")
            self.answer.set_result(STOPPED)

        def give_way(others_first: bool) -> None:
            self.signals.append("gives way" if others_first else "as usual")

        return until_answered(self.answer, pace, Watched(measure, give_way, end))


def test_what_is_answered_soon_is_not_looked_at() -> None:
    probe = CallProbe(lambda: pytest.fail("it was looked at"))
    probe.answer.set_result(DONE)
    assert probe.wait(Pace(FOR_EVER, FOR_EVER, 1.0)) == Spent()
    assert probe.signals == []


def test_what_takes_long_gives_way_until_it_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "GIVES_WAY_SECONDS", 0.01)
    probe = CallProbe(BoxUsage)
    waiting = threading.Thread(target=probe.wait, args=(Pace(FOR_EVER, FOR_EVER, 1.0),))
    waiting.start()
    while probe.signals != ["gives way"]:
        time.sleep(0.001)
    probe.answer.set_result(DONE)
    waiting.join()
    assert probe.signals == ["gives way", "as usual"]


def test_what_is_answered_within_its_limit_says_what_it_computed_and_waited() -> None:
    used = BoxUsage(cpu_seconds=0.25, waits={1: 3.0})
    probe = CallProbe(lambda: used)

    def answer() -> None:
        while probe.fresh:  # until it was looked at
            time.sleep(0.001)
        probe.answer.set_result(DONE)

    waiting = threading.Thread(target=answer)
    waiting.start()
    used_up = probe.wait(Pace(FOR_EVER, FOR_EVER, 1.0))
    waiting.join()
    assert used_up.computed == 0.25
    assert used_up.waited >= 3.0, "and what the first look was late by"
    assert probe.signals in ([], ["gives way", "as usual"])


def test_who_gave_way_for_long_has_its_share_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "GIVES_WAY_SECONDS", 0.05)
    begun = time.monotonic()
    probe = CallProbe(lambda: BoxUsage(waits={1: time.monotonic() - begun}))
    probe.wait(Pace(0.05, 0.6, 1.0))
    assert probe.signals == ["gives way", "as usual", "end"]


def test_who_has_a_long_limit_gives_way_no_longer_than_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "GIVES_WAY_SECONDS", 0.01)
    monkeypatch.setattr(pacing, "GIVES_WAY_MOST_SECONDS", 0.05)
    probe = CallProbe(BoxUsage)
    waiting = threading.Thread(target=probe.wait, args=(Pace(FOR_EVER, FOR_EVER, 1.0),))
    waiting.start()
    while len(probe.signals) < 2:
        time.sleep(0.001)
    probe.answer.set_result(DONE)
    waiting.join()
    assert probe.signals == ["gives way", "as usual"]


def test_a_call_that_waits_goes_on_to_the_end_of_its_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "GIVES_WAY_SECONDS", FOR_EVER)
    begun = time.monotonic()
    probe = CallProbe(lambda: BoxUsage(cpu_seconds=0.01, waits={1: time.monotonic() - begun}))
    used = probe.wait(Pace(0.05, 0.3, 1.0))
    assert time.monotonic() - begun >= 0.3
    assert probe.signals == ["end"]
    assert used.waited >= 0.2


def test_where_nobody_says_who_waited_all_wall_clock_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "GIVES_WAY_SECONDS", FOR_EVER)
    probe = CallProbe(lambda: InfrastructureError("it has ended"))
    assert probe.wait(Pace(0.05, FOR_EVER, 1.0)) == Spent()
    assert probe.signals == ["end"]


def weight_of(name: str) -> int:
    for folder, _, files in os.walk("/sys/fs/cgroup"):  # which passes over groups that end meanwhile
        for file in {"cpu.shares", "cpu.weight"}.intersection(files if folder.endswith(f".{name}") else ()):
            return int(Path(folder, file).read_text())
    raise AssertionError(f"no group of {name} has a weight")


def test_a_program_gives_way_while_it_runs(pool: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "GIVES_WAY_SECONDS", 0.01)
    with pool.sandbox(Limits(call_seconds=FOR_EVER)) as box, ThreadPoolExecutor(1) as thread:
        usual = weight_of(box.id)
        assert box.exec([PYTHON, "-c", "pass"], patience=10.0).status is CallStatus.OK
        running = thread.submit(box.exec, [PYTHON, "-c", "import time; time.sleep(1000)"], patience=10.0)
        deadline = time.monotonic() + 120
        while weight_of(box.id) * 4 > usual:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        box.close()
        with pytest.raises(BadRequestError):
            running.result()


def test_one_that_computes_for_its_limit_is_ended_with_its_sandbox(pool: Sessions) -> None:
    with pool.sandbox() as box:
        ended = box.run("while True: pass", seconds=0.5, patience=FOR_EVER)
        assert ended.status is CallStatus.TIMEOUT
        assert ended.computed is not None
        assert ended.computed > 0.1
        with pytest.raises(InfrastructureError):
            box.run("1")


def test_a_call_that_nobody_waits_for_goes_on_for_as_long_as_others_had_the_processors() -> None:
    own = OwnTime(Pace(2.0, 12.0, 1.0))
    assert own.left(BoxUsage(cpu_seconds=5.0, waits={1: 1.0}), 0.1) == pytest.approx(1.9)
    assert own.left(BoxUsage(cpu_seconds=5.5, waits={1: 2.5}), 2.0) == pytest.approx(1.5)
    assert own.left(BoxUsage(cpu_seconds=5.9, waits={1: 99.0}), 11.95) == pacing.MEASURE_PAUSE_SECONDS
    assert own.left(BoxUsage(cpu_seconds=5.9, waits={1: 99.0}), 12.0) is None, "it ends all the same"
    assert not own.is_used_up, "but it did nothing for that"


@pytest.mark.parametrize(
    "usage", [BoxUsage(cpu_seconds=7.0, waits={1: 9.0}), BoxUsage(), InfrastructureError("nobody says it")]
)
def test_it_is_over_by_what_it_computed_rested_or_by_its_wall_clock_where_nobody_says_more(
    usage: BoxUsage | SandboxError,
) -> None:
    own = OwnTime(Pace(2.0, 12.0, 1.0))
    own.left(BoxUsage(cpu_seconds=5.0, waits={1: 1.0}) if isinstance(usage, BoxUsage) and usage.waits else usage, 0.1)
    assert own.left(usage, 2.1) is None
    assert own.is_used_up


def test_what_went_before_a_first_look_that_came_late_does_not_count() -> None:
    own = OwnTime(Pace(2.0, 12.0, 1.0))
    late, later = BoxUsage(cpu_seconds=5.0), BoxUsage(cpu_seconds=5.5)
    assert own.left(late, 7.0) == pytest.approx(1.9)
    assert own.left(later, 8.0) == pytest.approx(0.9)
    assert own.left(later, 9.0) is None, "it rested"
    assert OwnTime(Pace(2.0, 12.0, 1.0)).left(late, 12.0) is None, "every call ends with its wall clock"


def test_more_time_counts_from_the_look_however_late_that_came() -> None:
    own = OwnTime(Pace(2.0, 12.0, 1.0))
    own.left(BoxUsage(cpu_seconds=5.0), 0.1)
    late = BoxUsage(cpu_seconds=9.5)
    assert own.left(late, 4.6) is None
    own.extend(1.0)
    assert own.left(late, 4.6) == pytest.approx(1.0), "the 2.6 s beyond its limit are not taken from it"
    assert own.left(BoxUsage(cpu_seconds=10.6), 5.7) is None


def test_a_session_with_patience_is_told_that_its_time_is_over_and_may_still_answer(pool: Sessions) -> None:
    caught = (
        "import signal, time\n"
        "def over(*_): raise TimeoutError('over')\n"
        "signal.signal(signal.SIGURG, over)\n"
        "try: time.sleep(1000)\n"
        "except TimeoutError as error: print(error)\n"
    )
    with pool.open(tier=Tier.SANDBOX) as session:
        assert session.run("kept = 1").status is CallStatus.OK
        assert session.start(caught, seconds=2.0, patience=FOR_EVER).result().output == "over\n"
        assert session.run("print(kept)").output == "1\n"


def test_a_session_with_patience_is_ended_when_it_has_rested_or_computed_for_its_limit(pool: Sessions) -> None:
    for code in ("import time; time.sleep(1000)", "while True: pass"):
        with pool.open(tier=Tier.SANDBOX) as session:
            assert session.run("1 + 1").status is CallStatus.OK
            ended = session.start(code, seconds=0.5, patience=FOR_EVER).result()
            assert ended.status is CallStatus.TIMEOUT


def test_a_session_with_patience_goes_on_while_others_have_the_processors(
    pool: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the kernel says of waiting is made up; what it does with it is not."""
    begun = time.monotonic()
    with pool.open(tier=Tier.SANDBOX) as session:
        assert session.run("import time").status is CallStatus.OK
        launcher = type(pool._waiter.launcher)
        monkeypatch.setattr(
            launcher,
            "usage",
            lambda self, handle, done, waits=False: done(BoxUsage(waits={1: time.monotonic() - begun})),
        )
        slow = "time.sleep(1.2); print('done')"
        assert session.start(slow, seconds=0.4, patience=FOR_EVER).result().output == "done\n"
        with pytest.raises(InfrastructureError, match="other work used the CPUs"):
            session.start(slow, seconds=0.4, patience=1.5).result()

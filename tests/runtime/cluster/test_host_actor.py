"""A host's part: it answers once, waits for nobody, and closes what a driver that fell silent has left."""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster_hosts import GATE, HANGS, ThreadPool, host_settings

from runtime.backends.packages import packages_digest
from runtime.cluster import messages as m
from runtime.cluster.folder import in_use
from runtime.cluster.host_actor import HostActor
from runtime.cluster.settings import digest_of, own_digest
from runtime.errors import InfrastructureError, RefusedError
from runtime.profile import BackendName
from runtime.sandbox import CallStatus, ExecResult, FileEntry, FileKind, Limits, Priority, SessionPool, Tier

HELLO = m.DriverHello(backend=BackendName.GVISOR, limits=Limits(), program=own_digest(), packages=packages_digest())


class Driver:
    """Speaks to one actor as the gateway would."""

    def __init__(self, folder: Path, make: Callable[[Limits], SessionPool] = ThreadPool, lease: float = 240.0) -> None:
        settings = host_settings("a", folder).model_copy(update={"lease_seconds": lease})
        self.pools: list[ThreadPool] = []
        self.ended = 0
        self.actor = HostActor(settings, lambda limits: self._remember(make(limits)), self._end)

    def _remember(self, pool: SessionPool) -> SessionPool:
        if isinstance(pool, ThreadPool):
            self.pools.append(pool)
        return pool

    def _end(self) -> None:
        self.ended += 1

    def send(self, *commands: m.Command) -> None:
        self.actor.submit([m.packet(commands)])

    def hear(self, seconds: float = 120.0) -> list[m.Report]:
        return [report for report in m.reports(self.actor.collect(seconds)) if not isinstance(report, m.Pulse)]


def opened(number: int) -> m.OpenSession:
    return m.OpenSession(session=number, tier=Tier.SHARED, caller="", priority=Priority.JOB)


def call(session: int, number: int, code: bytes) -> m.Do:
    return m.Do(session=session, call=number, what="run", data=code)


def test_a_result_is_passed_on_as_soon_as_it_is_there(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    GATE.clear()
    driver.send(HELLO, opened(1), call(1, 2, HANGS.encode()))
    [welcome] = driver.hear()
    assert isinstance(welcome, m.HostWelcome)
    began = time.monotonic()
    threading.Timer(0.1, GATE.set).start()
    [called] = driver.hear()
    assert isinstance(called, m.Did)
    assert called.call == 2
    assert time.monotonic() - began < 60
    driver.actor.close()
    assert driver.pools[0].closed


def test_a_host_with_nothing_to_say_says_that_it_is_alive(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    [pulse] = m.reports(driver.actor.collect(0.05))
    assert pulse == m.Pulse(draining=False, sessions=0)
    driver.actor.close()


def test_a_driver_that_fell_silent_loses_its_sessions(tmp_path: Path) -> None:
    driver = Driver(tmp_path, lease=3.0)
    driver.send(HELLO, opened(1))
    assert in_use(tmp_path)
    deadline = time.monotonic() + 120
    while not driver.ended and time.monotonic() < deadline:
        time.sleep(0.02)
    assert (driver.ended, driver.pools[0].closed, in_use(tmp_path)) == (1, True, False)


def test_a_host_without_sandboxes_turns_the_driver_away_with_its_reason(tmp_path: Path) -> None:
    def refuse(_limits: Limits) -> SessionPool:
        raise RefusedError("there is no runsc", hint="run the installer")

    driver = Driver(tmp_path, make=refuse)
    driver.send(HELLO)
    [turned] = driver.hear()
    assert isinstance(turned, m.Turned)
    error = turned.failure.exception()
    assert (type(error), str(error), error.hint) == (RefusedError, "there is no runsc", "run the installer")
    driver.actor.close()


def test_another_version_of_the_protocol_is_turned_away(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    driver.send(HELLO.model_copy(update={"protocol": m.PROTOCOL + 1}))
    [turned] = driver.hear()
    assert isinstance(turned, m.Turned)
    assert "version" in turned.failure.message
    driver.actor.close()


def test_a_host_with_another_isolation_than_the_drivers_is_of_no_use(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    driver.send(HELLO.model_copy(update={"backend": BackendName.NSJAIL}))
    [turned] = driver.hear()
    assert isinstance(turned, m.Turned)
    assert (turned.failure.error, driver.pools) == ("refused", [])
    driver.actor.close()


def test_a_host_with_another_program_or_other_packages_for_guests_is_of_no_use(tmp_path: Path) -> None:
    for other, why in (({"program": "0" * 64}, "another version"), ({"packages": "0" * 64}, "other packages")):
        driver = Driver(tmp_path)
        driver.send(HELLO.model_copy(update=other), opened(1), call(1, 2, b"1"))
        turned = driver.hear()[0]
        assert isinstance(turned, m.Turned)
        assert (turned.failure.error, why in turned.failure.message, driver.pools) == ("refused", True, [])
        driver.actor.close()


def test_a_driver_whose_first_words_make_no_sense_here_is_told_what_to_do(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    driver.actor.submit([b'[{"kind":"hello","protocol":9,"new":1}]'])
    [turned] = driver.hear()
    assert isinstance(turned, m.Turned)
    assert "same version" in turned.failure.hint
    driver.actor.close()


def test_a_program_is_known_by_the_text_of_its_modules_wherever_they_lie(tmp_path: Path) -> None:
    for name, text in (("a", "x = 1"), ("b", "x = 1"), ("c", "x = 2")):
        (tmp_path / name / "runtime").mkdir(parents=True)
        (tmp_path / name / "runtime" / "one.py").write_text(text)
        (tmp_path / name / "README.md").write_text(name)
    first, same, other = (digest_of(tmp_path / name) for name in "abc")
    assert first == same != other
    (tmp_path / "b" / "runtime" / "one.py").rename(tmp_path / "b" / "runtime" / "two.py")
    assert digest_of(tmp_path / "b") != first


@pytest.mark.parametrize("packet", [b"", b"{}", b'[{"kind":"hell"}]', b"\x80\x04N.", b'[{"kind":"close"}]'])
def test_what_is_no_packet_is_refused_whole(tmp_path: Path, packet: bytes) -> None:
    driver = Driver(tmp_path)
    driver.send(HELLO)
    with pytest.raises(ValueError, match="validation error"):
        driver.actor.submit([packet])
    driver.actor.close()


def test_what_a_program_wrote_and_its_files_hold_passes_byte_for_byte() -> None:
    data = bytes(range(256))
    ran = ExecResult(status=CallStatus.OK, exit_code=0, stdout=data, stderr=data, seconds=0.1)
    entries = (FileEntry("/work/a", FileKind.FILE, 1 << 40),)
    did = m.Did(session=1, call=2, ran=ran, data=data, entries=entries)
    assert m.reports(m.packet([did])) == [did]


def test_commands_out_of_place_are_answered_with_what_is_wrong(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    driver.send(opened(1))
    driver.send(HELLO, call(9, 3, b"1"), m.Do(session=9, call=4, what="fork", into=(5,)))
    reports = driver.hear()
    failed = [report for report in reports if isinstance(report, m.CallFailed)]
    assert [(report.session, report.call, report.failure.error) for report in failed] == [
        (1, 0, "bad_request"),
        (9, 3, "bad_request"),
        (9, 4, "bad_request"),
    ]
    driver.actor.close()


def test_an_error_that_nobody_foresaw_is_the_infrastructures(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    driver.send(HELLO, opened(1))
    driver.hear()
    driver.send(call(1, 2, b"raise KeyError('\\ud800 from a pool')"))
    [failed] = driver.hear()
    assert isinstance(failed, m.CallFailed)
    assert isinstance(failed.failure.exception(), InfrastructureError)
    assert "KeyError" in failed.failure.message
    driver.actor.close()


def test_who_only_looks_does_not_count_as_a_driver(tmp_path: Path) -> None:
    assert not in_use(tmp_path)
    (tmp_path / "in-use").touch()
    with (tmp_path / "in-use").open("rb") as file:
        assert not in_use(tmp_path)
        fcntl.flock(file, fcntl.LOCK_SH)
        assert in_use(tmp_path)
    assert not in_use(tmp_path)

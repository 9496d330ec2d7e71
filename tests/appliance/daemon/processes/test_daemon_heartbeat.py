"""A sign of life is sent when the loop turns and the ledger answers, and only then."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from pathlib import Path

from appliance.daemon.api.serve import beat
from runtime.service_manager import ServiceManager


class Listening(ServiceManager):
    """Counts."""

    def __init__(self, seconds: float | None) -> None:
        super().__init__("", seconds)
        self.beats = 0

    def alive(self) -> None:
        self.beats += 1


async def until(condition) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


async def test_no_sign_of_life_while_the_ledger_gives_no_answer_and_signs_again_after() -> None:
    manager, held, looked = Listening(0.01), threading.Event(), 0

    def look() -> None:
        nonlocal looked
        looked += 1
        if looked == 3:
            held.wait(60)
        if looked == 5:
            raise OSError("the disk is gone")

    beating = asyncio.create_task(beat(manager, look))
    await until(lambda: looked == 3)
    assert manager.beats == 2
    held.set()
    await until(lambda: looked >= 7)
    assert looked - manager.beats in (1, 2), "one look failed, and one may be under way"
    beating.cancel()


async def test_where_nobody_waits_nothing_is_read() -> None:
    def look() -> None:
        raise AssertionError

    await beat(Listening(None), look)


def test_a_daemon_says_when_it_serves_that_it_lives_and_when_it_stops(start, tmp_path: Path) -> None:
    news = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "n"))
        sock.settimeout(150)
        daemon = start(NOTIFY_SOCKET=str(tmp_path / "n"), WATCHDOG_USEC="600000")
        while len(news) < 4:
            news.append(sock.recv(999).decode())
        assert daemon.socket.exists()
        daemon.process.send_signal(signal.SIGTERM)
        while not news[-1].startswith("STOPPING=1"):  # read meanwhile: a socket holds ten, and what comes then is lost
            news.append(sock.recv(999).decode())
        daemon.end()
    assert news[0].startswith("READY=1\nSTATUS=serving ")
    assert set(news[1:-1]) == {"WATCHDOG=1"}

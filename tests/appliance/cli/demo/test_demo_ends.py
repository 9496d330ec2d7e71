"""`assay tui --demo-data` takes its folder with it, however it is told to end."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import sys
import tempfile
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
ASSAY = "from appliance.cli.entry import main; main()"
SECONDS = 90.0
"""Without anything new to be seen."""
PUT_BACK = b"\x1b[?1049l"
"""What leaves the other screen of a terminal."""


class Terminal:
    """A terminal of its own, in which the command is the first process, as after a login."""

    def __init__(self, temporary: Path, hangup: signal.Handlers = signal.SIG_DFL) -> None:
        self.temporary = temporary
        self.seen = b""
        self.pid, self.line = pty.fork()
        if self.pid == 0:
            termios.tcsetwinsize(0, (24, 80))
            os.chdir(ROOT)
            place = {**os.environ, "TMPDIR": str(temporary), "TERM": "xterm-256color"}
            command = [sys.executable, "-c", ASSAY, "tui", "--demo-data"]
            signal.signal(signal.SIGHUP, hangup)
            os.execve(sys.executable, command, place)

    def until(self, words: bytes) -> None:
        """Reads what is drawn."""
        while words not in self.seen:
            assert select.select([self.line], [], [], SECONDS)[0], self.seen[-500:]
            self.seen += os.read(self.line, 65536)

    def rest(self) -> int:
        """Reads to its end; returns the exit code."""
        try:
            while more := os.read(self.line, 65536):
                self.seen += more
        except OSError:  # nobody is at the other end any more
            pass
        return self.ended()

    def ended(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def left(self) -> list[str]:
        """Folders and processes that it left behind."""
        there = [path.name for path in self.temporary.glob("assay-demo-*")]
        for line in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                there += [line.parent.name] if str(self.temporary).encode() in line.read_bytes() else []
            except OSError:
                continue
        return there


@pytest.fixture
def terminal(request: pytest.FixtureRequest) -> Iterator[Terminal]:
    """The path is short: a Unix socket's must stay below 100 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="assay-end-"))
    made = Terminal(folder, getattr(request, "param", signal.SIG_DFL))
    yield made
    shutil.rmtree(folder)


@pytest.mark.parametrize("terminal", [signal.SIG_DFL, signal.SIG_IGN], ids=["plain", "nohup"], indirect=True)
def test_a_closed_terminal_ends_it_and_nothing_is_left(terminal: Terminal) -> None:
    terminal.until(b"Rolls")
    assert list(terminal.temporary.glob("assay-demo-*/keys/*")), "the key that must not stay"
    os.close(terminal.line)
    assert terminal.ended() == 128 + signal.SIGHUP
    assert terminal.left() == []


def test_one_that_is_closed_while_nights_are_made_leaves_nothing_either(terminal: Terminal) -> None:
    terminal.until(b"preparing made-up nights")
    os.close(terminal.line)
    assert terminal.ended() == 128 + signal.SIGHUP
    assert terminal.left() == []


def test_sigterm_puts_the_terminal_back_and_leaves_nothing(terminal: Terminal) -> None:
    terminal.until(b"Rolls")
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.rest() == 128 + signal.SIGTERM
    assert PUT_BACK in terminal.seen
    assert terminal.left() == []
    os.close(terminal.line)

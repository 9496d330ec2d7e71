"""Ends a command in order when its terminal is closed or it is told to end: what it opened is closed, its child ends.

What always holds: the first SIGTERM or SIGHUP leaves the block as SystemExit with 128 and the signal's number, and
later ones are ignored; one that was ignored before (nohup) stays ignored, unless the terminal is what it is all about.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

SIGNALS = (signal.SIGTERM, signal.SIGHUP)
CHILD_SECONDS = 20.0
"""That a child has to put its terminal back, before it is killed."""


@contextmanager
def left_by_signal(*, needs_terminal: bool) -> Iterator[None]:
    """Belongs to the main thread. Raises SystemExit out of whatever the block is doing."""
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def leave(number: int, _: object) -> None:
        for one in SIGNALS:
            signal.signal(one, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number, handler in before.items():
        if needs_terminal or handler is not signal.SIG_IGN:
            signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_child(command: Sequence[str]) -> int:
    """Its exit code. It is ended before this one's block is left in any other way."""
    with subprocess.Popen(command) as child:
        try:
            return child.wait()
        except BaseException:
            child.terminate()
            try:
                child.wait(CHILD_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
            raise

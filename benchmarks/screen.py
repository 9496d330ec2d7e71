"""How soon `assay tui` paints and answers keys, with 100,000 rollouts and 2,000 checkpoints in the ledger.

    python benchmarks/screen.py --rollouts 100000 --checkpoints 2000 --json FILE

A real core serves its API in a process of its own; the program runs in a terminal of 120x40. First paint is from the
start of the process to the first characters of its frame; a key's time is from the key to the first new output that has
the words looked for. Bars: 700 ms, 100 ms, on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.record import write_run

PAINT_BAR_MS, KEY_BAR_MS = 700.0, 100.0
ESCAPES = re.compile(rb"\x1b(\[[0-9;?]*[ -/]*[@-~]|[()][A-Z0-9]|[=>]|\][^\x07]*\x07)")
KEYS = (("4", "tier"), ("5", "weakest"), ("6", "doing, by"), ("8", "entry"), ("9", "broker"), ("1", "memory"))
"""A number key, and a word that only its screen has."""


def fill_and_serve(folder: Path, rollouts: int, checkpoints: int) -> None:
    """Blocks: the core of a data folder with that much in it."""
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests" / part) for part in ("tui", "fixtures")]
    import tui_records as made

    from appliance.cli.demo.appliance import served
    from appliance.config.configuration import Settings
    from appliance.daemon.coordination.core import Core
    from appliance.ledger.rows import payload_of
    from appliance.records.cycles import Checkpoint

    settings = Settings.model_validate({"data": folder / "data", "audit": {"head": folder / "head"}})
    with Core(settings) as core:
        made.put_night(core.ledger, core.data)
        for start in range(0, rollouts, 1000):
            rows = [made.judged(f"bulk-{start + place:06}", cycle=f"night-{start // 5000}") for place in range(1000)]
            core.ledger.put_rollouts(rows)
        for place in range(checkpoints):
            one = Checkpoint.model_validate(
                {
                    "manifest": f"{place:064x}",
                    "parent": f"{place - 1:064x}" if place else None,
                    "cycle": made.CYCLE,
                    "stage": "training",
                    "step": place,
                    "recipe": "00" * 32,
                    "metrics": {},
                    "folder": f"models/{place:064x}",
                    "created": made.at(0),
                }
            )
            assert payload_of(one)
            core.ledger.put_checkpoint(one)
        with served(core, folder / "s"):
            (folder / "ready").touch()
            signal.pause()


class Terminal:
    """A program in a pseudoterminal."""

    def __init__(self, command: list[str]) -> None:
        self.started = time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(command[0], command)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.seen = b""

    def until(self, words: str, since: float, seconds: float = 30.0) -> float:
        """Milliseconds from `since` until the words were written."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if words.encode() in ESCAPES.sub(b"", self.seen):
                self.seen = b""
                return 1000 * (time.monotonic() - since)
            if select.select([self.fd], [], [], 0.05)[0]:
                self.seen += os.read(self.fd, 1 << 16)
        raise SystemExit(f"{words!r} never came: {ESCAPES.sub(b'', self.seen)[-400:]!r}")

    def quiet(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.05)[0]:
                os.read(self.fd, 1 << 16)
        self.seen = b""

    def press(self, key: str, words: str) -> float:
        pressed = time.monotonic()
        os.write(self.fd, key.encode())
        return self.until(words, pressed)

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def measure(folder: Path, rounds: int) -> dict[str, Any]:
    command = [sys.executable, "-I", "-m", "tui", "--socket", str(folder / "s")]
    paints, first, keys = [], [], []
    for _ in range(rounds):
        terminal = Terminal(command)
        paints.append(terminal.until("quit", terminal.started))
        first.append(terminal.until("champion", terminal.started))
        terminal.quiet(2.0)
        for name, words in KEYS:  # the first time, a screen is made
            terminal.press(name, words)
            terminal.quiet(0.7)
        for name, words in KEYS:
            keys.append(terminal.press(name, words))
            terminal.quiet(0.5)
        terminal.close()
    return {
        "first_paint_ms": round(statistics.median(paints), 1),
        "first_status_ms": round(statistics.median(first), 1),
        "key_ms": round(statistics.median(keys), 1),
        "key_worst_ms": round(max(keys), 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=100_000)
    parser.add_argument("--checkpoints", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve is not None:
        fill_and_serve(given.serve, given.rollouts, given.checkpoints)
        return 0
    folder = Path(tempfile.mkdtemp(prefix="assay-bs-"))
    script = [sys.executable, __file__, "--serve", str(folder)]
    daemon = subprocess.Popen([*script, "--rollouts", str(given.rollouts), "--checkpoints", str(given.checkpoints)])
    try:
        while not (folder / "ready").exists():
            if daemon.poll() is not None:
                return 5
            time.sleep(0.1)
        found = measure(folder, given.rounds) | {"rollouts": given.rollouts, "checkpoints": given.checkpoints}
    finally:
        daemon.kill()
        daemon.wait()
        shutil.rmtree(folder)
    print(json.dumps(found, indent=1))
    write_run(found, given.json)
    return 0 if found["first_paint_ms"] <= PAINT_BAR_MS and found["key_ms"] <= KEY_BAR_MS else 1


if __name__ == "__main__":
    sys.exit(main())

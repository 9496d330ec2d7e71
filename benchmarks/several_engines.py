"""Measures how much of the time each of several engines samples, and how often it is looked at.

    python benchmarks/several_engines.py [--json FILE]

Each engine is the server of an engine's process, over a socket; its steps take 20 ms and do nothing. It is asked as the
pool of engines does, all before any is waited for, and beside that one after another.
"""

import argparse
import itertools
import os
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.inference.vllm.server.serve import VllmServer
from appliance.inference.vllm.server.wire import JsonFrames, WireError, packed
from benchmarks.record import write_run

STEP, SECONDS = 0.02, 3.0
ASKED = packed({"ask": "step", "submit": [], "abort": []})


def sleeping() -> Any:
    """An engine with work that never ends."""
    made: Any = SimpleNamespace(working=True, ended=False, steps=0, figures=dict, reports=list, abort=len)

    def step() -> bool:
        time.sleep(STEP)
        made.steps += 1
        return True

    made.step = step
    return made


def serve(connection: socket.socket, engine: Any) -> None:
    with suppress(WireError, OSError):
        VllmServer(connection, lambda: engine).run()


def answered(here: socket.socket, frames: JsonFrames) -> None:
    while frames.next() is None:
        frames.read(here)


def measured(count: int, *, at_once: bool) -> tuple[float, float]:
    """The share of the time that an engine samples, and the seconds between two looks at it."""
    cores, sockets = [sleeping() for _ in range(count)], []
    for core in cores:
        here, there = socket.socketpair()
        threading.Thread(target=serve, args=(there, core), daemon=True).start()
        here.sendall(packed({"ask": "open"}))
        sockets.append((here, JsonFrames()))
        answered(*sockets[-1])
    began, rounds = time.monotonic(), 0
    while (took := time.monotonic() - began) < SECONDS:
        for some in [sockets] if at_once else [[one] for one in sockets]:
            for here, _ in some:
                here.sendall(ASKED)
            for one in some:
                answered(*one)
        rounds += 1
    for here, _ in sockets:
        here.close()
    return sum(core.steps for core in cores) / count * STEP / took, took / rounds


if __name__ == "__main__":
    parser, rows = argparse.ArgumentParser(description=__doc__), []
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    for number, way in itertools.product((1, 2, 4, 8, 16), ("one after another", "at once")):
        share, gap = measured(number, at_once=way == "at once")
        rows.append({"engines": number, "asked": way, "sampling": share, "gap_seconds": gap})
        print(f"{number:2} engines, asked {way:17}: {share:4.0%} sampling, looked at every {gap * 1000:3.0f} ms")
    print(f"load {os.getloadavg()[0]:.1f}")
    write_run(rows, options.json)

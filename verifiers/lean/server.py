"""Inside a box: Lean loaded and set up once, and a process forked from it for each step.

Started as a script by path, with nothing but the standard library. It answers frames of JSON on its standard output:

    {"do": "describe"}                      -> {"warm": …, "replay": …, "problem": …}
    {"do": "step", "source": …, "module": …, "files": {name: base64}, "bare": [names], "keep": …, "options": […],
     "seconds": …, "memory_mib": …}         -> see `Step`

A step is one run of Lean's command line in a folder of its own, with the given compiled files in it, or, with "replay",
one of them given to the kernel again. What always holds: one step at a time; its process and whatever that started are
gone, and its folder removed, before the answer is sent; the process that answers runs no submission's code. Starting
Lean anew costs 60 ms, most of it for linking and for its own set-up, which a fork of this process has behind it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from verifiers.lean.running import Lean, Step  # noqa: E402
from verifiers.workers.frames import Frames, encode  # noqa: E402

PROBE = "theorem probe : True := True.intro\n"
FALSE_PROBE = "set_option debug.skipKernelTC true\ntheorem probe : False := by decide +kernel\n"
"""What only a replay finds."""
PROBE_SECONDS = 60.0
COLD = "--cold"
PR_SET_CHILD_SUBREAPER = 36


def probe(lean: Lean) -> str:
    """What is wrong with this Lean; nothing when a small theorem compiles."""
    message = {"source": PROBE, "module": "Probe", "seconds": PROBE_SECONDS, "memory_mib": 4096}
    answer = Step(lean, message).run()
    if answer["ended"] == "exited" and answer["code"] == 0:
        return ""
    said = (answer["out"] + answer["err"]).strip()[:1000]
    return f"a small theorem does not compile: {answer['ended']} {answer['code']}: {said}"


def prove_replay(lean: Lean) -> str:
    """How a replay accepts a file that is true and refuses one that is not, here and with this version: by the shared
    library, by the toolchain's own tool, or not at all."""
    limits: dict[str, Any] = {"module": "Probe", "seconds": PROBE_SECONDS, "memory_mib": 4096}
    made = [Step(lean, limits | {"source": source, "keep": True}).run().get("file") for source in (PROBE, FALSE_PROBE)]
    if None in made:
        return ""
    for way in ("library", *(["tool"] if lean.tool else [])):
        lean.replays = way
        again = [Step(lean, limits | {"files": {"Probe.olean": file}, "replay": "Probe.olean"}).run() for file in made]
        true, false = (one.get("replayed") if (one["ended"], one["code"]) == ("exited", 0) else None for one in again)
        if true == "yes" and false is not None and "(kernel)" in false:
            return way
    return ""


def serve(lean: Lean, problem: str, output: int) -> None:
    frames = Frames()
    while data := os.read(0, 1 << 20):
        frames.feed(data)
        while (message := frames.next()) is not None:
            if message["do"] == "describe":
                answer: dict[str, Any] = {"warm": lean.warm, "problem": problem, "replay": lean.replays}
            else:
                answer = Step(lean, message).run()
            rest = memoryview(encode(answer))
            while rest:
                rest = rest[os.write(output, rest) :]


def main(library: str, ready: str, *flags: str) -> None:
    output = os.dup(1)
    os.dup2(2, 1)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    lean = Lean(library)
    if COLD not in flags:
        lean.set_up()
    problem = probe(lean)
    if problem and COLD not in flags:
        os.dup2(output, 1)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:], COLD])  # noqa: S606 - itself
    lean.replays = "" if problem else prove_replay(lean)
    os.write(output, bytes.fromhex(ready))
    serve(lean, problem, output)


if __name__ == "__main__":
    main(*sys.argv[1:])

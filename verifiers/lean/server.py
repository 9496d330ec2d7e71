"""Inside a box: the Lean server, which loads and initializes Lean once and forks a process for each step.

Started as a script by path, with the standard library and the folders of ours that `toolchain.program` names. It
answers frames of JSON on its standard output:

    {"do": "describe", "kernel": …}         -> {"warm": …, "replay": …, "headers": …, "problem": …}
    {"do": "step", "source": …, "module": …, "files": {name: base64}, "bare": [names], "keep": …, "options": […],
     "seconds": …, "memory_mib": …}         -> see `LeanStep`

A step is one run of Lean's command line in its own folder, with the given compiled files or, with "replay", a kernel
check of one of them, or, with "export", a second kernel's check of a declaration. With "header", a list of modules, the
source has no imports, and the step is forked from a process that has imported these (`headers`); "add" names files that
are added there through the kernel. Invariants: one step at a time; its processes are gone, and its folder removed,
before the answer is sent; the answering process runs no submission's code. Starting Lean anew costs 60 ms, mostly
linking and initialization, which a fork saves.
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

from verifiers.boxes.frames import Frames, encode  # noqa: E402
from verifiers.lean.controls import compiled_probes, probe, prove_headers, prove_kernel, prove_replay  # noqa: E402
from verifiers.lean.headers import PR_SET_CHILD_SUBREAPER, Headers, no_answer  # noqa: E402
from verifiers.lean.running import Lean, LeanStep  # noqa: E402

COLD = "--cold"


def serve(lean: Lean, info: dict[str, Any], made: list[str], output: int) -> None:
    frames, headers = Frames(), Headers(lean, [output])
    while data := os.read(0, 1 << 20):
        frames.feed(data)
        while (message := frames.next()) is not None:
            if message["do"] == "describe":
                answer = info | ({"problem": prove_kernel(lean, made)} if message.get("kernel") else {})
            elif "header" in message:
                answer = headers.ask(message) if info["headers"] == "warm" else no_answer("cold", info["headers"])
            else:
                answer = LeanStep(lean, message, spared=headers.pids).run()
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
    made = [] if problem else compiled_probes(lean)
    lean.replays = prove_replay(lean, made) if made else ""
    headers = problem or prove_headers(lean, made, [output])
    info = {"warm": lean.warm, "problem": problem, "replay": lean.replays, "headers": headers or "warm"}
    os.write(output, bytes.fromhex(ready))
    serve(lean, info, made, output)


if __name__ == "__main__":
    main(*sys.argv[1:])

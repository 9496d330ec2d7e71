"""The first process in a sandbox. Takes the host's pipes for itself before anything else can use them.

Started as `python3 -I -S -B -u -W ignore worker.py MODE JSON`; MODE is `shared`, `process` or `sandbox`, the JSON holds
the limits. Descriptors 0, 1 and 2 lead nowhere afterwards: what is printed by accident can never be taken for a reply.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import sys
from typing import Any

HOST_IN, HOST_OUT, COMPLAINTS = 200, 201, 202
COMPLAINT_CHARS = 300
OWN = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH120 - pathlib costs a guest memory
PACKAGES = "/opt/packages"
"""What guests may import beside the standard library, where the host mounts it."""
COMPUTE_NAMES = (
    "array base64 bisect calendar cmath collections copy dataclasses datetime decimal enum fractions functools hashlib"
    " heapq itertools json math numbers operator random re statistics string textwrap time typing"
)
COMPUTE_MODULES = COMPUTE_NAMES.split()
"""Imported before the first fork, because a process that may only compute cannot open a file to import them."""


def take_pipes() -> None:
    """Standard error stays open for complaints until the worker is ready; then it leads nowhere too."""
    os.dup2(0, HOST_IN, inheritable=False)
    os.dup2(1, HOST_OUT, inheritable=False)
    os.dup2(2, COMPLAINTS, inheritable=False)
    nowhere = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def load(names: list[str]) -> None:
    """Imports them. Raises whatever one of them raises, with its name."""
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:
            error.add_note(f"while importing {name}")
            raise


def main(mode: str, limits: dict[str, Any]) -> None:
    """Says READY on the host's pipe once all that was asked for ahead of need is there, then serves until the host
    closes the pipe. Raises whatever is wrong with the limits or with a module of `preload`."""
    output_bytes, memory_bytes = int(limits["output_bytes"]), int(limits["memory_bytes"])
    sys.path.insert(0, OWN)
    if mode == "shared":
        worker = importlib.import_module("runtime.guest.shared").SharedWorker(
            slice_seconds=limits["slice_seconds"], output_bytes=output_bytes, memory_bytes=memory_bytes
        )
        os.close(COMPLAINTS)
        worker.serve(HOST_IN, HOST_OUT)
        return
    supervisor = importlib.import_module("runtime.guest.supervisor")
    sys.path.remove(OWN)
    sys.path.append(PACKAGES)
    load([*(COMPUTE_MODULES if mode == "process" else ()), *limits["preload"]])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.close(COMPLAINTS)
    supervisor.run(
        HOST_IN,
        HOST_OUT,
        confined=mode == "process",
        ahead=int(limits["ahead"]),
        output_bytes=output_bytes,
        memory_bytes=memory_bytes,
        machine=os.uname().machine,
    )


def start(mode: str, limits: str) -> None:
    """`main`, and one line for the person who has to repair it when the worker never became ready."""
    take_pipes()
    try:
        main(mode, json.loads(limits))
    except BaseException as error:
        told = " ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])
        with contextlib.suppress(OSError):  # closed once the worker was ready
            os.write(COMPLAINTS, f"the worker did not start: {' '.join(told.split())[:COMPLAINT_CHARS]}\n".encode())
        raise


if __name__ == "__main__":
    start(sys.argv[1], sys.argv[2])

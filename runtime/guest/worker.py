"""The first process in a sandbox. Takes the host's pipes for itself before anything else can use them.

Started as `python3 -I -S -B -u -W ignore worker.py MODE JSON`; MODE is `shared`, `process` or `sandbox`, the JSON holds
the limits. Descriptors 0, 1 and 2 lead nowhere afterwards: what is printed by accident can never be taken for a reply.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys

HOST_IN, HOST_OUT = 200, 201
COMPUTE_NAMES = (
    "array base64 bisect calendar cmath collections copy dataclasses datetime decimal enum fractions functools hashlib"
    " heapq itertools json math numbers operator random re statistics string textwrap time typing"
)
COMPUTE_MODULES = COMPUTE_NAMES.split()
"""Imported before the first fork, because a process that may only compute cannot open a file to import them."""


def take_pipes() -> None:
    os.dup2(0, HOST_IN, inheritable=False)
    os.dup2(1, HOST_OUT, inheritable=False)
    nowhere = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def main(mode: str, limits: dict[str, float]) -> None:
    """Says READY on the host's pipe, then serves until the host closes it."""
    take_pipes()
    sys.path.insert(0, "/opt")
    wire = importlib.import_module("runtime.guest.wire")
    output_bytes, memory_bytes = int(limits["output_bytes"]), int(limits["memory_bytes"])
    if mode == "shared":
        worker = importlib.import_module("runtime.guest.shared").SharedWorker(
            slice_seconds=limits["slice_seconds"], output_bytes=output_bytes, memory_bytes=memory_bytes
        )
        os.write(HOST_OUT, wire.pack_reply(wire.NO_NONCE, wire.Kind.READY))
        worker.serve(HOST_IN, HOST_OUT)
        return
    supervisor = importlib.import_module("runtime.guest.supervisor")
    for name in COMPUTE_MODULES if mode == "process" else ("random",):
        importlib.import_module(name)
    sys.path.remove("/opt")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.write(HOST_OUT, wire.pack_reply(wire.NO_NONCE, wire.Kind.READY))
    supervisor.run(
        HOST_IN,
        HOST_OUT,
        confined=mode == "process",
        ahead=int(limits["ahead"]),
        output_bytes=output_bytes,
        memory_bytes=memory_bytes,
        machine=os.uname().machine,
    )


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))

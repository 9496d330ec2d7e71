"""First process in a sandbox, which takes the host's pipes before anything else can use them.

Arguments: a mode, `shared`, `process` or `sandbox`, and the result of `Profile.worker_limits`. Descriptors 0, 1 and 2
lead nowhere afterwards: accidental output can never be mistaken for a reply.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # guards imports for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from collections.abc import Iterable

    from runtime.guest.process import ProcessParent
    from runtime.guest.shared import SharedWorker
    from runtime.guest.supervisor import Supervisor

COMPLAINT_CHARS = 300
OWN = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH120
PACKAGES = "/opt/packages"
"""Folder of packages beside the standard library, if the host mounts it."""
COMPUTE_NAMES = (
    "array base64 bisect calendar cmath collections copy dataclasses datetime decimal enum fractions functools hashlib"
    " heapq itertools json math numbers operator random re statistics string textwrap typing"
)
COMPUTE_MODULES = COMPUTE_NAMES.split()
"""Modules kept in memory, because a compute-only process cannot open a file to import them."""


class Pipes:
    """Pipes to the host under private numbers; standard error stays open for complaints until the worker is ready."""

    def __init__(self) -> None:
        self.source, self.sink, self.complaints = (os.dup(descriptor) for descriptor in (0, 1, 2))
        nowhere = os.open("/dev/null", os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        os.close(nowhere)


def prepare(mode: str, limits: dict[str, str], pipes: Pipes) -> SharedWorker | Supervisor:
    """Confines this process and creates the worker for the mode, before the first request is read. Raises any error in
    the limits or in a module of `preload`."""
    output_bytes, memory_bytes = int(limits["output_bytes"]), int(limits["memory_bytes"])
    sys.path.insert(0, OWN)
    from runtime.guest import confine, filters

    machine = os.uname().machine
    confine.begin()
    confine.Filter(filters.one_world(machine, filters=mode == "process")).install()
    if mode == "shared":
        from runtime.guest.shared import SharedWorker

        return SharedWorker(
            slice_seconds=float(limits["slice_seconds"]), output_bytes=output_bytes, memory_bytes=memory_bytes
        )
    from runtime.guest import child, files, single, supervisor, users, zygote

    sys.path.remove(OWN)
    if os.path.isdir(PACKAGES) and os.listdir(PACKAGES):  # noqa: PTH112, PTH208
        sys.path.append(PACKAGES)
    preload = [name for name in limits["preload"].split(",") if name]
    open_files = int(limits["open_files"])
    parent: ProcessParent
    if mode == "sandbox":
        ahead = 1
        files.Reach.anywhere = limits["userland"] != "no"
        if limits["userland"] == "users":
            users.begin()
        child.bound_files(open_files)  # also for programs started by the supervisor
        parent = single.SingleProcess(memory_bytes=memory_bytes, preload=preload)
    else:
        ahead = int(limits["ahead"])
        parent = zygote.Zygote(
            memory_bytes=memory_bytes,
            open_files=open_files,
            machine=machine,
            modules=COMPUTE_MODULES,
            preload=preload,
            not_for_it=(pipes.source, pipes.sink, pipes.complaints),
        )
    most_ahead = max(ahead, int(limits["most_ahead"]))
    made = supervisor.Supervisor(parent, ahead=ahead, most_ahead=most_ahead, output_bytes=output_bytes)
    if mode == "sandbox":
        made.begin(0)  # its one session: code arrives immediately
    return made


def main(mode: str, limits: str) -> Iterable[int]:
    """Runs the sandbox's first process: prepares a worker, then serves requests until the host closes the pipe. Sends
    READY once everything requested ahead of demand is there. If the preparation fails, writes one line with the reason.
    `limits` are name=value, separated by blanks. Returns the remaining work: for a process forked meanwhile, its whole
    life."""
    pipes = Pipes()
    try:
        worker = prepare(mode, dict(pair.split("=", 1) for pair in limits.split()), pipes)
    except BaseException as error:
        if type(error).__name__ == "ForkedError":
            from runtime.guest import child

            return child.life(error.ends, error.confine)  # type: ignore[attr-defined]
        complaint = " ".join(f"the worker did not start: {type(error).__name__}: {error}".split())
        os.write(pipes.complaints, f"{complaint[:COMPLAINT_CHARS]}\n".encode())
        raise
    os.close(pipes.complaints)
    worker.serve(pipes.source, pipes.sink)
    return ()


if __name__ == "__main__":
    life = main(sys.argv[1], sys.argv[2])
    all(globals().pop("life"))  # driven by C: only this frame of ours remains, and nothing refers to it

"""Checks of snapshot, rollback and branch: complete state or none, and branches with independent random numbers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from functools import partial

from runtime.conformance.check import Figures, Subject, answered, check, require, require_error
from runtime.errors import LimitError, SandboxError
from runtime.sandbox import Sandbox, SnapshotId

BEGIN = """import os, subprocess, sys, threading, time
heap = {'n': 1}
ticks = 0
def tick():
    global ticks
    while True:
        ticks += 1
        time.sleep(0.01)
threading.Thread(target=tick, daemon=True).start()
code = "import sys\\ncount = 0\\nwhile sys.stdin.readline():\\n    count += 1\\n    print(count, flush=True)"
child = subprocess.Popen([sys.executable, '-I', '-S', '-c', code], stdin=-1, stdout=-1, text=True)
def asked():
    child.stdin.write('?\\n')
    child.stdin.flush()
    return int(child.stdout.readline())
assert asked() == 1
for folder in ('/work', '/tmp'):
    with open(folder + '/kept', 'w') as file:
        file.write('before')
reader = open('/work/kept')
reader.read(3)
"""
CHANGE = """heap['n'] = 2
asked()
for folder in ('/work', '/tmp'):
    open(folder + '/kept', 'w').write('AFTER!')
    open(folder + '/new', 'w').close()
reader.read()
del heap
"""
STATE = """first = ticks
for _ in range(300):
    if ticks > first:
        break
    time.sleep(0.01)
print(heap['n'], asked(), reader.read(), open('/work/kept').read(), open('/tmp/kept').read(),
      os.path.exists('/work/new') or os.path.exists('/tmp/new'), ticks > first)
"""
AS_IT_WAS = "1 2 ore before before False True\n"
"""Expected state: heap, child's count, rest of the open file, both files, no new file, a running thread."""


@check(
    "rollback is whole",
    "A rollback brings back heap, threads, child processes, open files, /tmp and /work, again and again.",
    needs_snapshots=True,
)
def rollback_is_whole(subject: Subject) -> Figures:
    with subject.sandbox() as box:
        answered(box.run(BEGIN))
        started = time.monotonic()
        saved = box.snapshot()
        taken = time.monotonic()
        identity, slowest = box.id, 0.0
        for _ in range(2):
            answered(box.run(CHANGE))
            began = time.monotonic()
            box.restore(saved)
            printed = answered(box.run("print(heap['n'])"))
            slowest = max(slowest, time.monotonic() - began)
            require(printed == "1\n", f"after the rollback the heap has {printed!r}")
            require(box.id != identity, "a sandbox that went back has the identity that it had before")
            identity = box.id
            state = answered(box.run(STATE))
            require(state == AS_IT_WAS, f"after the rollback there is {state!r} instead of {AS_IT_WAS!r}")
    return {"snapshot_ms": 1000 * (taken - started), "rollback_ms": 1000 * slowest}


CHANCE = "import os, random, uuid\nprint(random.random(), os.urandom(8).hex(), uuid.uuid4().hex)"


@check(
    "branches are apart",
    "Branches begin where the snapshot was, see nothing of each other, and draw other random numbers.",
    needs_snapshots=True,
)
def branches_are_apart(subject: Subject, ways: int = 4) -> Figures:
    with contextlib.ExitStack() as stack:
        trunk = stack.enter_context(subject.sandbox())
        answered(trunk.run("import random, os, uuid\nheap = [0]\nopen('/work/kept', 'w').write('trunk')"))
        saved = trunk.snapshot()
        answered(trunk.run("heap.append('trunk')"))
        started = time.monotonic()
        branches: Sequence[Sandbox] = trunk.fork(saved, ways)
        for branch in branches:
            stack.callback(branch.close)
        require(len(branches) == ways, f"{len(branches)} of {ways} branches were made")
        for number, branch in enumerate(branches):
            answered(branch.run(f"heap.append({number})\nopen('/work/kept', 'a').write('{number}')"))
        passed = time.monotonic() - started
        for number, branch in enumerate(branches):
            printed = answered(branch.run("print(heap, open('/work/kept').read())"))
            require(printed == f"[0, {number}] trunk{number}\n", f"branch {number} has {printed!r}")
        printed = answered(trunk.run("print(heap, open('/work/kept').read())"))
        require(printed == "[0, 'trunk'] trunk\n", f"the trunk has {printed!r}")
        require(len({box.id for box in (trunk, *branches)}) == ways + 1, "two branches have one identity")
        drawn = [answered(branch.run(CHANCE)).split() for branch in branches]
        for name, values in zip(("random", "os.urandom", "uuid"), zip(*drawn, strict=True), strict=True):
            require(len(set(values)) == ways, f"branches drew the same numbers from {name}")
    return {"branches": float(ways), "all_answered_ms": 1000 * passed}


@check("ready copies are taken", "A rollback to a copy restored ahead is exact as well.", needs_snapshots=True)
def ready_copies_are_taken(subject: Subject) -> Figures:
    with subject.sandbox() as box:
        answered(box.run("n = 5"))
        saved = box.snapshot()
        box.prepare(saved, 1)
        answered(box.run("n = 6"))
        time.sleep(0.5)
        started = time.monotonic()
        box.restore(saved)
        printed = answered(box.run("print(n)"))
        passed = time.monotonic() - started
        box.prepare(saved, 0)
    require(printed == "5\n", f"after the rollback to a ready copy there is {printed!r}")
    return {"rollback_ms": 1000 * passed}


@check(
    "a durable snapshot outlives its sandbox",
    "A durable snapshot can be continued after its sandbox is gone, until it is forgotten.",
    needs_snapshots=True,
)
def a_snapshot_outlives_its_sandbox(subject: Subject) -> Figures:
    with subject.sandbox() as box:
        answered(box.run("n = 5\nopen('/work/kept', 'w').write('kept')"))
        saved = box.snapshot(durable=True)
    try:
        with subject.sandbox(snapshot=saved) as again:
            printed = answered(again.run("print(n, open('/work/kept').read())"))
            require(printed == "5 kept\n", f"the snapshot of a sandbox that is gone has {printed!r}")
            answered(again.run("n += 1"))
            again.restore(saved)
            require(answered(again.run("print(n)")) == "5\n", "it cannot go back to where it began")
    finally:
        subject.pool.forget(saved)

    def use() -> None:
        with subject.sandbox(snapshot=saved):
            pass

    require_error(use, "a snapshot that was forgotten can still be used", SandboxError)
    return {}


@check(
    "unknown snapshots are refused", "An unknown snapshot name is refused, and changes nothing.", needs_snapshots=True
)
def unknown_snapshots_are_refused(subject: Subject) -> Figures:
    names = ("0" * 64, "../../../etc/passwd", "", "A" * 64, "\0" * 64)
    with subject.sandbox() as box:
        answered(box.run("n = 1"))
        box.snapshot()
        for name in names:
            restore = partial(box.restore, SnapshotId(name))
            require_error(restore, f"a snapshot of the name {name[:20]!r} was restored", SandboxError)
        require(answered(box.run("print(n)")) == "1\n", "a refused rollback changed the sandbox")
    return {"names": float(len(names))}


@check("limit: number of snapshots", "A snapshot beyond their number is a LimitError.", needs_snapshots=True)
def snapshots_are_counted(subject: Subject) -> Figures:
    with subject.sandbox(limits={"snapshots": 1}) as box:
        box.snapshot()
        require_error(box.snapshot, "two snapshots were taken where one is allowed", LimitError)
    return {}


CHECKS = (
    rollback_is_whole,
    branches_are_apart,
    ready_copies_are_taken,
    a_snapshot_outlives_its_sandbox,
    unknown_snapshots_are_refused,
    snapshots_are_counted,
)

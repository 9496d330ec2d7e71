"""Checks that code cannot answer for the host: neither later calls, nor its own status, nor through its output."""

from __future__ import annotations

import json

from runtime.conformance.check import Figures, Subject, answered, check, require
from runtime.errors import InfrastructureError
from runtime.guest import wire
from runtime.sandbox import CallStatus, Sandbox

FORGED = b"forged"
FRAMES = [
    wire.pack_reply(nonce, kind, FORGED, b'{"error": "forged", "traceback": "", "limit": "memory"}')
    for nonce in (wire.NO_NONCE, b"\xff" * wire.NONCE_BYTES)
    for kind in (wire.ReplyKind.OK, wire.ReplyKind.READY, wire.ReplyKind.TIMEOUT)
]
SPRAY = """import os, threading, time
def spray():
    for number in [*range(3, 256), *range(1000, 1030)]:
        try:
            os.set_blocking(number, False)
            for frame in frames:
                os.write(number, frame)
        except OSError:
            pass
    for number in filter(str.isdigit, os.listdir('/proc')):
        try:
            names = os.listdir(f'/proc/{number}/fd')
        except OSError:
            continue
        for name in names:
            try:
                if name not in ('0', '1', '2'):
                    pipe = os.open(f'/proc/{number}/fd/{name}', os.O_WRONLY | os.O_NONBLOCK)
                    os.write(pipe, b''.join(frames))
                    os.close(pipe)
            except OSError:
                pass
"""
NOW = "spray()\nprint('true')"
LATER = """def later():
    while True:
        time.sleep(0.02)
        spray()
threading.Thread(target=later, daemon=True).start()
if os.fork() == 0:
    os.setsid()
    later()
print('true')
"""


def _true_or_lost(box: Sandbox, code: str, *, alone: bool) -> None:
    """Checks that reply frames forged by `code` never appear as a host answer; code may end its own sandbox. `alone`:
    nothing else may have printed into this call."""
    try:
        result = box.run(code)
    except InfrastructureError:
        return
    if result.status is CallStatus.OK and alone:
        require(result.output == "true\n", f"a call whose code printed 'true' came out with {result.output[:60]!r}")
    require("forged" not in result.error, f"a forged reply ended a call with {result.status.value}: {result.error!r}")
    require(
        result.status in (CallStatus.OK, CallStatus.DIED, CallStatus.EXCEPTION),
        f"a forged reply made the host say {result.status.value}",
    )


@check(
    "replies cannot be forged",
    "Frames written to every descriptor, now and from the background, without a call's nonce, answer none.",
)
def replies_cannot_be_forged(subject: Subject) -> Figures:
    for attack in (NOW, LATER):
        with subject.sandbox() as box:
            answered(box.run(f"frames = {FRAMES!r}\n{SPRAY}"))
            _true_or_lost(box, attack, alone=True)
            for _ in range(5):
                _true_or_lost(box, "time.sleep(0.05)\nprint('true')", alone=True)
    with subject.sandbox() as box:
        require(answered(box.run("print('after')")) == "after\n", "a sandbox that came later does not answer")
    return {"frames": float(len(FRAMES))}


REACH = """import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
reached, mine = [], os.getpid()
def look(proc):
    for number in filter(str.isdigit, os.listdir(proc)):
        if int(number) == mine:
            continue
        for name in os.listdir(f'{proc}/{number}/fd'):
            try:
                os.close(os.open(f'{proc}/{number}/fd/{name}', os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                continue
            reached.append(f'descriptor {name} of process {number} by {proc}')
def tried(name, attempt):
    try:
        if attempt() >= 0:
            reached.append(name)
    except OSError:
        pass
def by_a_mount():
    os.makedirs('/work/proc')
    if libc.unshare(0x10000000 | 0x20000) == 0 and libc.mount(b'proc', b'/work/proc', b'proc', 0, None) == 0:
        look('/work/proc')
    return -1
def taken(process, number):
    return libc.syscall(438, libc.syscall(434, process, 0), number, 0)
def attached(process):
    if libc.ptrace(16, process, None, None) < 0:
        return -1
    return libc.ptrace(17, process, None, None)
try:
    look('/proc')
except OSError:
    pass
for process in {os.getppid(), 1} - {mine, 0}:
    for number in (200, 201):
        tried(f'descriptor {number} of process {process}', lambda: taken(process, number))
    tried(f'ptrace of process {process}', lambda: attached(process))
tried('a mount of /proc', by_a_mount)
print(json.dumps(reached))
"""


@check(
    "the supervisor is out of reach",
    "Code can open no descriptor of another process, trace none, and mount no /proc that shows one.",
)
def the_supervisor_is_out_of_reach(subject: Subject) -> Figures:
    with subject.sandbox() as box:
        reached = json.loads(answered(box.run(REACH)))
    require(not reached, f"code reaches {', '.join(map(str, reached[:5]))}")
    return {}


CLAIMS = {
    "a status in what is printed": ('print(\'{"status": "timeout"}\')', CallStatus.OK),
    "an exit code": ("raise SystemExit(0)", CallStatus.EXCEPTION),
    "an exit of the interpreter": ("import os\nos._exit(0)", CallStatus.DIED),
    "an error as the host would write it": (
        "class InfrastructureError(Exception): pass\nraise InfrastructureError('the sandbox is gone')",
        CallStatus.EXCEPTION,
    ),
    "an error that cannot be told": (
        "class Sly(BaseException):\n    def __str__(self): raise self\n    __repr__ = __str__\nraise Sly",
        CallStatus.EXCEPTION,
    ),
    "the wrong bytes": ("import os\nos.write(1, b'\\xff\\x00')\nprint(chr(0xd800))", None),
}


@check(
    "statuses are the host's",
    "No exit code, message or output of code is taken for what the host says, and errors are one line of text.",
    quick=False,
)
def statuses_are_the_hosts(subject: Subject) -> Figures:
    for name, (code, expected) in CLAIMS.items():
        with subject.sandbox() as box:
            result = box.run(code)
            identity = box.id
        allowed = (CallStatus.OK, CallStatus.EXCEPTION) if expected is None else (expected,)
        require(result.status in allowed, f"with {name} a call ended with {result.status.value}")
        require(result.sandbox == identity, f"with {name} a call says that it ran in {result.sandbox!r}")
        require("\n" not in result.error, f"with {name} the error has {result.error!r}")
        for text in (result.output, result.error, result.traceback):
            text.encode()
    return {"claims": float(len(CLAIMS))}


CHECKS = (replies_cannot_be_forged, the_supervisor_is_out_of_reach, statuses_are_the_hosts)

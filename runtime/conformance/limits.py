"""Checks that every limit ends an excess in time and with its own status.

Checks of isolation: sessions are separate, and host processes are hidden.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from statistics import quantiles

from runtime.conformance.check import LIMITS, Figures, Subject, answered, check, require, require_error
from runtime.errors import LimitError
from runtime.sandbox import CallStatus, Session, Tier

GRACE_SECONDS = 5.0
"""Delay after a limit within which an answer may come on a busy machine, in seconds; idle machines stay below 1 s."""


def _ends(
    code: str, status: CallStatus, *, seconds: float | None = None, after: float = 0.0, **limits: float
) -> Callable[[Subject], Figures]:
    """Returns a conformance check that a call of `code` ends with that status. It ends not before `after`, and within
    `seconds` plus the grace."""

    def run(subject: Subject) -> Figures:
        with subject.sandbox(limits=limits) as box:
            result = box.run(code)
        require(
            result.status is status,
            f"it ended with {result.status.value} instead of {status.value}: {(result.error or result.output)[:200]!r}",
        )
        require(result.error != "", f"{status.value} came without an explanation")
        due = limits.get("call_seconds", LIMITS.call_seconds) if seconds is None else seconds
        longest = due + GRACE_SECONDS
        require(
            after <= result.seconds <= longest,
            f"it was answered after {result.seconds:.2f} s; between {after:g} and {longest:g} s were due",
        )
        return {"answered_ms": 1000 * result.seconds}

    return run


SPIN = "while True: pass"
SLEEP = "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))\ntime.sleep(20)"
HOARD = "kept = []\nfor _ in range(192): kept.append(bytearray(1 << 20))\nprint('192 MiB')"
HOARD_BY_MANY = """import os
children = []
for _ in range(6):
    child = os.fork()
    if child == 0:
        kept = []
        for _ in range(48): kept.append(b'x' * (1 << 20))
        import time
        time.sleep(1)
        os._exit(0)
    children.append(child)
print(sum(os.waitpid(child, 0)[1] == 0 for child in children))
"""
FORKS = "import os, time\nfor _ in range(50):\n    if os.fork() == 0: time.sleep(20)\nprint('50 processes')"
THREADS = (
    "import threading, time\nthreading.stack_size(1 << 16)\n"
    "for _ in range(100): threading.Thread(target=time.sleep, args=(20,), daemon=True).start()\nprint('100 threads')"
)
FILL = (
    "for n in range(4):\n    with open(f'{folder}/fill-{{n}}', 'wb', 0) as file:\n"
    "        for _ in range(4): file.write(bytes(1 << 20))\nprint('16 MiB')"
)
DESCRIPTORS = "import os\nkept = [os.open('/dev/null', os.O_RDONLY) for _ in range(150)]\nprint('150 descriptors')"
FLOOD = "import os\nfor _ in range(256): os.write(1, b'y' * 1024)\nprint('256 KiB')"


@check("limit: memory of many processes", "Many processes together have no more memory than one.", quick=False)
def memory_is_one_for_all(subject: Subject) -> Figures:
    """Checks that a sandbox's processes share one memory limit. Six with 48 MiB each exceed 128 MiB: the call ends with
    `memory`, or some of them die."""
    with subject.sandbox() as box:
        result = box.run(HOARD_BY_MANY)
    if result.status is not CallStatus.MEMORY:
        lived = answered(result).strip()
        require(lived != "6", "six processes with 48 MiB each lived in 128 MiB")
    return {"answered_ms": 1000 * result.seconds}


@check("limit: output", "A call that prints too much ends with `output`, and the output is capped.")
def output_is_capped(subject: Subject) -> Figures:
    figures = _ends(FLOOD, CallStatus.OUTPUT)(subject)
    with subject.sandbox() as box:
        result = box.run(FLOOD)
        size = len(result.output.encode())
    require(size <= LIMITS.output_bytes, f"{size} bytes came out of a call that may print {LIMITS.output_bytes}")
    return figures


@check("limit: number of calls", "A call beyond their number has status `calls` and does not run.")
def calls_are_counted(subject: Subject) -> Figures:
    with subject.sandbox(limits={"calls": 3}) as box:
        answered(box.run("n = 1"))
        for _ in range(2):
            answered(box.run("n += 1"))
        result = box.run("open('/work/ran', 'w').close()")
        require(result.status is CallStatus.CALLS, f"the fourth of three calls ended with {result.status.value}")
        require(box.usage.calls == 3, f"the usage counts {box.usage.calls} calls of three")
        require(not [entry for entry in box.list() if entry.path.endswith("ran")], "the fourth of three calls ran")
    return {}


@check("limit: number of files", "A listing or download of too many files is a LimitError.")
def entries_are_counted(subject: Subject) -> Figures:
    with subject.sandbox(limits={"entries": 20}) as box:
        answered(box.run("for n in range(40): open(f'/work/{n}', 'w').close()"))
        for attempt in (box.list, lambda: box.download("/work", subject.scratch / "down")):
            require_error(attempt, "40 files were taken where 20 are allowed", LimitError)
    return {}


WORK = """import time
n, began = 0, time.process_time()
while n < 3_000_000 or time.process_time() < began + 0.3: n += 1
time.sleep(0.3)
print('worked')
"""
"""Work in steps and by the guest's clock: fast machines finish the steps early, busy ones advance the clock."""


@check("limit: usage", "Calls, seconds, output, processor time and memory of a sandbox are as measured.")
def usage_is_reported(subject: Subject) -> Figures:
    with subject.sandbox() as box:
        spun = answered(box.run(WORK))
        answered(box.run("kept = bytearray(40 << 20)\nprint('x' * 99)"))
        usage = box.usage
    require(usage.calls == 2, f"the usage counts {usage.calls} calls of two")
    require(spun == "worked\n", f"the loop ended with {spun!r}")
    require(usage.seconds >= 0.3, f"calls that took 0.3 s are reported as {usage.seconds:.3f} s")
    require(usage.output_bytes == 107, f"107 bytes were printed, but {usage.output_bytes} are reported")
    require((usage.cpu_seconds or 0) >= 0.03, f"its work took {usage.cpu_seconds} s of processor time")
    require((usage.peak_memory_mib or 0) >= 40, f"a peak above 40 MiB is reported as {usage.peak_memory_mib}")
    return {"cpu_seconds": usage.cpu_seconds or 0.0, "peak_memory_mib": usage.peak_memory_mib or 0.0}


ENDS = (
    check("limit: time of a call", "A call that spins ends with `timeout` at its wall clock.")(
        _ends(SPIN, CallStatus.TIMEOUT, call_seconds=0.6, after=0.6)
    ),
    check(
        "limit: time of a call that blocks every signal",
        "A call that sleeps and blocks signals still ends with `timeout`.",
        quick=False,
    )(_ends(SLEEP, CallStatus.TIMEOUT, call_seconds=0.6, after=0.6)),
    check("limit: processor time", "A sandbox that has had its processor time ends with `cpu`.")(
        _ends(SPIN, CallStatus.CPU, cpu_seconds=0.5, call_seconds=90.0, seconds=60.0, after=0.2)
    ),
    check("limit: lifetime", "A sandbox ends with `expired` at its own wall clock, also in the middle of a call.")(
        _ends(SLEEP, CallStatus.EXPIRED, life_seconds=2.0, call_seconds=10.0, seconds=2.0)
    ),
    check("limit: memory", "A call that takes too much memory ends with `memory`.")(_ends(HOARD, CallStatus.MEMORY)),
    memory_is_one_for_all,
    check("limit: processes", "A call that starts too many processes ends with `pids`.")(
        _ends(FORKS, CallStatus.PIDS, pids=24, memory_mib=512)
    ),
    check("limit: threads", "A call that starts too many threads ends with `pids`.", quick=False)(
        _ends(THREADS, CallStatus.PIDS)
    ),
    check("limit: space in /work", "A call that fills /work ends with `disk`.")(
        _ends(FILL.format(folder="/work"), CallStatus.DISK)
    ),
    check("limit: space in /tmp", "A call that fills /tmp ends with `disk`.", quick=False)(
        _ends(FILL.format(folder="/tmp"), CallStatus.DISK)  # noqa: S108 - the guest's
    ),
    check("limit: open files", "A call that opens too many files ends with `files`.")(
        _ends(DESCRIPTORS, CallStatus.FILES, open_files=64)
    ),
    output_is_capped,
    check("limit: death", "A call in which the interpreter exits has status `died`, with any exit code.")(
        _ends("import os\nos._exit(0)", CallStatus.DIED)
    ),
    calls_are_counted,
    entries_are_counted,
    usage_is_reported,
)


LEAVE = {
    Tier.SHARED: "secret = '{token}'",
    Tier.PROCESS: "import math\nsecret = __builtins__['secret'] = math.secret = '{token}'",
    Tier.SANDBOX: (
        "import builtins, math, os, socket, subprocess, sys\n"
        "secret = builtins.secret = math.secret = os.environ['SECRET'] = '{token}'\n"
        "for folder in ('/work', '/tmp'):\n"
        "    open(f'{{folder}}/secret-{token}', 'w').write(secret)\n"
        "try:\n"
        "    listener = socket.socket(socket.AF_UNIX)\n"
        "    listener.bind('\\0{token}')\n"
        "    listener.listen(1)\n"
        "except OSError:\n"
        "    pass  # a backend may know no sockets at all\n"
        "child = subprocess.Popen([sys.executable, '-I', '-S', '-c', 'import time; time.sleep(30)', secret])\n"
    ),
}
"""Traces that a session leaves, as far as its tier permits."""

LOOK = {
    Tier.PROCESS: "import math\nprint('secret' in dir(), 'secret' in __builtins__, 'secret' in dir(math))",
    Tier.SANDBOX: """import builtins, math, os, socket
def said():
    for number in filter(str.isdigit, os.listdir('/proc')):
        try:
            yield open(f'/proc/{number}/cmdline', 'rb').read()
        except OSError:
            pass
def reached():
    try:
        socket.socket(socket.AF_UNIX).connect('\\0' + token)
    except OSError:
        return False
    return True
token = ''.join(reversed(backwards))
print('secret' in dir(), 'secret' in dir(builtins), 'secret' in dir(math), 'SECRET' in os.environ,
      any(token in name for folder in ('/work', '/tmp') for name in os.listdir(folder)),
      any(token.encode() in line for line in said()), reached())
""",
}
"""Code that prints `False` for every way to see another's secret; a tier without ways is asked for the name itself."""


@check("sessions are apart", "No session sees another's names, modules, files, sockets or processes, in any tier.")
def sessions_are_apart(subject: Subject) -> Figures:
    for tier in Tier:
        with subject.session(tier) as left, subject.session(tier) as right:
            answered(left.run(LEAVE[tier].format(token=subject.token)))
            answered(right.run(f"backwards = {subject.token[::-1]!r}"))
            looked = right.run(LOOK.get(tier, "print(secret)"))
            require(looked.tier is tier, f"what was meant for the tier {tier.value} ran in {looked.tier.value}")
            if tier in LOOK:
                seen = answered(looked).strip()
                require(set(seen.split()) == {"False"}, f"a {tier.value} session sees what another left: {seen}")
            else:
                answered(looked, CallStatus.EXCEPTION)
                require(looked.error.startswith("NameError"), f"a {tier.value} session has a secret: {looked.error}")
            saved = answered(left.run("print(secret)")).strip()
            require(saved == subject.token, f"a {tier.value} session found {saved!r} in the place of what it left")
    return {}


HOST_PROCESSES = """import os
found = []
for number in filter(str.isdigit, os.listdir('/proc')):
    try:
        found.append(open(f'/proc/{number}/cmdline', 'rb').read().decode(errors='replace'))
    except OSError:
        pass
token = ''.join(reversed(backwards))
print(len(found), any(token in line for line in found))
"""


@check("the host's processes are hidden", "Code sees no process of the host and can signal none.")
def host_processes_are_hidden(subject: Subject) -> Figures:
    sleeper = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)", subject.token],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with subject.sandbox() as box:
            answered(box.run(f"backwards = {subject.token[::-1]!r}"))
            count, seen = answered(box.run(HOST_PROCESSES)).split()
            number = sleeper.pid
            killed = box.run(f"import os\ntry:\n    os.kill({number}, 9)\nexcept OSError:\n    print('none')")
        require(seen == "False", "a process of the host is in the sandbox's /proc")
        require(sleeper.poll() is None, f"code in the sandbox ended a process of the host: {killed.output!r}")
    finally:
        sleeper.kill()
        sleeper.wait()
    return {"processes_seen": float(count)}


BOMB = """import os
for _ in range(4):
    if os.fork() == 0:
        break
kept = []
while True:
    try:
        os.fork()
    except OSError:
        kept.append(bytearray(1 << 18))
"""


@check(
    "neighbours are undisturbed",
    "Beside a fork and memory bomb every call of a neighbour is answered within a second.",
    quick=False,
)
def neighbours_are_undisturbed(subject: Subject) -> Figures:
    with subject.session(Tier.SANDBOX) as neighbour, subject.sandbox() as box:
        answered(neighbour.run("x = 1"))
        quiet = _p95_ms(neighbour, calls=50)
        bomb = subject.session(Tier.SANDBOX)
        try:
            under_way = bomb.start(BOMB, seconds=2.0)
            loud = _p95_ms(neighbour, calls=50)
            ended = under_way.result(timeout=30)
        finally:
            bomb.close()
        require(ended.status is not CallStatus.OK, "a fork bomb ended with ok")
        require(ended.seconds < 4.0, f"a fork bomb that had 2 s was answered after {ended.seconds:.1f} s")
        require(answered(neighbour.run("print(x)")) == "1\n", "a neighbour lost its names")
        require(answered(box.run("print(2)")) == "2\n", "a neighbour does not answer any more")
    require(loud < 1_000, f"a neighbour's calls took {loud:.0f} ms (p95) beside a fork bomb, {quiet:.1f} ms without")
    return {"quiet_p95_ms": quiet, "beside_a_bomb_p95_ms": loud}


def _p95_ms(session: Session, calls: int) -> float:
    taken = []
    for number in range(calls):
        started = time.monotonic()
        answered(session.run(f"y = {number}"))
        taken.append(1000 * (time.monotonic() - started))
        time.sleep(0.005)
    return quantiles(taken, n=20, method="inclusive")[18]


ISOLATION = (sessions_are_apart, host_processes_are_hidden, neighbours_are_undisturbed)

"""Checks of isolation: sessions are separate, and host processes are hidden."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import quantiles

from runtime.conformance.check import Figures, Subject, answered, check, require
from runtime.sandbox import CallStatus, Session, Tier

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


CHECKS = (sessions_are_apart, host_processes_are_hidden, neighbours_are_undisturbed)

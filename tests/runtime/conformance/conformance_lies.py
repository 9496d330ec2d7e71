"""For each check of the suite what a backend could do to break what it asserts: (check, what is untrue) -> the pool."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lying_pools import LyingPool, before_each, calling_it_ok, ended_well, saying, telling

from runtime.conformance import AREAS, CheckResult
from runtime.conformance.check import Subject, examine
from runtime.conformance.suite import CHECKS
from runtime.errors import SandboxError
from runtime.sandbox import CallStatus, SessionPool, Usage

Lie = Callable[[SessionPool], LyingPool]
TOKEN = "token0123456789abcdef"


def pool(**lies: Any) -> Lie:
    return lambda real: LyingPool(real, **lies)


def in_a_fresh_session(self: Any, code: str) -> Any:
    with self.pool.real.open(tier=self.real.tier) as other:
        return other.run(code)


def reaching_the_host(self: Any, code: str) -> Any:
    """What the guest does not know of, the host hears."""
    port = re.search(r"tcp4 = (\d+)", code)
    if port:
        socket.create_connection(("127.0.0.1", int(port[1])), 1).close()
    return self.real.run(code)


PROC = f"""import io, os
real_listdir, real_open = os.listdir, __builtins__['open'] if isinstance(__builtins__, dict) else __builtins__.open
os.listdir = lambda path='.': ['1'] if path == '/proc' else real_listdir(path)
def open(path, *rest, **more):
    return io.BytesIO(b'python {TOKEN}') if path == '/proc/1/cmdline' else real_open(path, *rest, **more)
"""
WRITABLE = """import os
real_open_of_os = os.open if os.open.__name__ == 'open' else real_open_of_os
def sly(path, *rest, **more):
    return real_open_of_os('/work/sly' if path.startswith('/usr') else path, os.O_RDWR | os.O_CREAT)
os.open = sly
os.unlink = lambda path: None
"""
DESCRIPTORS = """import os
os.listdir = lambda path='.': {'/proc': ['0'], '/proc/0/fd': ['201']}.get(path, [])
os.open = lambda path, flags: os.dup(1)
"""
CONNECTS = "import socket\nsocket.socket.connect = lambda self, address: None"
ROOT = "import os\nos.setuid = lambda number: None"
SECRET = "import os\nos.environ['AWS_SECRET_ACCESS_KEY'] = 'x'"


def lenient(method: str, otherwise: Any) -> dict[str, Any]:
    """What should be refused is answered."""

    def lie(self: Any, *given: Any, **named: Any) -> Any:
        try:
            return getattr(self.real, method)(*given, **named)
        except SandboxError:
            return otherwise

    return {method: lie}


def download_beside(self: Any, path: str, target: Path) -> int:
    (target.parent / "evil").write_text("x")
    return self.real.download(path, target)


def download_links(self: Any, path: str, target: Path) -> int:
    target.mkdir()
    (target / "link").symlink_to("/etc/passwd")
    return 1


def restore_but_not_files(self: Any, saved: Any) -> None:
    self.real.restore(saved)
    self.real.run("open('/work/new', 'w').close()")


STILL = """class still:
    sleep = lambda seconds, real=time.sleep: real(
        seconds if threading.current_thread() is threading.main_thread() else 99
    )
time = still
time.sleep(1)
"""
"""The thread that counts takes one more step and then none."""


def restore_but_not_threads(self: Any, saved: Any) -> None:
    self.real.restore(saved)
    self.real.run(STILL)


def restore_something_fresh(self: Any, _kept: Any) -> None:
    self.real = self.pool.real.sandbox(self.real.limits)


def fork_by_hand(self: Any, saved: Any, n: int) -> list[Any]:
    return [self.real.fork(saved, 1)[0]] * n


def fork_without_new_numbers(self: Any, saved: Any, n: int) -> Any:
    branches = self.real.fork(saved, n)
    for branch in branches:
        branch.run("import random\nrandom.seed(7)")
    return branches


def snapshot_that_goes(self: Any, **named: Any) -> Any:
    saved = self.real.snapshot(**named)
    self.pool.real.forget(saved)
    return saved


def run_nothing_and_time_out(self: Any, code: str) -> Any:
    return self.real.run("1").model_copy(update={"status": CallStatus.TIMEOUT, "seconds": 0.6, "error": "stopped"})


def leave_open(self: Any, code: str) -> Any:
    self.pool.left.append(os.dup(0))
    return self.real.run(code)


def unlimited(**limits: float) -> Lie:
    return pool(limits=limits)


LIES: dict[str, dict[str, Lie]] = {
    "names persist": {"every call begins anew": pool(session={"run": in_a_fresh_session})},
    "errors are told": {
        "an error is no error": pool(sandbox=saying(calling_it_ok)),
        "the traceback is lost": pool(sandbox=telling(traceback="")),
    },
    "programs run": {
        "every exit code is 0": pool(
            sandbox={"exec": lambda self, *a, **n: self.real.exec(*a, **n).model_copy(update={"exit_code": 0})}
        )
    },
    "time is the host's": {"the guest's clock is believed": pool(sandbox=telling(seconds=0.0))},
    "sessions are apart": {"all sessions are one": pool(one_session=True, session={"close": lambda self: None})},
    "the host's processes are hidden": {"a process of the host is seen": pool(sandbox=before_each(PROC))},
    "neighbours are undisturbed": {"a bomb is called ok": pool(session={"start": lambda *a, **n: ended_well()})},
    "the root is read-only": {"/usr can be written": pool(sandbox=before_each(WRITABLE))},
    "there are no rights": {"code may become root": pool(sandbox=before_each(ROOT))},
    "nothing of the host is inside": {"a secret is in the environment": pool(sandbox=before_each(SECRET))},
    "no network": {
        "connecting works": pool(sandbox=before_each(CONNECTS)),
        "the host hears something": pool(sandbox={"run": reaching_the_host}),
    },
    "limit: time of a call": {"it has longer": unlimited(call_seconds=6.2)},
    "limit: time of a call that blocks every signal": {"it has longer": unlimited(call_seconds=6.2)},
    "limit: processor time": {"there is none": unlimited(cpu_seconds=60.0, call_seconds=1.5)},
    "limit: lifetime": {"there is none": unlimited(life_seconds=60.0, call_seconds=1.5)},
    "limit: memory": {"there is more": unlimited(memory_mib=1024)},
    "limit: memory of many processes": {"there is more": unlimited(memory_mib=1024)},
    "limit: processes": {"there are more": unlimited(pids=400)},
    "limit: threads": {"there are more": unlimited(pids=800)},
    "limit: space in /work": {"there is more": unlimited(work_mib=100, memory_mib=256)},
    "limit: space in /tmp": {"there is more": unlimited(tmp_mib=100, memory_mib=256)},
    "limit: open files": {"there are more": unlimited(open_files=256)},
    "limit: output": {
        "there is more": unlimited(output_bytes=1 << 20),
        "more comes out": pool(sandbox=telling(output="y" * 9_000)),
    },
    "limit: death": {"an exit with 0 is ok": pool(sandbox=saying(calling_it_ok))},
    "limit: number of calls": {"there are more": unlimited(calls=9)},
    "limit: number of files": {"there are more": unlimited(entries=999)},
    "limit: usage": {
        "calls are not counted": pool(sandbox={"usage": Usage(seconds=0.5, output_bytes=108)}),
        "the processor is not": pool(sandbox={"usage": Usage(calls=2, seconds=0.5, output_bytes=108)}),
    },
    "files come back as they were": {
        "the last byte is lost": pool(sandbox={"read": lambda self, *a, **n: self.real.read(*a, **n)[:-1]}),
        "a file is left out": pool(
            sandbox={"download": lambda self, path, target: self.real.download(path + "/deep", target)}
        ),
    },
    "only plain files are touched": {
        "a trap is read": pool(sandbox=lenient("read", b"")),
        "anything is written": pool(sandbox=lenient("write", None)),
    },
    "a path is told what is wrong with it": {
        "nothing is shut": pool(sandbox=lenient("write", None)),
        "what is not there is empty": pool(sandbox=lenient("read", b"one")),
    },
    "hostile names touch nothing": {
        "a file comes out beside": pool(sandbox={"download": download_beside}),
        "a link comes out": pool(sandbox={"download": download_links}),
    },
    "rollback is whole": {
        "nothing goes back": pool(sandbox={"restore": lambda self, saved: None}),
        "files do not go back": pool(sandbox={"restore": restore_but_not_files}),
        "threads stand still": pool(sandbox={"restore": restore_but_not_threads}),
        "it begins anew": pool(sandbox={"restore": restore_something_fresh}),
    },
    "branches are apart": {
        "all branches are one": pool(sandbox={"fork": fork_by_hand}),
        "they draw the same numbers": pool(sandbox={"fork": fork_without_new_numbers}),
    },
    "ready copies are taken": {"nothing goes back": pool(sandbox={"restore": lambda self, saved: None})},
    "a durable snapshot outlives its sandbox": {
        "it does not": pool(sandbox={"snapshot": snapshot_that_goes}),
        "it cannot be forgotten": pool(forgets=False),
    },
    "unknown snapshots are refused": {"they are not": pool(sandbox=lenient("restore", None))},
    "limit: number of snapshots": {"there are more": unlimited(snapshots=9)},
    "replies cannot be forged": {
        "a forged output comes out": pool(sandbox=telling(output="forged")),
        "a forged end is believed": pool(sandbox=telling(status=CallStatus.TIMEOUT)),
    },
    "the supervisor is out of reach": {"its descriptors are there": pool(sandbox=before_each(DESCRIPTORS))},
    "statuses are the host's": {"an exit with 0 is ok": pool(sandbox=saying(calling_it_ok))},
    "closing leaves nothing": {"closing does nothing": pool(sandbox={"close": lambda self: None})},
    "a killed call leaves nothing": {
        "nothing is killed": pool(sandbox={"run": run_nothing_and_time_out, "close": lambda self: None})
    },
    "closing a session in a call leaves nothing": {"closing does nothing": pool(session={"close": lambda self: None})},
    "descriptors are closed": {"one is left each time": pool(sandbox={"run": leave_open})},
}
"""Nobody could say of a check without a lie that it sees anything."""


MISTAKES = ("AttributeError", "KeyError", "NameError", "TypeError", "JSONDecodeError")
"""What a check would say that stumbled over a lie instead of finding it."""


def lies_about(*areas: str) -> list[tuple[str, str]]:
    names = [check.name for area in areas for check in AREAS[area]]
    return [(name, lie) for name in names for lie in LIES[name]]


def found_out(real: SessionPool, scratch: Path, name: str, lie: str) -> CheckResult:
    """What the check says of a backend that lies so."""
    check = next(check for check in CHECKS if check.name == name)
    with contextlib.closing(LIES[name][lie](real)) as pool:
        return examine(check, Subject(pool, scratch, TOKEN), area="any", snapshots=True)

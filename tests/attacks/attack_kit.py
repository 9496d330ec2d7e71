"""A bench of sandboxes for attacks: what is attacked, what is looked at afterwards, a neighbour that must not notice.

What every attack has to leave, whatever its verdict: no process, mount, control group or folder of its box, an answer
within its limit and one second, and a neighbour whose p99 stays within 50 ms of that of the same calls in a quiet
moment: the attacker may use as much of the machine's few cores as it was given. What was late, or noticed, is tried
again, because other work of the machine is no attack; five times in a row is.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from runtime.backends.lease import working_folder
from runtime.conformance import host
from runtime.profile import BackendName
from runtime.sandbox import CallResult, CallStatus, Limits, Sandbox
from runtime.sessions import Sessions
from runtime.sessions.own_sandbox import OwnSandbox
from runtime.settings import BrokerSettings, RuntimeSettings

LIMITS = Limits(
    call_seconds=60.0, memory_mib=96, pids=48, output_bytes=4_096, tmp_mib=8, work_mib=4, open_files=256, entries=256,
    cpu_seconds=120.0, life_seconds=600.0, snapshots=8,
)  # fmt: skip
CANARY = "canary-" + os.urandom(8).hex()
"""A word that is everywhere around the broker and must be nowhere inside."""
NOTICED = 0.05
GRACE = 1.0
PATIENCE = 120.0
"""For an answer on a machine that does much else."""
ENDLESS_SECONDS = 0.5
"""For an attack that its time may end."""
PAUSE = 0.02
"""Between two calls of the neighbour; its calls take a millisecond each."""
TRIES = 5
GONE_SECONDS = 120.0
OK, EXCEPTION, TIMEOUT, MEMORY, PIDS, DISK, FILES, OUTPUT, DIED = (
    CallStatus.OK, CallStatus.EXCEPTION, CallStatus.TIMEOUT, CallStatus.MEMORY, CallStatus.PIDS, CallStatus.DISK,
    CallStatus.FILES, CallStatus.OUTPUT, CallStatus.DIED,
)  # fmt: skip


class Attack(NamedTuple):
    """Code, and the verdicts of which one has to come."""

    row: int
    """Of the catalogue (`test_attack_catalogue`)."""
    name: str
    code: str
    ends: frozenset[CallStatus]
    limits: Mapping[str, float] = {}


def attack(row: int, name: str, code: str, *ends: CallStatus, **limits: float) -> Attack:
    return Attack(row, name, code, frozenset(ends), limits)


def each(attacks: list[Attack]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("tried", attacks, ids=[f"{tried.row}-{tried.name}" for tried in attacks])


class Traces:
    """What the host shows of a box while it lives, to be looked for afterwards."""

    def __init__(self, bench: AttackBench, box: str) -> None:
        self._folder = working_folder(bench.state_dir) / bench.owner() / box
        self._box = box
        self._processes: set[int] = set()
        self.note_processes()

    def note_processes(self) -> None:
        self._processes |= host.processes(host.groups(self._box))

    def left(self) -> list[str]:
        found = [f"process {process}" for process in self._processes if host.alive(process)]
        found += [f"group {group}" for group in host.groups(self._box)]
        found += [f"folder {self._folder}"] if self._folder.exists() else []
        return found


class AttackBench:
    def __init__(self, backend: BackendName, state_dir: Path, root_dir: Path) -> None:
        self.backend, self.state_dir = backend, state_dir
        os.environ["ATTACK_CANARY"] = CANARY
        (state_dir / "canary").write_text(CANARY)
        own = BrokerSettings(state_dir=state_dir, root_dir=root_dir, backends=(backend,), ready=0)
        self.pool = Sessions(RuntimeSettings(own=own, backend=backend, limits=LIMITS, shared_workers=1))
        self.broker = self._find_broker()
        self.neighbour = self.pool.sandbox(
            LIMITS.model_copy(
                update={"calls": 1_000_000, "life_seconds": 3_600.0, "cpu_seconds": 3_600.0, "call_seconds": 240.0}
            )
        )
        self.neighbour.run("x = 0")
        self._asked = 0
        self.quiet = p99(self._neighbour_calls(60))

    def _find_broker(self) -> int:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _child_of_mine(entry) and str(self.state_dir) in _settings_of(entry, self):
                return int(entry.name)
        raise AssertionError("the bench has no broker")

    def owner(self) -> str:
        """The name of the broker's folder."""
        return next(entry.name for entry in working_folder(self.state_dir).iterdir() if entry.is_dir())

    def broker_descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.broker}/fd").iterdir()))

    def _neighbour_calls(self, count: int) -> list[float]:
        taken = []
        for _ in range(count):
            started = time.perf_counter()
            result = self.neighbour.run("x += 1\nprint(x)")
            taken.append(time.perf_counter() - started)
            self._asked += 1
            assert (result.status, result.output) == (OK, f"{self._asked}\n")
            time.sleep(PAUSE)
        return taken

    @contextmanager
    def beside_a_neighbour(self) -> Iterator[list[float]]:
        """The neighbour calls all the time, once at the least; what its calls took. Raises what one of them raised."""
        taken: list[float] = []
        over = threading.Event()

        def call() -> None:
            while not (taken and over.is_set()):
                taken.extend(self._neighbour_calls(1))

        with ThreadPoolExecutor(1) as thread:
            caller = thread.submit(call)
            try:
                yield taken
            finally:
                over.set()
                wait([caller])
            caller.result()

    @contextmanager
    def sandbox(self, *, userland: bool = False, **limits: float) -> Iterator[OwnSandbox]:
        """A sandbox that leaves nothing behind."""
        mounts = self._mounts()
        box = self.pool.sandbox(LIMITS.model_copy(update=limits), userland=userland)
        traces = Traces(self, box.id)
        try:
            yield box
            traces.note_processes()
        finally:
            box.close()
        assert host.becomes_true(lambda: not traces.left(), seconds=GONE_SECONDS), traces.left()
        assert self._mounts() == mounts

    def _mounts(self) -> list[str]:
        """Of the host, those that anything of ours could have made."""
        ours = (str(self.state_dir), "/run/guest", "nsjail.0")
        return [line for line in host.mounts().splitlines() if any(path in line for path in ours)]

    def call(self, box: Sandbox, code: str, *, seconds: float | None = None) -> CallResult:
        """One call, answered in time by the clock of the one who waits."""
        started = time.monotonic()
        result = box.run(code, seconds=seconds)
        assert time.monotonic() - started < (seconds or box.limits.call_seconds) + PATIENCE
        assert len(result.output.encode()) <= 3 * box.limits.output_bytes
        return result

    def suffer(self, tried: Attack) -> CallResult:
        """The whole of one attack in a sandbox of its own: verdict, host and neighbour."""
        limits = {"call_seconds": ENDLESS_SECONDS} if TIMEOUT in tried.ends else {}
        quiet, grace = self.quiet, GRACE
        for _ in range(TRIES):
            with self.beside_a_neighbour() as taken, self.sandbox(**(limits | dict(tried.limits))) as box:
                started = time.monotonic()
                result = self.call(box, tried.code)
                late = time.monotonic() - started - box.limits.call_seconds
            assert result.status in tried.ends, (result.status, result.error, result.output[:300])
            if late < grace and p99(taken) < quiet + NOTICED:
                return result
            quiet = max(quiet, p99(self._neighbour_calls(50)))
            grace = max(grace, 2 * self._lateness())
        raise AssertionError(f"late by {late:.3f} s, or a neighbour's calls took up to {max(taken):.3f} s")

    def _lateness(self) -> float:
        """How long after its limit a call that does no harm is answered, on the machine as it is now."""
        with self.sandbox() as box:
            started = time.monotonic()
            assert self.call(box, "while True: pass", seconds=0.2).status is TIMEOUT
            return time.monotonic() - started - 0.2

    def close(self) -> None:
        self.neighbour.close()
        self.pool.close()


def p99(taken: list[float]) -> float:
    """Of calls that were made: what nobody called says nothing."""
    return sorted(taken)[max(0, int(len(taken) * 0.99) - 1)]


def _child_of_mine(process: Path) -> bool:
    try:
        command = (process / "cmdline").read_bytes()
        parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError):
        return False
    return b"runtime.broker" in command and parent == os.getpid()


def _settings_of(process: Path, bench: AttackBench) -> str:
    """A broker's settings are not on its command line, but its keeper's prefixes name its owner."""
    working = working_folder(bench.state_dir)
    names = [entry.name for entry in working.iterdir()] if working.is_dir() else []
    return str(bench.state_dir) if any(name.startswith(f"{process.name}-") for name in names) else ""

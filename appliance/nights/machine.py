"""Measures the use of this machine for the schedule: GPU programs, terminal input, load, energy.

Invariants: nothing is changed, each program that is run has a timeout, and unreadable values are None. Processes of
this program and their descendants never count as somebody else. In a container, whose process numbers differ from the
driver's, only processes visible there can count.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from appliance.nights.settings import IdleSettings

SECONDS = 10.0
OUTERMOST = "pid:[4026531836]"
"""Process namespace of the host, outside any container (Linux, include/linux/proc_ns.h)."""
Ask = Callable[[Sequence[str]], str | None]


def ask(command: Sequence[str]) -> str | None:
    """Runs a program and returns its output; None if it is missing, fails, or times out."""
    found = shutil.which(command[0])
    if found is None:
        return None
    try:
        asked = subprocess.run(
            [found, *command[1:]],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout


class MachineEyes:
    """Measures the use of this machine at each call of `look`; input is only measured with `typed`. One thread at a
    time."""

    def __init__(
        self,
        *,
        gpu: bool = True,
        typed: bool = False,
        energy: bool = False,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        run: Ask = ask,
        root: Path = Path("/"),
    ) -> None:
        self._gpu = gpu
        self._typed = typed
        self._wall = wall
        self._run = run
        self._root = root
        self._meter = EnergyMeter(clock, run, root) if energy else None

    def look(self) -> MachineSnapshot:
        return MachineSnapshot(
            gpu_users=self._gpu_users() if self._gpu else None,
            load=_load(self._root),
            typed_seconds=self._typed_seconds() if self._typed else None,
            joules=self._meter.joules() if self._meter is not None else None,
        )

    def _gpu_users(self) -> tuple[str, ...] | None:
        query = ("nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader")
        listed = self._run(query)
        if listed is None:
            return None
        own, there = own_processes(os.getpid(), self._root), _is_outermost(self._root)
        return others_on_gpu(listed, own, lambda pid: there or (self._root / "proc" / str(pid)).exists())

    def _typed_seconds(self) -> float | None:
        seen = [*self._terminals(), *self._sessions()]
        return min(seen, default=None)

    def _terminals(self) -> list[float]:
        """Returns for each open terminal the seconds since something was read from it."""
        seen = []
        for place in ("dev/pts/[0-9]*", "dev/tty[1-9]"):
            for terminal in self._root.glob(place):
                try:
                    status = terminal.stat()
                except OSError:
                    continue
                if status.st_uid != 0 or place.startswith("dev/pts"):
                    seen.append(max(0.0, self._wall() - status.st_atime))
        return seen

    def _sessions(self) -> list[float]:
        """Returns idle seconds per personal logind session: 0 while in use, infinite if there is none.

        Empty if only terminals can tell.
        """
        listed = self._run(("loginctl", "list-sessions", "--no-legend"))
        if listed is None:
            return []
        names = [line.split()[0] for line in listed.splitlines() if line.split()]
        shown = [self._run(("loginctl", "show-session", name)) or "" for name in names[:50]]
        there = [text for text in shown if not _is_over(text)]
        found = [idle for text in there if (idle := idle_seconds(text, self._wall())) is not None]
        return found if there else [math.inf]


def others_on_gpu(
    listed: str, own: frozenset[int], is_here: Callable[[int], bool] = lambda pid: True
) -> tuple[str, ...]:
    """Parses `nvidia-smi`'s `pid, name` lines and returns the visible programs on a GPU that are not ours."""
    found = []
    for line in listed.split("\n"):
        pid, _, name = line.partition(",")
        if pid.strip().isdecimal() and int(pid) not in own and is_here(int(pid)):
            short = "".join(map(_shown, name.strip().rsplit("/", 1)[-1][:60]))
            found.append(f"{short} (process {pid.strip()})")
    return tuple(found)


def _shown(character: str) -> str:
    """Escapes an unprintable character: program names are untrusted and may reach a terminal."""
    return character if character.isprintable() else repr(character)[1:-1]


def idle_seconds(session: str, now: float) -> float | None:
    """Returns the seconds without input in a graphical session, from `loginctl show-session`; None for other kinds,
    whose terminal is more precise."""
    fields = _fields(session)
    if _is_over(session) or fields.get("Type") not in ("x11", "wayland", "mir"):
        return None
    since = fields.get("IdleSinceHint", "")
    if fields.get("IdleHint") != "yes" or not since.isdecimal():
        return 0.0
    return max(0.0, now - int(since) / 1e6)


def _fields(session: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in session.splitlines() if "=" in line)


def _is_over(session: str) -> bool:
    """True if nobody sits at the login session: a system session, or its person logged out. False if unknown."""
    fields = _fields(session)
    return fields.get("Class", "user") != "user" or fields.get("State") == "closing"


def _is_outermost(root: Path) -> bool:
    """True if this process is outside any container, so that its process numbers equal the GPU driver's."""
    try:
        return str((root / "proc/self/ns/pid").readlink()) == OUTERMOST
    except OSError:
        return False


def own_processes(root_pid: int, root: Path = Path("/")) -> frozenset[int]:
    """Returns the ids of the process `root_pid` and all its descendants."""
    children: dict[int, list[int]] = {}
    for status in (root / "proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if len(fields) > 1:  # it may end meanwhile
            children.setdefault(int(fields[1]), []).append(int(status.parent.name))
    found, left = {root_pid}, [root_pid]
    while left:
        for child in children.get(left.pop(), ()):
            if child not in found:
                found.add(child)
                left.append(child)
    return frozenset(found)


class EnergyMeter:
    """Measures the energy that processors (RAPL) and GPUs use between calls."""

    def __init__(self, clock: Callable[[], float], run: Ask = ask, root: Path = Path("/")) -> None:
        self._clock = clock
        self._run = run
        self._zones = sorted((root / "sys/class/powercap").glob("intel-rapl:[0-9]*"))
        self._zones = [zone for zone in self._zones if zone.name.count(":") == 1 and not _is_platform(zone)]
        self._counted: dict[Path, int] = {}
        self._at: float | None = None
        self._joules = 0.0
        self._drawn: float | None = None

    def joules(self) -> float | None:
        """Returns the energy of processors and GPUs since the first call, in joules; None if nothing can be read."""
        now = self._clock()
        watts = self._watts()
        known = watts is not None
        self._joules += (watts or 0.0) * max(0.0, now - (now if self._at is None else self._at))
        self._at = now
        for zone in self._zones:
            try:
                counted = int((zone / "energy_uj").read_text())
                wraps = int((zone / "max_energy_range_uj").read_text())
            except (OSError, ValueError):
                continue
            known = True
            before = self._counted.get(zone, counted)
            self._joules += ((counted - before) if counted >= before else (counted - before + wraps)) / 1e6
            self._counted[zone] = counted
        return self._joules if known else None

    def _watts(self) -> float | None:
        """Returns the current power draw of all GPUs in watts. After a failed query that is the last known one, so that
        energy is never missed."""
        drawn = self._run(("nvidia-smi", "--query-gpu=power.draw", "--format=csv,noheader,nounits"))
        if drawn is None:
            return self._drawn
        figures = []
        for line in drawn.split():
            try:
                figures.append(float(line))
            except ValueError:
                continue  # "[N/A]"
        self._drawn = sum(figures) if figures else None
        return self._drawn


def _is_platform(zone: Path) -> bool:
    """True if the RAPL energy counter covers the whole machine, including its processors."""
    try:
        return (zone / "name").read_text().strip() == "psys"
    except OSError:
        return False


def _load(root: Path) -> float | None:
    try:
        return float((root / "proc/loadavg").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


@dataclass(frozen=True)
class MachineSnapshot:
    """Use of the machine at one moment; None for values that cannot be read here."""

    gpu_users: tuple[str, ...] | None = None
    """Other programs that compute on a GPU, by name and process; None if no GPU driver answers."""
    load: float | None = None
    """One-minute load average."""
    typed_seconds: float | None = None
    """Seconds since the last input at a terminal or in a session; infinite if nobody is logged in."""
    joules: float | None = None
    """Energy of processors and GPUs since the first snapshot, in joules; only differences are meaningful."""


@dataclass(frozen=True)
class Use:
    """Use of the machine by somebody else."""

    reason: str
    at_once: bool
    """True if running work ends immediately rather than at the end of its step."""


def use_of(seen: MachineSnapshot, rules: IdleSettings, *, working: bool) -> Use | None:
    """Returns the use of the machine by somebody else that holds nights, or None if it is free. `working` is True while
    a night's worker runs."""
    if rules.gpu and seen.gpu_users:
        return Use(f"another program uses a GPU: {', '.join(seen.gpu_users[:3])}", at_once=True)
    if rules.session is not None and seen.typed_seconds is not None and seen.typed_seconds < 60 * rules.session:
        minutes = int(seen.typed_seconds // 60)
        return Use(f"last input at this machine: {minutes} minutes ago", at_once=False)
    if rules.max_load is not None and not working and seen.load is not None and seen.load > rules.max_load:
        return Use(f"the load average is {seen.load:.1f}, above {rules.max_load:g}", at_once=False)
    return None


def unknown(seen: MachineSnapshot, rules: IdleSettings, *, energy: bool) -> tuple[str, ...]:
    """Returns the idle and energy rules that cannot be enforced on this machine, each as a sentence."""
    found = []
    if rules.gpu and seen.gpu_users is None:
        found.append("GPU use: nvidia-smi is missing or does not answer")
    if rules.session is not None and seen.typed_seconds is None:
        found.append("last input: neither logind nor a terminal can be read")
    if rules.max_load is not None and seen.load is None:
        found.append("the load average")
    if energy and seen.joules is None:
        found.append("energy: neither RAPL nor nvidia-smi can be read, so schedule.max_energy has no effect")
    return tuple(found)

"""Creates the pool's workers from sandboxes of the broker, and ends them when the broker ends.

Invariants: every live worker is known here, and each is notified once that its broker is gone. Called from the reactor
only.

Profiles of each tier's sandboxes, and the modules imported before the first call.

A snippet that mentions numpy, scipy, sympy or mpmath gets a place in a sandbox whose golden image has them, in the
process tier for anything that only computes: modules imported before the fork need no file. Measured under gVisor on 2
shared cores: the first call with numpy takes 20 ms in a process of such an image, 4 ms in a separate sandbox; imported
from files it takes 250 ms there, and 430 ms after a process was denied the file. Common imports inside these modules'
functions are preloaded too; others move the session to a separate sandbox, which has files. An image costs 95 MiB
(numpy, scipy), 54 (sympy, mpmath) or 133 (all).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

from runtime.broker_api import BrokerApi, Handle, SnapshotCopy, Termination, Ticket
from runtime.errors import InfrastructureError, SandboxError
from runtime.profile import Mode, PackageSet, Profile
from runtime.reactor import Reactor
from runtime.sandbox import Limits, Priority
from runtime.sessions.outcomes import LossCause
from runtime.sessions.worker import SHARED_WIDTH, Worker
from runtime.settings import RuntimeSettings


class ModuleFamily(NamedTuple):
    """Modules that are preloaded together, if source mentions them."""

    mentioned: re.Pattern[str]
    modules: tuple[str, ...]
    memory_mib: int
    address_space_mib: int


_NUMPY = (
    "numpy numpy.random numpy.fft numpy.polynomial scipy.special scipy.linalg scipy.optimize scipy.integrate"
    " scipy.stats"
)
_SYMPY = (
    "mpmath sympy sympy.combinatorics sympy.physics.units sympy.concrete.delta sympy.sets.handlers.functions"
    " sympy.sets.handlers.issubset sympy.stats sympy.polys.domains.old_fractionfield"
    " sympy.polys.domains.old_polynomialring sympy.assumptions.handlers sympy.assumptions.predicates"
    " sympy.assumptions.facts sympy.logic.algorithms.dpll2 sympy.parsing.sympy_parser sympy.integrals.heurisch"
    " sympy.integrals.manualintegrate sympy.integrals.risch sympy.sets.setexpr sympy.codegen.ast"
    " sympy.assumptions.handlers.calculus sympy.assumptions.handlers.ntheory sympy.assumptions.handlers.order"
    " sympy.assumptions.handlers.sets"
)
FAMILIES = (
    ModuleFamily(re.compile(r"\b(?:numpy|scipy)\b"), tuple(_NUMPY.split()), 100, 260),
    ModuleFamily(re.compile(r"\b(?:sympy|mpmath)\b"), tuple(_SYMPY.split()), 60, 80),
)
MACHINE_MIB = (os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) >> 20
PRELOADED = frozenset(["numpy", "scipy", "sympy", "mpmath"])
"""Modules available to a compute-only process beside the standard library, if the guest has packages."""


def preload_for(source: str) -> tuple[str, ...]:
    """Returns the modules to preload for Python source: whole families, by mention, so that there are few images."""
    return sum((family.modules for family in FAMILIES if family.mentioned.search(source)), ())


def joined(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the union of two lists of preloaded modules, always in the same order."""
    return sum((family.modules for family in FAMILIES if family.modules[0] in first + second), ())


def profile(
    mode: Mode,
    preload: tuple[str, ...],
    limits: Limits,
    settings: RuntimeSettings,
    *,
    userland: bool = False,
    packages: PackageSet | None = None,
) -> Profile:
    """Returns the resource profile of a sandbox that runs in this mode.

    Sandboxes with many sessions get a multiple of a session's limits, each session its own share; the process tier's
    has room for all at their limits, up to a quarter of the machine, so none costs others theirs. Only a separate
    sandbox ends by CPU time and age: the others belong to nobody. Preloaded modules are added on top.
    """
    memory, address_space, pids, cpus, ahead = {
        "shared": (2 * limits.memory_mib, limits.memory_mib, limits.pids, limits.cpus, 0),
        "process": (
            min(max(4, settings.process_sessions) * limits.memory_mib, max(4 * limits.memory_mib, MACHINE_MIB // 4)),
            limits.memory_mib,
            limits.pids + 8 * settings.process_sessions,
            max(limits.cpus, float(os.cpu_count() or 1)),
            settings.process_children,
        ),
        "sandbox": (limits.memory_mib, 4 * limits.memory_mib, limits.pids, limits.cpus, 1),
    }[mode]
    loaded = [family for family in FAMILIES if family.modules[0] in preload]
    ahead_mib = sum(family.memory_mib for family in loaded)
    if packages is not None:  # they replace the usual ones
        preload, loaded, ahead_mib = packages.preload, [], packages.memory_mib
    own = mode == "sandbox"
    return Profile(
        backend=settings.backend,
        mode=mode,
        userland=userland,
        packages=packages.digest if packages is not None else None,
        preload=preload,
        memory_mib=memory + ahead_mib,
        process_memory_mib=address_space
        + (4 * ahead_mib if packages is not None else sum(family.address_space_mib for family in loaded)),
        pids=pids,
        cpus=cpus,
        tmp_mib=limits.tmp_mib,
        work_mib=limits.work_mib,
        open_files=limits.open_files,
        output_bytes=limits.output_bytes,
        slice_seconds=settings.slice_seconds,
        ahead=ahead,
        most_ahead=4 * ahead if mode == "process" else ahead,
        cpu_seconds=limits.cpu_seconds if own else None,
        life_seconds=limits.life_seconds if own else None,
    )


PROFILES = 256
Started = Callable[[Worker | SandboxError], None]


class SessionStarts:
    def __init__(
        self, reactor: Reactor, launcher: BrokerApi, settings: RuntimeSettings, *, ended: Callable[[Worker], None]
    ) -> None:
        self._reactor, self._launcher, self._settings, self._ended = reactor, launcher, settings, ended
        self._width = {"shared": SHARED_WIDTH, "process": max(2, os.cpu_count() or 1), "sandbox": 1}
        self._alive: set[Worker] = set()
        self._lost: set[Worker] = set()
        """Killed workers that are not yet known to be gone."""
        self._closed = False
        self._profile = lru_cache(PROFILES)(partial(profile, settings=settings))
        """Cached: its code is cold when somebody waits for a sandbox."""
        self.started = self.killed = 0

    def profile(
        self,
        mode: Mode,
        preload: tuple[str, ...] = (),
        limits: Limits | None = None,
        *,
        userland: bool = False,
        packages: PackageSet | None = None,
    ) -> Profile:
        """Returns the resource profile for a fresh sandbox of this pool; from any thread."""
        return self._profile(mode, preload, limits or self._settings.limits, userland=userland, packages=packages)

    def launch(
        self,
        wanted: Profile | SnapshotCopy,
        *,
        on_ready: Started,
        caller: str = "",
        priority: Priority,
        reply_bytes: int = 0,
    ) -> Ticket:
        return self._launcher.launch(
            wanted, caller=caller, priority=priority, on_ready=self._worker(on_ready, reply_bytes)
        )

    def broker_died(self) -> None:
        for worker in [*self._alive, *self._lost]:
            worker.lose(LossCause.BROKER)

    def close(self, done: Callable[[], None]) -> None:
        """Ends every sandbox of the pool; calls back when nothing runs in any of them."""
        self._closed = True
        for worker in list(self._alive):
            worker.lose(LossCause.DIED)
        left = set(self._lost)

        def gone(worker: Worker, _termination: Termination) -> None:
            left.discard(worker)
            if not left:
                done()

        for worker in list(left):
            worker.when_ended(partial(gone, worker))
        if not left:
            done()

    def _worker(self, on_ready: Started, reply_bytes: int) -> Callable[[Handle | SandboxError], None]:
        def handed_over(handle: Handle | SandboxError) -> None:
            if isinstance(handle, SandboxError):
                on_ready(handle)
                return
            self.started += 1
            worker = Worker(
                self._reactor,
                self._launcher,
                handle,
                ended=self._has_ended,
                width=self._width[handle.profile.mode],
                reply_bytes=reply_bytes,
            )
            self._alive.add(worker)
            if self._closed:
                worker.lose(LossCause.DIED)
                on_ready(InfrastructureError("the pool of sessions was closed"))
            else:
                on_ready(worker)

        return handed_over

    def _has_ended(self, worker: Worker) -> None:
        self._alive.discard(worker)
        self._lost.add(worker)
        self.killed += 1
        worker.when_ended(lambda _termination: self._lost.discard(worker))
        self._ended(worker)

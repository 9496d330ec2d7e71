"""Says what the sandboxes of each tier may use, and which modules they have imported before the first call.

A snippet that mentions numpy, scipy, sympy or mpmath gets its place in a sandbox whose golden image has them. That is
the process tier, too, as for anything that only computes: imported before the fork they need no file. Measured under
gVisor on 2 shared cores: the first call with numpy takes 20 ms in a process of such an image, 4 ms in a sandbox of its
own; imported from files it takes 250 ms there, and 430 ms by way of a process that is denied the file. What these
modules import only inside their functions is preloaded too, as far as it is common; what is not moves the session to a
sandbox of its own, where there are files. An image costs 95 MiB (numpy, scipy), 54 (sympy, mpmath) or 133 (all).
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from runtime.profile import Mode, PackageSet, Profile
from runtime.sandbox import Limits
from runtime.settings import RuntimeSettings


class ModuleFamily(NamedTuple):
    """Modules that are imported together."""

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
"""What a process can compute with, beside the standard library, where the guest has packages."""


def preload_for(source: str) -> tuple[str, ...]:
    """Says what is imported ahead for this source: whole families, by their mention, so that there are few images."""
    return sum((family.modules for family in FAMILIES if family.mentioned.search(source)), ())


def joined(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Gives what both ask for, always in the same order."""
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
    """Those with many sessions get a multiple of a session's limits, each session its own part; that of processes has
    room for all at their limits, up to a quarter of the machine: none costs others theirs. Only a sandbox of its own
    ends by its CPU time and its age: the others belong to nobody. What is preloaded comes on top."""
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
    if packages is not None:  # the usual ones are not there
        preload, loaded, ahead_mib = packages.preload, [], packages.memory_mib
    own = mode == "sandbox"
    return Profile(
        backend=settings.backend,
        mode=mode,
        userland=userland,
        packages=packages.digest if packages is not None else None,
        preload=preload,
        memory_mib=memory + ahead_mib,
        process_memory_mib=address_space + sum(family.address_space_mib for family in loaded),
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

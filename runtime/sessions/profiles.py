"""Profiles of each tier's sandboxes, and the modules imported before the first call.

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
from typing import NamedTuple

from runtime.profile import Mode, PackageSet, Profile
from runtime.sandbox import Limits
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

"""All checks in reading order, and their execution over one pool.

Invariants: every chosen check runs and gives one result, independent of the others; nothing of the suite is left when
it ends, even by Ctrl-C; leftovers of a killed suite are removed by the next. Concurrent suites do not interfere.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from runtime.backends.lease import Owner
from runtime.conformance import containment, files, limits, network, snapshots, state
from runtime.conformance.check import CheckResult, ConformanceCheck, Subject, examine
from runtime.profile import BackendName
from runtime.sandbox import SessionPool

AREAS: dict[str, tuple[ConformanceCheck, ...]] = {
    "state": state.CHECKS,
    "isolation": limits.ISOLATION,
    "containment": containment.CONTAINMENT,
    "network": network.CHECKS,
    "limits": limits.ENDS,
    "files": files.FILES,
    "snapshots": snapshots.CHECKS,
    "replies": files.REPLIES,
    "leftovers": containment.LEFTOVERS,
}
CHECKS = tuple(check for checks in AREAS.values() for check in checks)
_AREA_OF = {check.name: area for area, checks in AREAS.items() for check in checks}
PREFIX = "assay-conformance-"
"""Name prefix of host folders; the owner's name follows."""
TAKES_SNAPSHOTS = {BackendName.GVISOR: True, BackendName.NSJAIL: False}
"""Documented snapshot support by backend; a backend without it must refuse."""


def chosen(*, quick: bool) -> tuple[ConformanceCheck, ...]:
    return tuple(check for check in CHECKS if check.quick or not quick)


def conform(
    pool: SessionPool, backend: BackendName, checks: Iterable[ConformanceCheck] = CHECKS
) -> Iterator[CheckResult]:
    """Runs conformance checks against a session pool one after another and yields each result immediately. The pool
    stays the caller's. A failed check raises nothing."""
    temporary = Path(tempfile.gettempdir())
    sweep(temporary)
    mine = f"{PREFIX}{Owner.current()}."
    for check in checks:
        with tempfile.TemporaryDirectory(prefix=mine, dir=temporary) as scratch:
            subject = Subject(pool, Path(scratch), token=f"token{secrets.token_hex(12)}")
            yield examine(check, subject, area=_AREA_OF[check.name], snapshots=TAKES_SNAPSHOTS[backend])


def sweep(temporary: Path) -> None:
    """Removes the temporary folders of this user's killed conformance suites."""
    for folder in temporary.glob(f"{PREFIX}*"):
        owner = Owner.parse(folder.name.removeprefix(PREFIX).partition(".")[0])
        if owner is not None and not owner.alive() and folder.lstat().st_uid == os.getuid() and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)  # another suite may sweep at the same time

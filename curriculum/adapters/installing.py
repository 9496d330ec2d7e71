"""Installs the packages of an adapter's guests, with an owner's package and its dependencies if one is named.

Invariants: nothing of an owner's package, or of what it requires, runs on the host. What it requires is resolved once,
to a lock with hashes; the adapter's own versions are kept where the requirements permit them.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from curriculum.adapters import Adapter
from curriculum.adapters.npm import PREFIX, locked_packages, npm_package
from curriculum.adapters.packages import OwnerPackage, guest_package
from curriculum.contract.errors import CurriculumError
from runtime.package_sets import InstalledSet, extend_set, guest_version, install_set
from runtime.package_sets.pip import REQUIREMENT, LockedPackage, download, resolve


class InstalledPackages(NamedTuple):
    set: InstalledSet
    owned: str
    """Import name of the owner's package; empty without one."""
    packages: int
    lock: tuple[LockedPackage, ...] = ()
    """Versions that the owner's package requires, dependencies included."""


def install_adapter(adapter: Adapter, place: str = "", beside: Sequence[str] = ()) -> InstalledPackages:
    """Installs an adapter's packages.

    `place` names an owner's package: a folder, a wheel, a requirement for pip or `npm:NAME`; `beside` are requirements
    beyond those that it declares. Raises CurriculumError for an unusable one, and what `install_set` raises.
    """
    if place and not adapter.takes_package:
        raise CurriculumError(f"{adapter.name} takes no package", hint="omit --package")
    if beside and not place:
        raise CurriculumError("requirements without a package", hint="name one with --package, or omit --with")
    owned = _owned(adapter, place) if place else None
    if owned is not None:
        owned = owned._replace(requires=(*owned.requires, *beside))
    if owned is None or not owned.requires:
        added = dict(adapter.stand_in_files) | (locked_packages(adapter.npm_lock) if adapter.npm else {})
        base = install_set(adapter.set_name(), adapter.pins, adapter.imports, added=added)
        if owned is None:
            return InstalledPackages(base, "", len(adapter.pins))
        extended = extend_set(adapter.set_name(owned.name), base.folder, owned.files)
        return InstalledPackages(extended, owned.name, len(adapter.pins))
    required = {_name_of(one) for one in owned.requires}
    core = adapter.core[:1] if required.isdisjoint(adapter.core) else ()
    asked = dict.fromkeys((*owned.requires, *core, *adapter.needs))
    lock = resolve(list(asked), adapter.pins, guest_version())
    files = dict(adapter.stand_in_files) | owned.files
    found = install_set(adapter.set_name(owned.name), [one.line for one in lock], (), added=files)
    return InstalledPackages(found, owned.name, len(lock), tuple(lock))


def _owned(adapter: Adapter, place: str) -> OwnerPackage:
    if place.startswith(PREFIX):
        return npm_package(place)
    if Path(place).exists() or not REQUIREMENT.fullmatch(place):
        return guest_package(adapter, Path(place))
    with tempfile.TemporaryDirectory(prefix="assay-wheel-") as folder:
        return guest_package(adapter, download(place, Path(folder), guest_version()))


def _name_of(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]).lower()

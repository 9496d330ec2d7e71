"""Reads an owner's package, a folder or a wheel, into the files of a package set. Runs nothing.

Invariants: files are regular, plainly named, few and small; code that would run by itself is left out when the set is
made. Dependencies beyond the adapter's own packages are not fetched: the import fails in the guest.
"""

from __future__ import annotations

import os
import re
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from curriculum.adapters import TASKS, Adapter
from curriculum.contract.errors import CurriculumError

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
MOST_FILES, MOST_BYTES = 500, 16 << 20
LEFT_OUT = ("__pycache__", ".git", ".venv", "node_modules")
HINT = "name a folder that is a Python package (it has an __init__.py), or a wheel of one"


class OwnerPackage(NamedTuple):
    name: str
    """Import name of the package."""
    files: dict[str, bytes]


def package_at(place: Path) -> OwnerPackage:
    """Reads the one Python package in an owner's folder or wheel, without running it. Raises CurriculumError if it is
    invalid, too large or unreadable."""
    try:
        found = dict(_of_wheel(place) if place.suffix == ".whl" else _of_folder(place))
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise CurriculumError(f"{place} cannot be read: {error}", hint=HINT) from error
    names = {PurePosixPath(path).parts[0] for path in found if path.endswith("/__init__.py") and path.count("/") == 1}
    if len(names) != 1:
        raise CurriculumError(f"{place}: found {len(names)} packages instead of one", hint=HINT)
    [name] = names
    if not NAME.fullmatch(name):
        raise CurriculumError(f"invalid package name {name!r}", hint="use lower-case letters, digits and _")
    return OwnerPackage(name, found)


def guest_package(adapter: Adapter, place: Path) -> OwnerPackage:
    """Reads an owner's package without its task files (`TASKS`) if the adapter's tasks are given. A server that reads
    files could show their answers. Raises as `package_at`."""
    owned = package_at(place)
    kept = {path: data for path, data in owned.files.items() if PurePosixPath(path).name != TASKS}
    return OwnerPackage(owned.name, kept) if adapter.tasks_given else owned


def _of_folder(folder: Path) -> Iterator[tuple[str, bytes]]:
    if not folder.is_dir():
        raise CurriculumError(f"{folder} is neither a folder nor a wheel", hint=HINT)
    root = folder.resolve()
    count = size = 0
    for above, folders, names in os.walk(root):
        folders[:] = sorted(one for one in folders if one not in LEFT_OUT and not one.startswith("."))
        for name in sorted(names):
            file = Path(above, name)
            if name.startswith(".") or not stat.S_ISREG(file.lstat().st_mode):
                continue
            count, size = count + 1, size + file.stat().st_size
            _require_small(folder, count, size)
            yield _path(str(Path(root.name, file.relative_to(root)))), file.read_bytes()


def _of_wheel(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as opened:
        entries = [entry for entry in opened.infolist() if not entry.is_dir()]
        _require_small(wheel, len(entries), sum(entry.file_size for entry in entries))
        for entry in entries:
            if not entry.filename.partition("/")[0].endswith((".dist-info", ".data")):
                yield _path(entry.filename), opened.read(entry)


def _require_small(place: Path, files: int, size: int) -> None:
    if files > MOST_FILES or size > MOST_BYTES:
        raise CurriculumError(
            f"{place} has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB",
            hint="leave out files that it does not need",
        )


def _path(path: str) -> str:
    if not all(PART.fullmatch(part) for part in path.split("/")):
        raise CurriculumError(
            f"invalid file name {path[:80]!a}", hint="rename the file: letters, digits and _ . + - are allowed"
        )
    return path

"""Reads an owner's package, a folder or a wheel, into the files of a package set, with its requirements. Runs nothing.

Invariants: files are regular, plainly named, few and small; code that would run by itself is left out when the set is
made. Requirements are those that the package declares (pyproject.toml, requirements.txt, a wheel's metadata), without
extras; they are resolved, locked and fetched at installation. A package without `__main__.py` gets one from its entry
point, so that it starts as by `python -m`.
"""

from __future__ import annotations

import email
import os
import re
import stat
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from curriculum.adapters import TASKS, Adapter
from curriculum.contract.errors import CurriculumError

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
MOST_FILES, MOST_BYTES = 500, 16 << 20
LEFT_OUT = ("__pycache__", ".git", ".venv", "node_modules")
HINT = "name a folder that is a Python package (it has an __init__.py), a project of one, or a wheel of one"
ABOUT = ("METADATA", "entry_points.txt")
"""Files of a wheel's metadata that a guest gets, because packages ask for their own version."""
ABOUT_BYTES = 1 << 20
ENTRY = re.compile(r"([A-Za-z_][A-Za-z0-9_.]{0,200}):([A-Za-z_][A-Za-z0-9_]{0,100})")
START = "import sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n"


class OwnerPackage(NamedTuple):
    name: str
    """Import name of the package."""
    files: dict[str, bytes]
    requires: tuple[str, ...] = ()
    """Requirements that it declares, without extras."""


class _About(NamedTuple):
    """Declarations of a package: requirements, and entry points (`module:function`)."""

    requires: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    metadata: tuple[tuple[str, bytes], ...] = ()
    """Metadata file of a project folder, by path."""


def package_at(place: Path) -> OwnerPackage:
    """Reads the one Python package in an owner's folder or wheel, without running it. Raises CurriculumError if it is
    invalid, too large or unreadable."""
    try:
        if place.suffix == ".whl":
            found, about = dict(_of_wheel(place)), _declared_by_wheel(place)
        else:
            folder, about = _package_folder(place)
            found = dict(_of_folder(folder)) | dict(about.metadata)
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise CurriculumError(f"{place} cannot be read: {error}", hint=HINT) from error
    names = {PurePosixPath(path).parts[0] for path in found if path.endswith("/__init__.py") and path.count("/") == 1}
    if len(names) != 1:
        raise CurriculumError(f"{place}: found {len(names)} packages instead of one", hint=HINT)
    [name] = names
    if not NAME.fullmatch(name):
        raise CurriculumError(f"invalid package name {name!r}", hint="use lower-case letters, digits and _")
    started = [hit for entry in about.entries if (hit := ENTRY.fullmatch(entry)) and hit[1].split(".")[0] == name]
    if started and f"{name}/__main__.py" not in found:
        found[f"{name}/__main__.py"] = START.format(module=started[0][1], function=started[0][2]).encode()
    return OwnerPackage(name, found, about.requires)


def guest_package(adapter: Adapter, place: Path) -> OwnerPackage:
    """Reads an owner's package without its task files (`TASKS`) if the adapter's tasks are given. A server that reads
    files could show their answers. Raises as `package_at`."""
    owned = package_at(place)
    kept = {path: data for path, data in owned.files.items() if PurePosixPath(path).name != TASKS}
    return owned._replace(files=kept) if adapter.tasks_given else owned


def _package_folder(place: Path) -> tuple[Path, _About]:
    """Returns the folder of the package at a path, itself or the only one of a project, and what it declares."""
    about = _declared_by_folder(place)
    if (place / "__init__.py").exists() or not (place / "pyproject.toml").is_file():
        return place, about
    for above in (place / "src", place):
        inner = [one.parent for one in sorted(above.glob("*/__init__.py")) if one.parent.name not in ("tests", "test")]
        if len(inner) == 1:
            return inner[0], about
    return place, about


def _declared_by_folder(place: Path) -> _About:
    """Reads what a folder's pyproject.toml declares, else its requirements.txt. Raises CurriculumError if unreadable,
    OSError."""
    project = place / "pyproject.toml"
    if project.is_file():
        try:
            found = tomllib.loads(_text(project)).get("project", {})
            scripts = _list(list(found.get("scripts", {}).values()))
            return _About(_list(found.get("dependencies", [])), scripts, _metadata(found))
        except (ValueError, RecursionError, AttributeError) as error:
            raise CurriculumError(f"{project} cannot be read: {str(error)[:100]}", hint="repair it") from error
    for listed in (place / "requirements.txt", place / "server" / "requirements.txt"):
        if listed.is_file():
            lines = [line.partition(" #")[0].strip() for line in _text(listed).splitlines()]
            return _About(tuple(line for line in lines if line and not line.startswith("#")))
    return _About()


def _declared_by_wheel(wheel: Path) -> _About:
    """Reads a wheel's METADATA and entry points. Raises CurriculumError if they are not text, OSError."""
    requires: list[str] = []
    entries: list[str] = []
    with zipfile.ZipFile(wheel) as opened:
        for entry in opened.infolist():
            folder, _, name = entry.filename.partition("/")
            if not folder.endswith(".dist-info") or name not in ABOUT:
                continue
            if entry.file_size > ABOUT_BYTES:
                raise CurriculumError(f"{wheel.name}: {name} has more than {ABOUT_BYTES >> 20} MiB", hint=HINT)
            text = opened.read(entry).decode(errors="replace")
            if name == "METADATA":
                requires = [str(one) for one in email.message_from_string(text).get_all("Requires-Dist", [])]
            else:
                scripts = text.partition("[console_scripts]")[2].partition("\n[")[0].splitlines()
                entries = [line.partition("=")[2].strip() for line in scripts if "=" in line]
    return _About(tuple(" ".join(one.split()) for one in requires if "extra ==" not in one), tuple(entries))


def _metadata(project: Mapping[str, Any]) -> tuple[tuple[str, bytes], ...]:
    """Returns a project's metadata by path, so that it can ask for its own version; nothing without a plain name."""
    name, version = str(project.get("name", "")), str(project.get("version", "0"))
    if not PART.fullmatch(name) or not PART.fullmatch(version):
        return ()
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    return ((f"{re.sub(r'[-.]+', '_', name)}-{version}.dist-info/METADATA", text.encode()),)


def _text(file: Path) -> str:
    if not stat.S_ISREG(file.lstat().st_mode) or file.stat().st_size > ABOUT_BYTES:
        raise CurriculumError(f"{file} is not a small regular file", hint="put the file itself there")
    return file.read_text(encoding="utf-8")


def _list(found: Any) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ValueError("not a list of texts")
    return tuple(found)


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
            folder, _, name = entry.filename.partition("/")
            if folder.endswith(".data") or (folder.endswith(".dist-info") and name not in ABOUT):
                continue
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

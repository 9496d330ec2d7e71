"""Installs package sets for guests: exact versions, wheels only, for the guests' interpreter.

Invariants: a set is named by the digest of its versions, added files and interpreter, and appears and disappears by one
rename, so it is complete or absent. One process at a time changes the folder of sets; leftovers of a killed process go
with the next. A set has no `.pth` file and no program. Added files are never imported on the host. pip runs with its
local configuration; nothing is fetched when a sandbox uses a set. A name points to one set, and its previous set is
removed.

`pip.py` resolves requirements into locks and runs pip.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from runtime.backends.packages import DIGEST, INSIDE, PROGRAMS, SETS, find_set
from runtime.backends.rootfs import inspect_python
from runtime.errors import InfrastructureError, RefusedError
from runtime.model import FrozenModel
from runtime.package_sets.pip import install
from runtime.package_sets.system import SystemParts, add_system
from runtime.sandbox import NO_FILES

CHECK_SECONDS = 900
PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][0-9A-Za-z.+!]*( --hash=sha256:[0-9a-f]{64})?")
UNWANTED = ("*.pth", "*.pyi", "*.a", "*.h")
NAME_SUFFIX = ".name"
BUILDING, LEAVING = "new-", "old-"
"""Name prefixes of folders that are not yet, or no longer, sets."""


class InstalledSet(FrozenModel):
    digest: str
    folder: Path
    mib: int


def sets_folder() -> Path:
    return Path(sys.prefix) / SETS


def set_folder(digest: str) -> Path:
    """Returns the folder of an installed package set. Raises RefusedError for an unknown one."""
    return find_set(digest, sets_folder())


def guest_version() -> str:
    """Returns the version of the guests' Python. Raises RefusedError without a usable one."""
    return inspect_python(None).version


def has_programs(folder: Path) -> bool:
    """True if a package set has Node.js, whose servers need more memory."""
    return any((folder / one).exists() for one in PROGRAMS)


def set_named(name: str, sets: Path | None = None) -> str | None:
    """Returns the digest of the installed package set of that name; None unless it is completely installed."""
    folder = sets or sets_folder()
    try:
        digest = (folder / f"{name}{NAME_SUFFIX}").read_text().strip()
        find_set(digest, folder)
    except (OSError, RefusedError):
        return None
    return digest


def installed_names(sets: Path | None = None) -> list[str]:
    """Returns the names of completely installed package sets."""
    folder = sets or sets_folder()
    names = sorted(one.name.removesuffix(NAME_SUFFIX) for one in _names(folder))
    return [name for name in names if set_named(name, folder) is not None]


def install_set(
    name: str,
    pins: Sequence[str],
    imports: Sequence[str],
    sets: Path | None = None,
    python: str | None = None,
    *,
    added: Mapping[str, bytes] = NO_FILES,
    system: SystemParts | None = None,
) -> InstalledSet:
    """Fetches and installs a package set unless present.

    `pins` are exact versions, with hashes if locked. `imports` are modules that must be importable from it, on this
    host; `added` are extra files by path, which never replace fetched ones; `system` is what the root itself gets.
    Raises RefusedError for an inexact version, for unavailable or unimportable packages, and without a usable Python;
    InfrastructureError on a disk error.
    """
    for pin in pins:
        if not PIN.fullmatch(pin):
            raise RefusedError(
                f"{pin[:80]!r} is not an exact version", hint="Write `name==1.2.3`, one line per package."
            )
    guest = inspect_python(python)
    parts = [*sorted(pins), *_contents(added), *(system.lines if system else ()), guest.version]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def build(temporary: Path) -> None:
        if pins:
            install(temporary, pins, guest.version)
        _add(temporary, added)
        _tidy(temporary, str(guest.executable))
        if system is not None:
            add_system(temporary, system)
        if imports:
            _require_imports(temporary, str(guest.executable), imports)

    return _kept(name, digest, sets or sets_folder(), build)


def extend_set(
    name: str, base: Path, added: Mapping[str, bytes], sets: Path | None = None, python: str | None = None
) -> InstalledSet:
    """Creates a package set from the one in `base` plus added files by path. Nothing is fetched, and no added file is
    imported. Raises RefusedError for an invalid or existing path; InfrastructureError on a disk error."""
    guest = inspect_python(python)
    digest = hashlib.sha256("\n".join([base.name, *_contents(added)]).encode()).hexdigest()[:16]

    def build(temporary: Path) -> None:
        shutil.copytree(base, temporary, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(DIGEST))
        _add(temporary, added)
        _tidy(temporary, str(guest.executable), sorted({path.partition("/")[0] for path in added}))

    return _kept(name, digest, sets or sets_folder(), build)


def _contents(added: Mapping[str, bytes]) -> list[str]:
    return [f"{path} {hashlib.sha256(data).hexdigest()}" for path, data in sorted(added.items())]


def _kept(name: str, digest: str, folder: Path, build: Callable[[Path], None]) -> InstalledSet:
    """Returns the package set of that digest, built if absent; points the name to it and removes its earlier set."""
    target = folder / digest
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            _sweep(folder)
            earlier = set_named(name, folder)
            if not _is_whole(target):
                _remove(target)
                temporary = Path(tempfile.mkdtemp(prefix=BUILDING, dir=folder))
                try:
                    build(temporary)
                    (temporary / DIGEST).write_text(f"{digest}\n")
                    temporary.chmod(0o755)
                    temporary.rename(target)
                finally:
                    shutil.rmtree(temporary, ignore_errors=True)
            new_name = folder / f"{name}{NAME_SUFFIX}.new"
            new_name.write_text(f"{digest}\n")
            new_name.rename(folder / f"{name}{NAME_SUFFIX}")
            named = {set_named(one.name.removesuffix(NAME_SUFFIX), folder) for one in _names(folder)}
            if earlier is not None and earlier not in named:
                _remove(folder / earlier)
            size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    except OSError as error:
        raise InfrastructureError(
            f"the packages of {name} could not be stored in {folder}: {error}",
            hint="Free some disk space, and try again.",
        ) from error
    return InstalledSet(digest=digest, folder=target, mib=-(-size >> 20))


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Locks the folder of package sets against other processes for the block."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _sweep(folder: Path) -> None:
    """Removes unfinished package sets of killed processes; requires the lock."""
    for left in (*folder.glob(f"{BUILDING}*"), *folder.glob(f"{LEAVING}*")):
        shutil.rmtree(left, ignore_errors=True)


def _is_whole(target: Path) -> bool:
    with contextlib.suppress(RefusedError):
        find_set(target.name, target.parent)
        return True
    return False


def _remove(target: Path) -> None:
    """Removes a package set by renaming it first, so that an interrupted removal leaves no visible set."""
    if target.exists():
        leaving = Path(tempfile.mkdtemp(prefix=LEAVING, dir=target.parent))
        target.rename(leaving / target.name)
        shutil.rmtree(leaving, ignore_errors=True)


def _names(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{NAME_SUFFIX}"))


def _add(folder: Path, added: Mapping[str, bytes]) -> None:
    """Writes files into a package set being built. Raises RefusedError for a path outside it, or one that exists."""
    there = {entry.name for entry in folder.iterdir()}
    for path, data in added.items():
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts:
            raise RefusedError(f"{path[:80]!r} is not a valid path in a package set")
        if parts[0] in there:
            raise RefusedError(f"{parts[0][:80]!r} is already in the packages", hint="Give it another name.")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def _tidy(folder: Path, python: str, only: Sequence[str] = ("",)) -> None:
    """Removes a package set's files that would run by themselves, and compiles everything below `only`."""
    programs = [folder / one for one in PROGRAMS]
    shutil.rmtree(folder / "bin", ignore_errors=True)
    for pattern in UNWANTED:
        for file in folder.rglob(pattern):
            file.unlink()
    compiling = [
        "-m",
        "compileall",
        "-q",
        "--invalidation-mode",
        "unchecked-hash",
        "-s",
        str(folder),
        "-p",
        f"/{INSIDE}",
    ]
    places = [str(folder / one) for one in only]
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run([python, "-I", *compiling, *places], capture_output=True, timeout=CHECK_SECONDS, check=False)
    for path in folder.rglob("*"):
        if path.is_symlink():
            path.unlink()
        else:
            path.chmod(0o755 if path.is_dir() or path in programs else 0o644)


def _require_imports(folder: Path, python: str, imports: Sequence[str]) -> None:
    asked = f"import sys; sys.path.append(sys.argv[1]); import {', '.join(imports)}"
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-B", "-c", asked, str(folder)],
            capture_output=True,
            text=True,
            timeout=CHECK_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RefusedError(
            f"importing the packages took more than {CHECK_SECONDS} s", hint="Try again on a less busy machine."
        ) from error
    if done.returncode != 0:
        said = (done.stderr.splitlines() or ["no message"])[-1]
        raise RefusedError(
            f"{python} cannot import the packages: {said[:300]}", hint="Choose versions that fit each other."
        )

"""Installs a set of packages for guests: exact versions, wheels only, for the interpreter that guests have.

What always holds: a set is named by the digest of its versions, of the files that were added to it and of that
interpreter, and appears by one rename, so it is complete or absent. It holds no `.pth` file and no program. Added files
are never imported on the host. pip fetches it with whatever configuration it has
here; nothing is fetched when a sandbox uses it. A name points to one set, and an older one of that name is removed. One
at a time installs, others wait for it; who was killed leaves nothing that counts, and the next one sweeps it away.
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
from functools import partial
from pathlib import Path, PurePosixPath

from runtime.backends.packages import DIGEST, INSIDE, SETS, find_set
from runtime.backends.rootfs import inspect_python
from runtime.errors import InfrastructureError, RefusedError
from runtime.model import FrozenModel
from runtime.sandbox import NO_FILES

INSTALL_SECONDS = 900
PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][0-9A-Za-z.+!]*")
UNWANTED = ("*.pth", "*.pyi", "*.a", "*.h")
NAME_SUFFIX = ".name"
NEW = "new-"
"""How what is being built is called."""
SET = re.compile(r"[0-9a-f]{16}")


class InstalledSet(FrozenModel):
    digest: str
    folder: Path
    mib: int


def sets_folder() -> Path:
    return Path(sys.prefix) / SETS


def set_named(name: str, sets: Path | None = None) -> str | None:
    """The digest of the set of that name; None where none is installed whole."""
    folder = sets or sets_folder()
    try:
        digest = (folder / f"{name}{NAME_SUFFIX}").read_text().strip()
        find_set(digest, folder)
    except (OSError, RefusedError):
        return None
    return digest


def installed_names(sets: Path | None = None) -> list[str]:
    """The names of the sets that are installed whole."""
    folder = sets or sets_folder()
    return [name for name in sorted(_named(folder)) if set_named(name, folder) is not None]


def install_set(
    name: str,
    pins: Sequence[str],
    imports: Sequence[str],
    sets: Path | None = None,
    python: str | None = None,
    *,
    added: Mapping[str, bytes] = NO_FILES,
) -> InstalledSet:
    """Fetches and installs it, unless it is there already; `imports` are modules that have to be found in it. `added`
    are files beside what is fetched, by path: they take the place of none.

    Raises RefusedError for what is no exact version, for packages that cannot be had or imported, and without a usable
    Python; InfrastructureError when the disk does not take it.
    """
    for pin in pins:
        if not PIN.fullmatch(pin):
            raise RefusedError(
                f"{pin[:80]!r} is no exact version", hint="Write `name==1.2.3`, a line for each package."
            )
    guest = inspect_python(python)
    digest = hashlib.sha256("\n".join([*sorted(pins), *_contents(added), guest.version]).encode()).hexdigest()[:16]

    def build(temporary: Path) -> None:
        _fetch(temporary, pins, str(guest.executable), guest.version.split()[0])
        _add(temporary, added)
        _tidy(temporary, str(guest.executable))
        _require_imports(temporary, str(guest.executable), imports)

    return _kept(name, digest, sets or sets_folder(), build)


def extend_set(
    name: str, base: Path, added: Mapping[str, bytes], sets: Path | None = None, python: str | None = None
) -> InstalledSet:
    """Makes a set of the one in `base` and of files beside what that has, by path. Nothing is fetched, and nothing that
    was added is imported.

    Raises RefusedError for a path that is no place, or taken; InfrastructureError when the disk does not take it.
    """
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
    """The set of that digest, built unless it is there, and the one of that name from now on."""
    target = folder / digest
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone_in(folder):
            earlier = set_named(name, folder)
            _sweep(folder)
            if not (target / DIGEST).exists():
                temporary = Path(tempfile.mkdtemp(prefix=NEW, dir=folder))
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
            if earlier is not None and earlier not in map(partial(set_named, sets=folder), _named(folder)):
                _remove(folder / earlier)
            size = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    except OSError as error:
        raise InfrastructureError(
            f"the packages of {name} could not be kept in {folder}: {error}",
            hint="Free some disk space, and try again.",
        ) from error
    return InstalledSet(digest=digest, folder=target, mib=-(-size >> 20))


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Waits until nobody else changes what is there; who is killed waits no longer."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _sweep(folder: Path) -> None:
    """Removes what somebody who was killed left: what was being built, and what was being removed."""
    for one in folder.iterdir():
        if one.name.startswith(NEW) or (SET.fullmatch(one.name) and not (one / DIGEST).exists()):
            shutil.rmtree(one, ignore_errors=True)


def _remove(target: Path) -> None:
    """Removes a set; from its first step on it is none."""
    (target / DIGEST).unlink(missing_ok=True)
    shutil.rmtree(target, ignore_errors=True)


def _named(folder: Path) -> list[str]:
    return [one.name.removesuffix(NAME_SUFFIX) for one in _names(folder)]


def _names(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{NAME_SUFFIX}"))


def _fetch(folder: Path, pins: Sequence[str], python: str, version: str) -> None:
    asked = ["install", "-qq", "--no-deps", "--no-compile", "--only-binary=:all:", "--disable-pip-version-check"]
    asked += ["--implementation", "cp", "--python-version", ".".join(version.split(".")[:2]), "--target", str(folder)]
    hint = f"Read pip's message; pip config says where it looks for packages for {python}."
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-m", "pip", *asked, *pins],
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise RefusedError(f"the packages were not there within {INSTALL_SECONDS} s", hint=hint) from error
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise RefusedError(f"the packages could not be fetched: {' '.join(said[-2:])[:400]}", hint=hint)


def _add(folder: Path, added: Mapping[str, bytes]) -> None:
    """Raises RefusedError for a path that leads elsewhere, or to what is there already."""
    there = {entry.name for entry in folder.iterdir()}
    for path, data in added.items():
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts:
            raise RefusedError(f"{path[:80]!r} is no place in a set of packages")
        if parts[0] in there:
            raise RefusedError(f"{parts[0][:80]!r} is in the packages already", hint="Give it another name.")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def _tidy(folder: Path, python: str, only: Sequence[str] = ("",)) -> None:
    """Leaves out what would run by itself, and compiles what lies below `only`."""
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
        subprocess.run([python, "-I", *compiling, *places], capture_output=True, timeout=INSTALL_SECONDS, check=False)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _require_imports(folder: Path, python: str, imports: Sequence[str]) -> None:
    asked = f"import sys; sys.path.append(sys.argv[1]); import {', '.join(imports)}"
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-B", "-c", asked, str(folder)],
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RefusedError(
            f"what was fetched was not imported within {INSTALL_SECONDS} s", hint="Try it again on a quieter machine."
        ) from error
    if done.returncode != 0:
        said = (done.stderr.splitlines() or ["nothing was said"])[-1]
        raise RefusedError(
            f"{python} cannot import what was fetched: {said[:300]}", hint="The versions have to fit each other."
        )

"""Builds the guest's root: the distribution's Python, its standard library, their shared libraries, and the worker.

Invariants: a root is named by the digest of its inputs and appears by one rename, so it is complete or absent;
concurrent builders all get the same one. It is mounted read-only and has no secret and no setuid file; a shell and
other programs only in a userland root.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from runtime.backends import userland
from runtime.backends.packages import INSIDE, Packages, find_packages, link_into
from runtime.errors import InfrastructureError, RefusedError

FORMAT = "2"
NO_PROGRAMS: Mapping[str, Path] = MappingProxyType({})
GUEST = Path(__file__).parents[1] / "guest"
DEFAULT_PYTHON = "/usr/bin/python3"
UNWANTED = (
    "test tests idlelib ensurepip lib2to3 tkinter turtledemo pydoc_data dist-packages site-packages venv distutils"
    " LICENSE.txt EXTERNALLY-MANAGED sitecustomize.py config-* _test* _ctypes_test* _tkinter*"
)
"""Files that a guest does not need, or (`dist-packages`, `sitecustomize`) that could run host code at start."""
ASK = """import json, os, sys, sysconfig
print(json.dumps({"executable": os.path.realpath(sys.executable), "stdlib": sysconfig.get_path("stdlib"),
    "dynload": sysconfig.get_config_var("DESTSHARED"), "version": sys.version, "prefix": sys.base_prefix}))"""


class Python(NamedTuple):
    """Python interpreter of the host: paths and version, as reported by itself."""

    executable: Path
    stdlib: Path
    version: str


def inspect_python(path: str | None) -> Python:
    """Asks a Python interpreter for its paths and version. Raises RefusedError if it is missing or older than 3.11."""
    wanted = path or DEFAULT_PYTHON
    hint = "Install the distribution's python3 (apt install python3), or set the path of a Python 3.11 or newer."
    try:
        answer = subprocess.run([wanted, "-I", "-S", "-c", ASK], capture_output=True, timeout=30, check=True, cwd="/")
        facts = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise RefusedError(f"{wanted} is not a usable Python for guests: {error}", hint=hint) from error
    found = re.match(r"(\d+)\.(\d+)", facts["version"])
    if found is None or (int(found[1]), int(found[2])) < (3, 11):
        raise RefusedError(f"{wanted} is Python {facts['version'].split()[0]}; guests need 3.11", hint=hint)
    return Python(Path(facts["executable"]), Path(facts["stdlib"]), facts["version"])


class Linked(NamedTuple):
    """Shared libraries that the host's loader would use for some programs."""

    libraries: set[Path]
    """Every shared library, by the requested path."""
    broken: set[Path]
    """Input files with a missing library."""


def linked(files: list[Path]) -> Linked:
    """Finds the shared libraries of these files with one run of ldd(1); takes some ten milliseconds per file."""
    if not files:
        return Linked(set(), set())
    answer = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, timeout=600, check=False).stdout
    libraries = {Path(path) for path in re.findall(r"(?:=> |^\t)(/\S+) \(0x", answer, flags=re.MULTILINE)}
    if len(files) == 1:  # ldd omits the name of a single file
        return Linked(libraries, set(files) if "not found" in answer else set())
    broken, file = set(), files[0]
    for line in answer.splitlines():
        if not line.startswith("\t"):
            file = Path(line.removesuffix(":"))
        elif "not found" in line:
            broken.add(file)
    return Linked(libraries, broken)


def digest(python: Python, packages: Packages | None = None, programs: Mapping[str, Path] = NO_PROGRAMS) -> str:
    """Returns the digest that names the guest root of this interpreter, worker, packages and programs."""
    state = hashlib.sha256(FORMAT.encode())
    found = python.executable.stat()
    state.update(f"{python.executable}|{python.stdlib}|{python.version}|{found.st_size}|{found.st_mtime_ns}".encode())
    state.update(b"|" + (packages.digest if packages else "").encode() + b"|")
    for file in sorted(GUEST.glob("*.py")):
        state.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    if programs:
        state.update(userland.digest(programs))
    return state.hexdigest()[:16]


def root_folder(
    root_dir: Path, python_path: str | None = None, packages_path: Path | None = None, *, programs: bool = False
) -> Path:
    """Returns the path of a guest root, built or not. Raises RefusedError as `ensure_root` does."""
    found = userland.find() if programs else NO_PROGRAMS
    return root_dir / f"root-{digest(inspect_python(python_path), find_packages(packages_path), found)}"


def ensure_root(
    root_dir: Path, python_path: str | None = None, packages_path: Path | None = None, *, programs: bool = False
) -> Path:
    """Returns the folder of a guest root, built if missing (about a second; with programs, three). Raises RefusedError
    without a usable Python, a given folder of packages or a shell, InfrastructureError on a disk error."""
    python = inspect_python(python_path)
    packages = find_packages(packages_path)
    found = userland.find() if programs else NO_PROGRAMS
    target = root_dir / f"root-{digest(python, packages, found)}"
    if target.is_dir():
        return target
    try:
        root_dir.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(root_dir)
        temporary = Path(tempfile.mkdtemp(prefix="building-", dir=root_dir))
        try:
            _build(temporary, python, packages, found)
            temporary.chmod(0o755)
            try:
                temporary.rename(target)
            except OSError:
                if not target.is_dir():
                    raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise InfrastructureError(
            f"the guest's root could not be built in {root_dir}: {error}",
            hint="Free some disk space (a root takes about 350 MB) or choose another folder.",
        ) from error
    return target


def _remove_abandoned(root_dir: Path) -> None:
    """Removes unfinished guest roots older than an hour, which killed builders left."""
    for folder in root_dir.glob("building-*"):
        with contextlib.suppress(FileNotFoundError):
            if folder.stat().st_mtime < time.time() - 3600:
                shutil.rmtree(folder, ignore_errors=True)


def _build(root: Path, python: Python, packages: Packages | None, programs: Mapping[str, Path]) -> None:
    for folder in ("usr/bin", "proc", "dev", "sys", "tmp", "work", "etc", "opt/runtime/guest"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    _copy(python.executable, root, python.executable)
    link = root / "usr/bin/python3"
    if not link.exists():
        link.symlink_to(python.executable)
    inside = root / python.stdlib.relative_to("/")
    unwanted = shutil.ignore_patterns(*UNWANTED.split())
    shutil.copytree(python.stdlib, inside, symlinks=False, ignore=unwanted, ignore_dangling_symlinks=True)
    extensions = sorted(inside.glob("lib-dynload/*.so"))
    found = linked([python.executable, *extensions])
    for library in found.libraries:
        _copy(library.resolve(), root, library)
    for extension in found.broken.intersection(extensions):
        extension.unlink()
    if programs:
        for library in linked(list(programs.values())).libraries:
            _copy(library.resolve(), root, library)
        userland.build(root, programs)
    (root / "opt/runtime/__init__.py").write_text("")
    for file in GUEST.glob("*.py"):
        shutil.copyfile(file, root / "opt/runtime/guest" / file.name)
    (root / "etc/passwd").write_text("guest:x:1000:1000::/work:/usr/bin/python3\n")
    (root / "etc/group").write_text("guest:x:1000:\n")
    if programs:
        userland.write_accounts(root)
        for link in (inside / "site-packages", root / "usr/lib/python3/dist-packages"):  # where Python may look
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(f"/{INSIDE}")
    compile_all = [str(python.executable), "-I", "-S", "-m", "compileall", "-q"]
    subprocess.run([*compile_all, str(inside)], stdout=subprocess.DEVNULL, timeout=300, check=False)
    subprocess.run(
        [*compile_all, "--invalidation-mode", "unchecked-hash", str(root / "opt")],
        stdout=subprocess.DEVNULL,
        timeout=60,
        check=True,
    )
    for path in [root, *root.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
    if packages is not None:  # last: links share their modes with the folder, which has the right ones
        extensions = sorted(packages.folder.rglob("*.so*"))
        for library in linked(extensions).libraries:
            if not library.resolve().is_relative_to(packages.folder.resolve()):
                _copy(library.resolve(), root, library)
        link_into(packages, root)


def _copy(source: Path, root: Path, inside: Path) -> None:
    """Copies a file to where a guest's loader looks for it; with a merged /usr, `/lib` becomes a separate folder."""
    target = root / inside.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy2(source, target, follow_symlinks=True)

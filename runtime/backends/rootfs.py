"""Builds the guest's root: the distribution's Python, its standard library, their shared libraries, and the worker.

Invariants: a root is named by the digest of its inputs and appears by one rename, so it is complete or absent;
concurrent builders all get the same one. It is mounted read-only and has no secret and no setuid file; a shell and
other programs only in a userland root.

Adds a userland to a guest's root: the distribution's shell and small programs, and a user table.

Invariants: only the programs named here are copied, from the distribution's own folders, without set-id bits, under the
requested name; nothing of the host's /etc is. `adduser` and `userdel` are our own, because the distribution's need PAM,
Perl and their own tables.
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

from runtime.backends.packages import INSIDE, Packages, find_packages, link_into
from runtime.errors import InfrastructureError, RefusedError

FOLDERS = "/usr/bin:/bin:/usr/sbin:/sbin"
NAMES = """
    sh bash dash
    [ arch base32 base64 basename cat chgrp chmod chown cksum comm cp csplit cut date dd df dirname du echo env expand
    expr factor false fmt fold groups head hostid id install join link ln logname ls md5sum mkdir mkfifo mktemp mv nice
    nl nohup nproc numfmt od paste pathchk pr printenv printf ptx pwd readlink realpath rm rmdir seq sha1sum sha224sum
    sha256sum sha384sum sha512sum shred shuf sleep sort split stat stdbuf stty sum sync tac tail tee test timeout touch
    tr true truncate tsort tty uname unexpand uniq unlink wc who whoami yes
    awk cmp diff diff3 egrep fgrep find getent grep gunzip gzip hostname kill patch pgrep pkill ps sdiff sed setsid tar
    which xargs zcat
"""
REQUIRED = ("sh", "cat", "ls", "rm", "mkdir", "env")
ACCOUNTS = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nguest:x:1000:1000:guest:/work:/bin/sh\n",
    "group": "root:x:0:\nguest:x:1000:\n",
}
HEAD = """#!/usr/bin/python3 -ISB
import os, shutil, sys
arguments = sys.argv[1:]
names = [word for word in arguments if not word.startswith("-")]
def rows(table):
    with open(f"/etc/{table}", encoding="utf-8") as file: return file.read().splitlines()
def write(table, rows):
    with open(f"/etc/{table}.new", "w", encoding="utf-8") as file: file.write("".join(f"{row}\\n" for row in rows))
    os.rename(f"/etc/{table}.new", f"/etc/{table}")
def taken(table): return {row.split(":")[0] for row in rows(table)}
"""
ADDUSER = """
if "--help" in arguments: sys.exit(print("adduser [--comment TEXT] [--disabled-password] NAME") or 0)
comment = arguments[arguments.index("--comment") + 1] if "--comment" in arguments[:-1] else ""
names = names[1:] if comment and names[:1] == [comment] else names
if len(names) != 1 or not names[0].replace("-", "a").replace("_", "a").isalnum() or len(names[0]) > 32:
    sys.exit("adduser: one plain name is needed")
if ":" in comment or "\\n" in comment: sys.exit("adduser: a comment has no colon")
[name] = names
if name in taken("passwd") | taken("group"): sys.exit(f"adduser: {name} is there already")
try:
    number = 1 + max([1000, *(int(row.split(":")[2]) for row in rows("passwd"))])
    write("passwd", [*rows("passwd"), f"{name}:x:{number}:{number}:{comment}:/home/{name}:/bin/sh"])
    write("group", [*rows("group"), f"{name}:x:{number}:"])
    os.mkdir(f"/home/{name}")
    os.chown(f"/home/{name}", number, number)
except OSError as error:
    sys.exit(f"adduser: {error}")
"""
USERDEL = """
if len(names) != 1 or names[0] not in taken("passwd") or names[0] in ("root", "guest"):
    sys.exit("userdel: one user that was added is needed")
try:
    for table in ("passwd", "group"): write(table, [row for row in rows(table) if row.split(":")[0] != names[0]])
    if "-r" in arguments: shutil.rmtree(f"/home/{names[0]}")
except OSError as error:
    sys.exit(f"userdel: {error}")
"""


def find() -> Mapping[str, Path]:
    """Returns this host's shell and small programs for guests, by name. Raises RefusedError without a shell."""
    found = {name: Path(path).resolve() for name in NAMES.split() if (path := shutil.which(name, path=FOLDERS))}
    if missing := [name for name in REQUIRED if name not in found]:
        raise RefusedError(
            f"this host has no {', '.join(missing)} in {FOLDERS} for a sandbox with programs",
            hint="Install them (coreutils and a shell), or ask for a sandbox without programs.",
        )
    return found


def userland_digest(programs: Mapping[str, Path]) -> bytes:
    """Returns a digest of the programs copied for guests, from their paths, sizes and times, and of the user tables."""
    state = hashlib.sha256((HEAD + ADDUSER + USERDEL + repr(ACCOUNTS)).encode())
    for name, path in sorted(programs.items()):
        found = path.stat()
        state.update(f"{name}|{path}|{found.st_size}|{found.st_mtime_ns}|".encode())
    return state.digest()


def build(root: Path, programs: Mapping[str, Path]) -> None:
    """Copies the host's shell and small programs into a guest root, without their shared libraries."""
    for folder in ("home", "root", "opt/etc"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for link in ("bin", "sbin"):
        (root / link).symlink_to("usr/bin")
    own = {"adduser": HEAD + ADDUSER, "userdel": HEAD + USERDEL}
    for name in [*programs, *own]:
        target = root / "usr/bin" / name
        if name in own:
            target.write_text(own[name])
        elif not target.exists():
            shutil.copyfile(programs[name], target)
        target.chmod(0o755)


def write_accounts(root: Path) -> None:
    """Writes a guest root's user tables, in /etc and in a template for a writable /etc."""
    for folder in ("etc", "opt/etc"):
        for name, text in ACCOUNTS.items():
            (root / folder / name).write_text(text)


FORMAT = "3"
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
        state.update(userland_digest(programs))
    return state.hexdigest()[:16]


def root_folder(
    root_dir: Path, python_path: str | None = None, packages_path: Path | None = None, *, programs: bool = False
) -> Path:
    """Returns the path of a guest root, built or not. Raises RefusedError as `ensure_root` does."""
    found = find() if programs else NO_PROGRAMS
    return root_dir / f"root-{digest(inspect_python(python_path), find_packages(packages_path), found)}"


def ensure_root(
    root_dir: Path, python_path: str | None = None, packages_path: Path | None = None, *, programs: bool = False
) -> Path:
    """Returns the folder of a guest root, built if missing (about a second; with programs, three). Raises RefusedError
    without a usable Python, a given folder of packages or a shell, InfrastructureError on a disk error."""
    python = inspect_python(python_path)
    packages = find_packages(packages_path)
    found = find() if programs else NO_PROGRAMS
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
        build(root, programs)
    (root / "opt/runtime/__init__.py").write_text("")
    for file in GUEST.glob("*.py"):
        shutil.copyfile(file, root / "opt/runtime/guest" / file.name)
    (root / "etc/passwd").write_text("guest:x:1000:1000::/work:/usr/bin/python3\n")
    (root / "etc/group").write_text("guest:x:1000:\n")
    if programs:
        write_accounts(root)
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
        binaries = [*sorted(packages.folder.rglob("*.so*")), *packages.programs]
        for library in linked(binaries).libraries:
            if not library.resolve().is_relative_to(packages.folder.resolve()):
                _copy(library.resolve(), root, library)
        link_into(packages, root)


def _copy(source: Path, root: Path, inside: Path) -> None:
    """Copies a file to where a guest's loader looks for it; with a merged /usr, `/lib` becomes a separate folder."""
    target = root / inside.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        shutil.copy2(source, target, follow_symlinks=True)

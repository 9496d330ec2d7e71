"""Adds programs to a package set, for roots with a shell: the distribution's, and commands of Python packages.

Invariants: packages are resolved by apt from the host's own sources, with all dependencies, to a lock with hashes; they
are unpacked, and none of their scripts runs. Their alternatives (`update-alternatives --install`) become links.
Commands that install packages do nothing in a sandbox: what they would install is there already, or cannot be had.
"""

from __future__ import annotations

import configparser
import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from runtime.backends.packages import SYSTEM
from runtime.errors import RefusedError
from runtime.package_sets.pip import run_installer

FORMAT = "2"
MOST_MIB = 1_024
"""Size limit of the distribution's packages of one set, in MiB, compressed."""
URI = re.compile(r"'[^']+' (\S+\.deb) (\d+) SHA256:([0-9a-f]{64})")
ALTERNATIVE = re.compile(r"(?:--install|--slave) +(/[\w./+-]+) +[\w.+-]+ +(/[\w./+-]+)")
DIST_PACKAGES = "usr/lib/python3/dist-packages"
ENTRY = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")
COMMAND = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
PYTHON = """#!/usr/bin/python3
import sys
from {module} import {function}
sys.exit({function}())
"""
INSTALLED = '#!/bin/sh\necho "${0##*/}: nothing is installed here: packages came with the task" >&2\nexit 0\n'
RUNNER = """#!/bin/sh
# Runs the command that follows the options: its packages came with the task.
while [ $# -gt 0 ]; do
  case "$1" in
    pip|add|sync|venv|init|lock|self|python) exit 0;;
    tool|run) shift;;
    -p|--python|-w|--with|--from|--index|--index-url|--with-requirements) shift 2;;
    -*) shift;;
    *) exec "$@";;
  esac
done
"""
SHIMS = {**dict.fromkeys(("apt-get", "apt", "pip", "pip3"), INSTALLED), **dict.fromkeys(("uv", "uvx"), RUNNER)}


class DebPackage(NamedTuple):
    file: str
    size: int
    sha256: str


class SystemParts(NamedTuple):
    """Programs of a set: the distribution's packages, locked."""

    debs: tuple[DebPackage, ...] = ()

    @property
    def lines(self) -> list[str]:
        return [f"system {FORMAT}", *(f"{one.file} {one.sha256}" for one in self.debs)]


def unknown_to_apt(names: Sequence[str]) -> list[str]:
    """Returns the names that the host's package sources do not have. Raises RefusedError without apt."""
    if not names:
        return []
    if shutil.which("apt-cache") is None:
        raise RefusedError("this host has no apt", hint="Packages of Debian are unpacked with apt and dpkg-deb only.")
    asked = ["apt-cache", "show", "--no-all-versions", *names]
    said = subprocess.run(asked, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL).stdout
    known = set(re.findall(r"^Package: (\S+)$", said, flags=re.MULTILINE))
    known |= set(re.findall(r"[\w.+-]+", " ".join(re.findall(r"^Provides: (.*)$", said, flags=re.MULTILINE))))
    return [name for name in names if name not in known]


def resolve_debs(names: Sequence[str]) -> tuple[DebPackage, ...]:
    """Resolves packages of the distribution, with all dependencies and no recommendations, to a lock. Raises
    RefusedError, with apt's message, without a solution."""
    if not names:
        return ()
    with tempfile.TemporaryDirectory(prefix="assay-apt-") as name:
        Path(name, "status").touch()
        said = run_installer(
            [*_apt(Path(name)), "install", "--print-uris", "-qq", "-y", *names], "apt-get", [Path(name)]
        )
    found = tuple(DebPackage(hit[1], int(hit[2]), hit[3]) for hit in URI.finditer(said))
    size = sum(one.size for one in found) >> 20
    if size > MOST_MIB:
        raise RefusedError(f"{', '.join(names)[:80]} take {size} MiB with all that they need, more than {MOST_MIB}")
    return tuple(sorted(found))


def add_system(folder: Path, parts: SystemParts) -> None:
    """Adds programs to a package set being built. Raises RefusedError for a package that cannot be fetched, or differs
    from its lock; OSError."""
    system = folder / SYSTEM
    (system / "usr/bin").mkdir(parents=True)
    for name, text in SHIMS.items():  # first: a command of the same name stays away
        _write(system / "usr/bin" / name, text)
    if parts.debs:
        _unpack(system, parts.debs)
    for about in folder.glob("*.dist-info/entry_points.txt"):
        for name, module, function in _commands(about):
            _write(system / "usr/bin" / name, PYTHON.format(module=module, function=function))
    if not os.path.lexists(system / "usr/bin/python"):
        (system / "usr/bin/python").symlink_to("python3")
    stub = folder / "pip"
    if not stub.exists():
        stub.mkdir()
        (stub / "__init__.py").write_text("")
        (stub / "__main__.py").write_text("print('pip: nothing is installed here: packages came with the task')\n")


def _unpack(system: Path, debs: Sequence[DebPackage]) -> None:
    with tempfile.TemporaryDirectory(prefix="assay-apt-") as name:
        folder = Path(name)
        (folder / "status").touch()
        names = [f"{file[0]}={_version(file)}" for file in (one.file.split("_") for one in debs)]
        run_installer([*_apt(folder), "download", *names], "apt-get", [folder], folder)
        for one in debs:
            file = next(folder.glob(f"{one.file.split('_')[0]}_*.deb"), None)
            if file is None or hashlib.sha256(file.read_bytes()).hexdigest() != one.sha256:
                raise RefusedError(f"{one.file} is not what was locked", hint="Run `apt-get update`, and try again.")
            unpack(file, folder)
        merge(folder / "tree", system)


def unpack(file: Path, folder: Path) -> None:
    """Unpacks a package of the distribution into a folder's `tree`, with its alternatives as links."""
    subprocess.run(["dpkg-deb", "-x", str(file), str(folder / "tree")], check=True, capture_output=True)
    _alternatives(file, folder)


def _version(file: Sequence[str]) -> str:
    return file[1].replace("%3a", ":")


def _alternatives(file: Path, folder: Path) -> None:
    """Makes the links that a package's script would make of its alternatives, without running it."""
    control = folder / "control"
    shutil.rmtree(control, ignore_errors=True)
    subprocess.run(["dpkg-deb", "-e", str(file), str(control)], check=True, capture_output=True)
    script = control / "postinst"
    if not script.is_file():
        return
    text = re.sub(r"\\\s*\n", " ", script.read_bytes().decode(errors="replace"))
    for link, target in ALTERNATIVE.findall(text):
        place = folder / "tree" / link.lstrip("/")
        if (folder / "tree" / target.lstrip("/")).exists() and not os.path.lexists(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(target)


def merge(tree: Path, system: Path) -> None:
    """Moves an unpacked tree into a set: regular files and links, without set-id bits, documentation and devices."""
    modules = tree / DIST_PACKAGES
    for module in modules.iterdir() if modules.is_dir() else ():  # a guest looks for modules in one place
        unwanted = module.is_symlink() or module.suffix == ".pth"
        if not unwanted and not os.path.lexists(system.parent / module.name):
            shutil.move(module, system.parent / module.name)
    shutil.rmtree(modules, ignore_errors=True)
    for above, folders, names in os.walk(tree):
        inside = Path(above).relative_to(tree)
        parts = inside.parts
        if parts[:1] in (("bin",), ("sbin",), ("lib",), ("lib64",)):
            inside = Path("usr", *parts)
        if inside.parts[:2] in (("usr", "sbin"),):
            inside = Path("usr/bin", *inside.parts[2:])  # a guest has one folder of programs
        if inside.parts[:3] in (("usr", "share", "doc"), ("usr", "share", "man"), ("usr", "share", "locale")):
            folders.clear()
            continue
        for name in [*names, *(one for one in folders if Path(above, one).is_symlink())]:
            source, target = Path(above, name), system / inside / name
            if os.path.lexists(target):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_symlink():
                target.symlink_to(source.readlink())
            elif stat.S_ISREG(source.lstat().st_mode):
                shutil.move(source, target)
                target.chmod(0o755 if target.stat().st_mode & 0o100 else 0o644)


def _commands(about: Path) -> list[tuple[str, str, str]]:
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[method-assign, assignment]
    try:
        parser.read_string(about.read_text(encoding="utf-8"))
    except (configparser.Error, UnicodeDecodeError):
        return []
    rows = parser.items("console_scripts") if parser.has_section("console_scripts") else []
    found = [(name, ENTRY.match(value)) for name, value in rows]
    return [(name, hit[1], hit[2]) for name, hit in found if hit and COMMAND.fullmatch(name)]


def _write(path: Path, text: str) -> None:
    if not os.path.lexists(path):
        path.write_text(text)
        path.chmod(0o755)


def _apt(folder: Path) -> list[str]:
    options = [f"Dir::State::status={folder}/status", f"Dir::Cache::archives={folder}", "APT::Install-Recommends=0"]
    options += ["Debug::NoLocking=1", "APT::Sandbox::User=root", "Acquire::ForceHash=SHA256"]
    return ["apt-get", *(part for option in options for part in ("-o", option))]

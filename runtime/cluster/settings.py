"""Settings, secret token and program digest of one cluster host.

Invariants: the token, whose holder can run anything on every host, is in a file that only its owner can read; no
process of the cluster starts without it; Ray variables of a person's shell never reach one. It authenticates but does
not encrypt: anyone who can read the network can read the hosts' traffic. The digest depends only on the text of our own
modules, not on their location or modification time.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pydantic import Field

from runtime.errors import RefusedError
from runtime.model import FrozenModel
from runtime.sandbox import Tier
from runtime.settings import RuntimeSettings

HOST_VARIABLE = "ASSAY_CLUSTER_HOST"
"""Environment variable with the file of a host's settings, for processes started by Ray."""
DRAINING, IN_USE = "draining", "in-use"
"""File names in a host's folder."""
SESSIONS_PER_INTERPRETER = 64
"""Estimated sessions of the shared tier per interpreter."""


class HostSettings(FrozenModel):
    """Resources that a host of the cluster offers to drivers."""

    name: str
    folder: Path
    """State of this host's node, used by it alone."""
    runtime: RuntimeSettings
    """Runtime settings of the host; the limits are the driver's."""
    lease_seconds: float = Field(20.0, gt=0)
    """Silence after which a driver's sessions are closed, in seconds."""

    @property
    def capacity(self) -> dict[Tier, int]:
        return {
            Tier.SHARED: self.runtime.shared_workers * SESSIONS_PER_INTERPRETER,
            Tier.PROCESS: self.runtime.process_sessions,
            Tier.SANDBOX: self.runtime.sandboxes,
        }

    @property
    def draining(self) -> Path:
        """Path of the file whose presence makes the host refuse new sessions."""
        return self.folder / DRAINING

    @property
    def in_use(self) -> Path:
        """Path of the file that every driver's actor locks (shared)."""
        return self.folder / IN_USE


LEAST = 32
"""Shortest token, in characters."""
QUICK = {"RAY_NUM_REDIS_GET_RETRIES": "3"}
"""Ray setting for joining: the head answers within that many seconds, or counts as absent."""


def make_token(path: Path) -> None:
    """Creates a file with a new cluster token unless it exists."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(32))


def check_token(path: Path) -> None:
    """Raises RefusedError unless the cluster token's file exists, is private to its owner, and contains a token."""
    try:
        with path.open(encoding="utf-8") as file:
            found = os.fstat(file.fileno())
            token = file.read(4096).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise RefusedError(
            f"the cluster's token cannot be read from {path}: {getattr(error, 'strerror', None) or error}",
            hint="create it with `assay cluster start` on the first host; copy it to the others, and keep it secret",
        ) from error
    if not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) & 0o077 or found.st_uid != os.geteuid():
        raise RefusedError(
            f"other users can read the cluster's token in {path}", hint=f"chmod 600 {path}, and chown it to you"
        )
    if len(token) < LEAST or not token.isascii() or not token.isprintable() or " " in token:
        raise RefusedError(
            f"{path} has no valid token: one line of at least {LEAST} characters without spaces",
            hint="remove the file and run `assay cluster start` to create a new one",
        )


def ray_environment(environ: Mapping[str, str], token: Path, **more: str) -> dict[str, str]:
    """Returns the environment of a Ray process that uses the cluster token. Raises RefusedError without a token."""
    check_token(token)
    return {
        **{name: value for name, value in environ.items() if not name.startswith("RAY_")},
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token.absolute()),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DISABLE_IMPORT_WARNING": "1",
        **more,
    }


PACKAGES = ("appliance", "common", "curriculum", "policies", "runtime", "verifiers")
"""Packages that run on a host; the terminal UI does not."""
INSTALL = "install the same version of Assay on every host"


def digest_of(root: Path) -> str:
    """Returns the digest of this program's Python files in a folder: SHA-256, in hexadecimal."""
    state = hashlib.sha256()
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            text = file.read_bytes()
            state.update(f"{file.relative_to(root).as_posix()}\0{len(text)}\0".encode() + text)
    return state.hexdigest()


@cache
def own_digest() -> str:
    """Returns the digest of the running program's Python files."""
    return digest_of(Path(__file__).parents[2])

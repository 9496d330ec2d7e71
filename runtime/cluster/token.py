"""Secret token of a cluster: its holder can run anything on every host.

Invariants: it is in a file that only its owner can read; no process of the cluster starts without it; Ray variables of
a person's shell never reach one. The token authenticates but does not encrypt: anyone who can read the network can read
the hosts' traffic.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from runtime.errors import RefusedError

LEAST = 32
"""Shortest token, in characters."""
QUICK = {"RAY_NUM_REDIS_GET_RETRIES": "3"}
"""Ray setting for joining: the head answers within that many seconds, or counts as absent."""


def make(path: Path) -> None:
    """Creates a file with a new cluster token unless it exists."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(32))


def check(path: Path) -> None:
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
    check(token)
    return {
        **{name: value for name, value in environ.items() if not name.startswith("RAY_")},
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token.absolute()),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DISABLE_IMPORT_WARNING": "1",
        **more,
    }

"""Program digest, by which two machines of a cluster verify that they run the same version.

Invariants: it depends only on the text of our own modules, not on their location or modification time.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

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

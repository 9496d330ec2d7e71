"""Says which program a machine has, so that two of a cluster can tell whether theirs is the same.

What always holds: it depends on the text of our own modules alone, not on where they lie or when they were written.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

PACKAGES = ("appliance", "curriculum", "policies", "runtime", "verifiers")
"""What works on a host; the screen does not."""
INSTALL = "install the same version of Assay on every host"


def digest_of(root: Path) -> str:
    """Computes it for the packages in this folder: SHA-256, in hexadecimal."""
    state = hashlib.sha256()
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            text = file.read_bytes()
            state.update(f"{file.relative_to(root).as_posix()}\0{len(text)}\0".encode() + text)
    return state.hexdigest()


@cache
def own_digest() -> str:
    """Computes that of this program."""
    return digest_of(Path(__file__).parents[2])

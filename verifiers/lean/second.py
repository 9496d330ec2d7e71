"""The second kernel of this machine: a program that the owner installs, such as nanoda or lean4lean, not part of Lean.

Searched in this order: the file in $LEAN_KERNEL, and then no other; the one that `install.sh --with kernel=PROGRAM`
installed beside this environment. Its version is the digest of its file: programs name their versions in no common way.
It is called as leanprover/comparator does: nanoda gets a configuration in JSON, every other kernel the export. Exit
code 0 accepts. nanoda ends with 2 for an export in a form that it does not read; other codes refuse.

Invariants: only the standard library, since the box uses it as well; finding a kernel does not start it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

OWN = Path(f"{sys.prefix}-kernel")
"""Folder in which install.sh puts the program."""
HINT = "`./install.sh --with kernel=PROGRAM`, or the file of a checker such as nanoda or lean4lean in LEAN_KERNEL"
ALLOWED_AXIOMS = frozenset(("propext", "Quot.sound", "Classical.choice"))
UNDECIDED = (2, 70)
"""Exit codes that say nothing of the proof: nanoda's, and the box's for a program that cannot be started."""


@dataclass(frozen=True)
class SecondKernel:
    path: Path
    version: str

    def __str__(self) -> str:
        return f"{self.path.name} {self.version}"


def find_second(environ: Mapping[str, str] | None = None) -> SecondKernel | None:
    """Returns the second kernel to use, or None."""
    configured = (os.environ if environ is None else environ).get("LEAN_KERNEL")
    candidates = [Path(configured).expanduser().absolute()] if configured else sorted(OWN.glob("*"))
    for path in candidates:
        if path.is_file() and os.access(path, os.X_OK):
            with path.open("rb") as file:
                return SecondKernel(path, f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()[:12]}")
    return None


def command(kernel: str, export: Path) -> list[str]:
    """Returns the command line that checks an export, after writing the configuration that the kernel needs."""
    if "noda" not in Path(kernel).name:
        return [kernel, str(export)]
    config = export.with_suffix(".json")
    rules = {
        "export_file_path": str(export),
        "permitted_axioms": sorted(ALLOWED_AXIOMS),
        "unpermitted_axiom_hard_error": True,
        "nat_extension": True,
        "string_extension": True,
    }
    config.write_text(json.dumps(rules), encoding="utf-8")
    return [kernel, str(config)]


def verdict_of(ended: str, code: int, *, exported: bool) -> str:
    """Returns `accepts`, `refuses`, or `none` if the kernel did not decide."""
    if not exported or ended != "exited" or code in UNDECIDED:
        return "none"
    return "refuses" if code else "accepts"

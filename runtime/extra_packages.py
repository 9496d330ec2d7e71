"""Install commands for optional packages.

Invariants: the command names the packages themselves and the running interpreter, because an index may hold another
project under this program's name.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable

PROGRAM = "assay"


def install_command(extra: str, interpreter: str = sys.executable, needs: Iterable[str] | None = None) -> str:
    """Returns the command that installs an optional extra of this program. `needs` are metadata requirements, by
    default this program's own."""
    from importlib import metadata

    if needs is None:
        try:
            needs = metadata.requires(PROGRAM) or ()
        except metadata.PackageNotFoundError:
            needs = ()
    marked = re.compile(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]")
    wanted = [need.partition(";")[0].strip() for need in needs if marked.search(need.partition(";")[2])]
    return shlex.join([interpreter, "-m", "pip", "install", *wanted])

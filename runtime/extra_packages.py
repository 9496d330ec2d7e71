"""Says how packages are installed that only some uses of the program need.

What always holds: the command names those packages, and the interpreter that this runs from: by the program's own name
an index may have another's.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable

PROGRAM = "assay"


def install_command(extra: str, interpreter: str = sys.executable, needs: Iterable[str] | None = None) -> str:
    """The command that installs what an extra of pyproject.toml asks for. `needs` are requirements as metadata has
    them; otherwise this program's own."""
    from importlib import metadata

    if needs is None:
        try:
            needs = metadata.requires(PROGRAM) or ()
        except metadata.PackageNotFoundError:
            needs = ()
    marked = re.compile(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]")
    wanted = [need.partition(";")[0].strip() for need in needs if marked.search(need.partition(";")[2])]
    return shlex.join([interpreter, "-m", "pip", "install", *wanted])

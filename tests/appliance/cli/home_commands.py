"""`assay` with a home and a data folder of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from forked_commands import run_forked


def assay(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "PATH": "/usr/bin:/bin"}
    home["ASSAY_DATA"] = str(folder / "data")
    result = run_forked(arguments, home | environ)
    return subprocess.CompletedProcess(result.args, result.returncode, result.stdout.decode(), result.stderr.decode())

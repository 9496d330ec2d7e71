"""How tests of `assay check` run it: as a person does, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from sandbox_commands import environ

ASSAY = (sys.executable, "-m", "appliance.cli.main", "check")


def run(
    data: Path, *arguments: str | Path, typed: str | bytes = b"", limit: float = 180
) -> subprocess.CompletedProcess[str]:
    told = subprocess.run(
        [*ASSAY, *map(str, arguments)],
        env=environ(data),
        input=typed.encode() if isinstance(typed, str) else typed,
        capture_output=True,
        timeout=limit,
        check=False,
    )
    return subprocess.CompletedProcess(told.args, told.returncode, told.stdout.decode("ascii"), told.stderr.decode())


def start(data: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*ASSAY, *map(str, arguments)],
        env=environ(data),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def write_lines(path: Path, lines: Iterable[dict[str, object]]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def results_of(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def without_seconds(path: Path) -> list[dict[str, object]]:
    """What a run leaves, but for what a clock has a part in."""
    return [{**line, "seconds": 0} for line in results_of(path.read_text())]

"""Judges the declared files where Harbor runs it: writes 1 or 0 to /logs/verifier/reward.txt.

This file is copied into exported folders, beside assay.json, and runs on Python alone. It runs beside what it judges,
as tests of Harbor do: who wants a verdict that rests on nothing there has the folder judged by `assay`.
"""

from __future__ import annotations

import json
import math
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any


def lines(text: str) -> list[str]:
    return [line.rstrip(" \t\r") for line in text.rstrip().split("\n")]


def text_of(file: Path) -> str:
    """With the ends of its lines as they are. Raises ValueError for what is no text."""
    return file.read_bytes().decode()


def holds(spec: dict[str, Any], work: Path) -> bool:
    for path in spec["declared"]:
        file = work / path
        if file.is_symlink() or not file.is_file():
            return False
    for one in spec["files"]:
        file = work / one["path"]
        if one["mode"] and f"{stat.S_IMODE(file.stat().st_mode):03o}" != one["mode"]:
            return False
        if one["equals"] is not None and lines(text_of(file)) != lines(one["equals"]):
            return False
    return all(comes_of(command, spec, work) for command in spec["commands"])


PATIENCE = 20
"""Wall-clock time of a command on a busy machine, in its limit of processor time."""


def comes_of(command: dict[str, Any], spec: dict[str, Any], work: Path) -> bool:
    limit = math.ceil(spec["seconds"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in spec["declared"]:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(work / path, folder / path)
        for one in command["files"]:
            (folder / one["path"]).parent.mkdir(parents=True, exist_ok=True)
            (folder / one["path"]).write_text(one["text"])
            os.chmod(folder / one["path"], int(one["mode"], 8))  # noqa: PTH101
        try:
            ran = subprocess.run(
                command["command"],
                cwd=folder,
                input=command["stdin"].encode(),
                capture_output=True,
                timeout=PATIENCE * spec["seconds"],
                check=False,
                preexec_fn=partial(resource.setrlimit, resource.RLIMIT_CPU, (limit, limit + 1)),
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        if ran.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return False
        if command["exit_code"] is not None and ran.returncode != command["exit_code"]:
            return False
        if command["stdout"] is not None and lines(ran.stdout.decode(errors="replace")) != lines(command["stdout"]):
            return False
        return all(
            (folder / one["path"]).is_file() and lines(text_of(folder / one["path"])) == lines(one["text"])
            for one in command["leaves"]
        )


if __name__ == "__main__":
    tests, work, reward = (Path(argument) for argument in sys.argv[1:])
    reward.parent.mkdir(parents=True, exist_ok=True)
    try:
        found = holds(json.loads((tests / "assay.json").read_text()), work)
    except (OSError, ValueError):
        found = False
    reward.write_text(f"{int(found)}\n")

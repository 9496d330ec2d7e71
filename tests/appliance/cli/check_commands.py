"""How tests of `assay check` run it: as a person does, in a process of its own; or in this one, at a warm checker."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from unittest.mock import patch

from forked_commands import run_forked
from sandbox_commands import environ, in_process

from appliance.cli.check.target import CheckTarget
from appliance.config import places
from appliance.config.configuration import Settings
from verifiers import tools
from verifiers.checker import Checker

ASSAY = (sys.executable, "-m", "appliance.cli.main", "check")


class Checked:
    """The commands at one checker, which all that is asked here shares; only where it comes from is not a command's."""

    def __init__(self, data: Path) -> None:
        self.data = data
        settings = Settings.load({"data": data}, environ(data), data / "none", data / "none")
        runtime = places.runtime_settings(settings, data)
        own = runtime.own.model_copy(update={"programs": tools.programs()})
        self.checker = Checker(runtime.model_copy(update={"own": own}))

    def close(self) -> None:
        self.checker.close()

    def __call__(
        self, *arguments: str | Path, typed: str = "", shared: bool = True
    ) -> subprocess.CompletedProcess[str]:
        argv = ["--data", str(self.data), "check", *map(str, arguments)]
        with patch.object(CheckTarget, "checker", self._shared) if shared else contextlib.nullcontext():
            return in_process(argv, typed)

    @contextlib.contextmanager
    def _shared(self, *, jobs: int) -> Iterator[Checker]:
        yield self.checker


def run(
    data: Path, *arguments: str | Path, typed: str | bytes = b"", limit: float = 180
) -> subprocess.CompletedProcess[str]:
    given = typed.encode() if isinstance(typed, str) else typed
    result = run_forked(("check", *map(str, arguments)), environ(data), given, limit)
    return subprocess.CompletedProcess(
        result.args, result.returncode, result.stdout.decode("ascii"), result.stderr.decode()
    )


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

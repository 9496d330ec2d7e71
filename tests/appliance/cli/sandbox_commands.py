"""How tests of the sandbox commands run them: as a person does, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from appliance import places
from appliance.config import Settings
from runtime.broker.client import ask
from runtime.errors import SandboxError
from runtime.settings import BrokerSettings

ASSAY = (sys.executable, "-m", "appliance.cli.main", "sandbox")


def environ(data: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "XDG_"))}
    return kept | {"ASSAY_DATA": str(data), "XDG_CONFIG_HOME": str(data / "no-config"), "TERM": "dumb"}


def run(data: Path, *arguments: str, typed: str | bytes = "") -> subprocess.CompletedProcess[str]:
    told = subprocess.run(
        [*ASSAY, *arguments],
        env=environ(data),
        input=typed.encode() if isinstance(typed, str) else typed,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return subprocess.CompletedProcess(
        told.args, told.returncode, told.stdout.decode(errors="surrogateescape"), told.stderr.decode()
    )


def settings_of(data: Path) -> Settings:
    return Settings.load({"data": data}, environ(data), data / "none", data / "none")


def broker_settings(data: Path) -> BrokerSettings:
    return places.broker_settings(settings_of(data), data, places.load_policy(data))


@contextmanager
def broker_for(data: Path) -> Iterator[None]:
    """A broker as the daemon starts it, at the socket where the commands look for it."""
    path = places.broker_socket(settings_of(data), data)
    path.parent.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "runtime.broker", "--settings", "-", "--socket", str(path)],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdin is not None
        with process.stdin:
            process.stdin.write(broker_settings(data).model_dump_json().encode())
        deadline = time.monotonic() + 60
        while True:
            try:
                ask(path)
                break
            except SandboxError:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)

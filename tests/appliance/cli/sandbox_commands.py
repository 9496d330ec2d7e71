"""How tests of the sandbox commands run them: as a person does, in a process of their own; or in this one, for the many
words and answers that one process is as good for as another."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import typer
from forked_commands import run_forked
from printed_json import check_printed

from appliance.cli.main import app, complain
from appliance.config import places
from appliance.config.configuration import Settings
from appliance.settings import policy_files
from runtime.broker import ask
from runtime.errors import SandboxError
from runtime.settings import BrokerSettings

ASSAY = (sys.executable, "-m", "appliance.cli.main", "sandbox")


def environ(data: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "XDG_C", "XDG_D"))}
    few_ready = {"ASSAY_SANDBOX__READY": "1"}  # a sandbox that nobody takes costs a quarter of a processor's second
    return inherited | few_ready | {"ASSAY_DATA": str(data), "XDG_CONFIG_HOME": str(data / "no-config"), "TERM": "dumb"}


def run(data: Path, *arguments: str, typed: str | bytes = "") -> subprocess.CompletedProcess[str]:
    given = typed.encode() if isinstance(typed, str) else typed
    result = run_forked(("sandbox", *arguments), environ(data), given, 120)
    return subprocess.CompletedProcess(
        result.args, result.returncode, result.stdout.decode(errors="surrogateescape"), result.stderr.decode()
    )


def here(data: Path, *arguments: str, typed: str | bytes = "") -> subprocess.CompletedProcess[str]:
    """One sandbox command, in this process."""
    return in_process(["--data", str(data), "sandbox", *arguments], typed)


def in_process(argv: list[str], typed: str | bytes = "") -> subprocess.CompletedProcess[str]:
    """A command of `assay`, from its words to its exit code."""
    given = io.TextIOWrapper(io.BytesIO(typed.encode() if isinstance(typed, str) else typed))
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape", write_through=True)
    err = io.StringIO()
    before = signal.getsignal(signal.SIGTERM)
    with patch("sys.stdin", given), redirect_stdout(out), redirect_stderr(err):
        try:
            code = typer.main.get_command(app)(argv, prog_name="assay", standalone_mode=False)
        except typer.Exit as left:
            code = left.exit_code
        except Exception as error:
            if hasattr(error, "show"):  # the parser's own, which is shown with the usage
                error.show()
                code = error.exit_code
            else:
                code = complain(error)
    signal.signal(signal.SIGTERM, before)
    assert isinstance(out.buffer, io.BytesIO)
    output = out.buffer.getvalue().decode(errors="surrogateescape")
    check_printed(argv, output)
    return subprocess.CompletedProcess(argv, int(code or 0), output, err.getvalue())


def settings_of(data: Path) -> Settings:
    return Settings.load({"data": data}, environ(data), data / "none", data / "none")


def broker_settings(data: Path) -> BrokerSettings:
    return places.broker_settings(settings_of(data), data, policy_files.load_policy(data))


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
        deadline = time.monotonic() + 120
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
        process.wait(timeout=120)

"""With which status a worker ends tells the core whether trying again may help."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from appliance.config.configuration import Settings
from appliance.inference.engine import ModelError, OutOfMemoryError
from appliance.readiness.sandbox import BrokerAwayError
from appliance.rendering.renderer import RenderingError
from appliance.settings.config_layers import ConfigError
from appliance.worker import __main__ as worker
from appliance.worker.setup.context import WorkContext
from runtime.errors import InfrastructureError, RefusedError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RefusedError("no isolation"), 5),
        (ModelError("no weights"), 2),
        (RenderingError("no format"), 2),
        (ConfigError("no model"), 4),
        (BrokerAwayError("no broker answers"), 5),
        (InfrastructureError("a sandbox died"), 5),
        (OutOfMemoryError("the GPU ran out of memory"), 5),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_done_as_asked_ends_with_2_and_a_configuration_with_4(
    error: Exception, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(*_given: object) -> None:
        raise error

    monkeypatch.setattr(worker, "work", work)
    monkeypatch.setattr(signal, "signal", lambda *_given: None)
    settings = tmp_path / "settings.json"
    settings.write_text(Settings(data=tmp_path).model_dump_json())
    ours, theirs = socket.socketpair()
    with theirs:
        arguments = ["--ledger-fd", str(ours.detach()), "--data", str(tmp_path), "--settings", str(settings)]
        assert worker.main(["jobs", *arguments]) == status
    assert str(error) in capsys.readouterr().err


def test_a_gpu_that_is_gone_is_a_failure_of_the_machine(context: WorkContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(context, "_device", "cuda")
    for part in ("engine", "ranks"):
        with pytest.raises(InfrastructureError, match="no GPU here"):
            getattr(context, part)


def test_a_gpu_that_torch_cannot_use_is_spoken_of_where_the_processor_learns_instead(
    context: WorkContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[str] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(context, "_say", lambda kind, text: said.append(f"{kind}: {text}"))
    (tool := tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho NVIDIA H200, 143771, 143000\n")
    tool.chmod(0o755)
    assert context.ranks is None
    assert said == []
    vars(context).pop("ranks")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert context.ranks is None
    assert [line.partition(":")[0] for line in said] == ["warning"]
    assert "torch cannot use NVIDIA H200" in said[0]


STOPPED_LATE = """
import atexit, os, signal
from appliance.worker import __main__ as worker

def work(*_given):
    signal.signal(signal.SIGTERM, worker._stop)
    atexit.register(lambda: (os.kill(os.getpid(), signal.SIGTERM), print("tidied up", flush=True)))
    {ends}

worker.main = work
worker.run([])
"""


@pytest.mark.parametrize(
    ("ends", "status"), [("return 5", 5), ("os.kill(os.getpid(), signal.SIGTERM)", 128 + signal.SIGTERM)]
)
def test_one_that_is_asked_to_end_while_it_ends_tidies_up_and_says_nothing(ends: str, status: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STOPPED_LATE.format(ends=ends)], capture_output=True, text=True, timeout=240
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (status, "tidied up\n", "")

"""With which status a worker ends tells the core whether trying again may help."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

from appliance.config import Settings
from appliance.config_layers import ConfigError
from appliance.inference.engine import ModelError
from appliance.rendering.renderer import RenderingError
from appliance.sandbox_readiness import BrokerAwayError
from appliance.worker import __main__ as worker
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

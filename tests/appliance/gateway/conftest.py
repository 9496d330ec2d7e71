"""One gateway for all tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat_models import qwen3_folder
from gateway_kit import Gateway, running_gateway

from appliance.inference.folder import read_model
from verifiers.checker import Checker


@pytest.fixture(scope="module")
def running() -> Iterator[Gateway]:
    with tempfile.TemporaryDirectory() as folder, Checker() as checker, running_gateway(Path(folder), checker) as made:
        yield made


@pytest.fixture
def gateway(running: Gateway) -> Gateway:
    running.says(running.renderer.answer("hello"))
    return running


@pytest.fixture(scope="module")
def drawing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose model draws: a Qwen3 with random weights."""
    files = dict(read_model(qwen3_folder(tmp_path_factory.mktemp("qwen3"), positions=8_192)))
    files["rendering.json"] = b'{"format": "qwen3", "enable_thinking": false}'  # thoughts are free, and without an end
    with Checker() as checker, running_gateway(tmp_path_factory.mktemp("data"), checker, files) as made:
        yield made

"""One gateway for all tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from gateway_kit import Gateway, running_gateway

from verifiers.checker import Checker


@pytest.fixture(scope="module")
def running() -> Iterator[Gateway]:
    with tempfile.TemporaryDirectory() as folder, Checker() as checker, running_gateway(Path(folder), checker) as made:
        yield made


@pytest.fixture
def gateway(running: Gateway) -> Gateway:
    running.says(running.renderer.answer("hello"))
    return running

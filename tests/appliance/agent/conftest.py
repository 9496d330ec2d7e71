"""One tokenizer and one pool of real sessions for all tests of the agent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from appliance.rendering.markers import SEEDLING, MarkerRenderer
from appliance.rendering.renderer import Renderer
from appliance.seedling.tokenizer import train_tokenizer
from runtime.sandbox import SessionPool
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings


@pytest.fixture(scope="session")
def renderer() -> Renderer:
    tokenizer = train_tokenizer(["print(1+2) gcd of 12 and 18? \\boxed{6} NameError: name"] * 50)
    return MarkerRenderer(Tokenizer.from_str(tokenizer.to_str()), SEEDLING)


@pytest.fixture(scope="package")
def sessions(tmp_path_factory: pytest.TempPathFactory, guest_roots: Path) -> Iterator[SessionPool]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=guest_roots, ready=1)
    with Sessions(RuntimeSettings(own=own)) as pool:
        yield pool

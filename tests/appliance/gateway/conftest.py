"""One gateway for all tests: real HTTP on loopback, the format of Qwen3, answers from a script, the real checker."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_models import files_of
from openai import OpenAI
from scripted_engine import ScriptedEngine

from appliance.clock import utc_now
from appliance.gateway.app import GatewayApi
from appliance.gateway.champion import ServedModel
from appliance.gateway.door import GatewayDoor, KnownTokens
from appliance.gateway.keeping import SessionKeeper
from appliance.gateway.server import GatewayServer, loopback_socket
from appliance.gateway.sessions import KeptSessions
from appliance.gateway.tokens import new_token
from appliance.inference.engine_loop import EngineLoop
from appliance.redaction import USUAL, Redaction
from appliance.rendering.formats import load_renderer
from appliance.rendering.guarded import GuardedTokenizer
from appliance.rendering.renderer import Renderer
from verifiers.checker import Checker

SLOTS = 4000


class Gateway:
    """What runs, and what its model says next: `say` takes a renderer's turn, or a function of the prompt."""

    def __init__(self, data: Path) -> None:
        files = files_of("qwen3")
        self.data = data
        self.renderer: Renderer = load_renderer(files)
        self.engine = ScriptedEngine(self._turn, version="v1", slots=SLOTS)
        self.model: ServedModel | None = ServedModel("v1", self.renderer, tuple(GuardedTokenizer(files).marks.values()))
        self.problem = "no model is in service yet"
        self.kept = KeptSessions(data)
        self.secrets = {
            name: new_token(data, name, consent=consent, now=utc_now())[1]
            for name, consent in (("plain", False), ("agent", True), ("other", True))
        }
        self._says: Callable[[tuple[int, ...]], tuple[int, ...]] = lambda known: self.renderer.answer("hello")
        self.port = 0
        self.api: GatewayApi
        self.server: GatewayServer

    def says(self, turn: tuple[int, ...] | Callable[[tuple[int, ...]], tuple[int, ...]]) -> None:
        self._says = turn if callable(turn) else lambda known: turn

    def _turn(self, request: Any, known: tuple[int, ...]) -> tuple[int, ...]:
        return self._says(known)

    def client(self, token: str = "plain", **options: Any) -> OpenAI:
        return OpenAI(
            base_url=f"http://127.0.0.1:{self.port}/v1",
            api_key=self.secrets.get(token, token),
            max_retries=0,
            **options,
        )

    def ask(self, text: str = "hi", token: str = "plain", **fields: Any) -> Any:
        messages = fields.pop("messages", [{"role": "user", "content": text}])
        with self.client(token) as client:
            return client.chat.completions.create(model="champion", messages=messages, **fields)


@pytest.fixture(scope="module")
def running() -> Iterator[Gateway]:
    with tempfile.TemporaryDirectory() as folder, Checker() as checker:
        made = Gateway(Path(folder))
        keeper = SessionKeeper(made.kept, Redaction(USUAL), 30.0, utc_now)
        with EngineLoop(made.engine) as loop:
            sock = loopback_socket("127.0.0.1", 0)
            made.port = sock.getsockname()[1]
            made.api = api = GatewayApi(loop, made, SLOTS, checker, keeper)
            door = GatewayDoor(api.app, KnownTokens(made.data), made.port)
            with GatewayServer(door, sock) as made.server:
                yield made


@pytest.fixture
def gateway(running: Gateway) -> Gateway:
    running.says(running.renderer.answer("hello"))
    return running

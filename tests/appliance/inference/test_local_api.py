"""What a model behind an API says is taken where it is what the API says; the rest is no answer, in a sentence."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from appliance.agent.api_conversation import code_of
from appliance.inference.local_api import LocalApi
from runtime.errors import InfrastructureError


class _Says(BaseHTTPRequestHandler):
    body: bytes

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_arguments: object) -> None: ...


@pytest.fixture(scope="module")
def api() -> Iterator[LocalApi]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Says)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with LocalApi(f"http://127.0.0.1:{server.server_address[1]}/v1", "m") as made:
        yield made
    server.shutdown()
    server.server_close()


def said(**message: Any) -> bytes:
    return json.dumps({"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}).encode()


@pytest.mark.parametrize(
    "body",
    [
        said(content=5),
        said(content=[{"type": "text", "text": "6"}]),
        said(content="\ud800"),
        said(tool_calls=5),
        said(tool_calls="ab"),
        said(tool_calls=[None]),
        said(tool_calls=[{"id": "1", "type": "function", "function": {"name": "\ud800", "arguments": "{}"}}]),
        b"[" * 100_000,
        said(content="")[:-1] + b', "x": ' + b"9" * 5000 + b"}",
        b"\xff",
    ],
)
def test_what_is_no_message_is_no_answer(api: LocalApi, body: bytes) -> None:
    _Says.body = body
    with pytest.raises(InfrastructureError, match="gives no answer"):
        api.say([{"role": "user", "content": "?"}], temperature=1.0, max_tokens=1, seed=1)


def test_code_with_half_of_a_character_is_no_code() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        code_of({"name": "python", "arguments": '{"code": "\\ud800"}'})

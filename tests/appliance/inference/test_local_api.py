"""A model behind an API on this machine gives an answer of the form and the size that one has, or none."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest
from tables import table

from appliance.agent.api_conversation import code_of
from appliance.inference.http.bounded_answers import BoundedTransport
from appliance.inference.http.local_api import LocalApi
from runtime.errors import InfrastructureError

Write = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def served(write: Write) -> Iterator[str]:
    """A server that answers every request with what `write` writes."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            with suppress(OSError):
                write(self)

        def log_message(self, *_arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def whole(content: bytes, **headers: str) -> Write:
    def write(handler: BaseHTTPRequestHandler) -> None:
        for name, value in {"content-type": "application/json", "content-length": str(len(content)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(content)

    return write


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.end_headers()
    while True:
        handler.wfile.write(b" " * 4096)


def endless_head(handler: BaseHTTPRequestHandler) -> None:
    handler.flush_headers()
    while True:
        handler.wfile.write(b"a")
        time.sleep(0.05)


def endless_heads(handler: BaseHTTPRequestHandler) -> None:
    while True:
        handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.05)


def chat(**message: Any) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return json.dumps(
        {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    ).encode()


@table(
    "content",
    [
        chat(content=5),
        chat(content=[{"type": "text", "text": "42"}]),
        chat(content=None, tool_calls=5),
        chat(content=None, tool_calls="call"),
        chat(content=None, tool_calls=[None]),
        chat(content="\ud800"),
        chat(tool_calls=[{"id": "1", "type": "function", "function": {"name": "\ud800", "arguments": "{}"}}]),
        b'{"choices": {"0": 1}}',
        b'{"choices": [' + b"9" * 5000 + b"]}",
        b"[" * 100_000,
        b"\xff\xfe{",
    ],
)
def test_an_answer_of_another_form_is_none(content: bytes) -> None:
    with (
        served(whole(content)) as url,
        LocalApi(f"{url}/v1", "m") as api,
        pytest.raises(InfrastructureError, match="does not answer"),
    ):
        api.say([{"role": "user", "content": "1 + 1?"}], temperature=1.0, max_tokens=8, seed=0)


@pytest.mark.parametrize(
    ("write", "bounds", "word"),
    [
        (endless, {"seconds": 600.0, "most": 1 << 16}, "more than 65536 bytes"),
        (endless, {"seconds": 0.0, "most": 1 << 30}, "takes too long"),
        (endless_head, {"seconds": 1.0, "most": 1 << 30}, "takes too long"),
        (endless_heads, {"seconds": 1.0, "most": 1 << 30}, "takes too long"),
        (
            whole(gzip.compress(b" " * 100_000), content_encoding="gzip"),
            {"seconds": 600.0, "most": 1 << 16},
            "compress",
        ),
    ],
)
def test_an_answer_without_end_or_that_unpacks_to_more_is_given_up(
    write: Write, bounds: dict[str, Any], word: str
) -> None:
    with (
        served(write) as url,
        httpx2.Client(transport=BoundedTransport(**bounds)) as client,
        pytest.raises(httpx2.HTTPError, match=word),
    ):
        client.post(url, content=b"{}")


def test_code_with_half_of_a_character_is_no_code() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        code_of({"name": "python", "arguments": '{"code": "\\ud800"}'})

"""Strangers, browsers, and clients that mean no good, by hand over a socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import openai
import pytest
from gateway_kit import until

from appliance.config.configuration import Settings
from appliance.gateway import app, server
from appliance.gateway.replies import BODY
from appliance.gateway.tokens import (
    GatewayToken,
    GatewayTokenError,
    new_token,
    read_tokens,
    revoke_token,
    token_file,
    token_of,
)
from appliance.system.clock import utc_now
from appliance.system.slow_readers import TimedStream

ASK = {"model": "champion", "messages": [{"role": "user", "content": "hi"}]}


def raw(port: int, head: list[str], body: bytes = b"") -> tuple[int, bytes]:
    with socket.create_connection(("127.0.0.1", port), 120) as sock:
        sock.sendall("\r\n".join([*head, "", ""]).encode("latin-1") + body)
        said = b""
        with contextlib.suppress(ConnectionResetError):  # of a body that is refused before it was read
            while part := sock.recv(65_536):
                said += part
    return int(said.split()[1]), said


def post(gateway, *headers: str, host: str = "", token: str = "plain", body: bytes | None = None) -> tuple[int, bytes]:
    content = json.dumps(ASK).encode() if body is None else body
    secret = gateway.secrets.get(token, token)
    head = [
        "POST /v1/chat/completions HTTP/1.1",
        f"Host: {host or f'127.0.0.1:{gateway.port}'}",
        *([f"Authorization: Bearer {secret}"] if secret else []),
        *(
            headers
            if any(one.lower().startswith("content-type") for one in headers)
            else (*headers, "Content-Type: application/json")
        ),
        f"Content-Length: {len(content)}",
        "Connection: close",
    ]
    return raw(gateway.port, head, content)


def test_only_a_token_in_use_is_let_in(gateway) -> None:
    before = gateway.engine.steps
    for secret in ("wrong", "", "assay-" + "x" * 43, "x" * 100_0, "\u00e9\u00ff", gateway.secrets["plain"][:-1]):
        assert post(gateway, token=secret or " ")[0] == 401
    assert post(gateway, "Authorization: Bearer x")[0] == 401  # two of them
    with pytest.raises(openai.AuthenticationError, match="assay gateway token new"):
        gateway.ask(token="not-a-token")
    _, secret = new_token(gateway.data, "brief", consent=False, now=utc_now())
    assert gateway.ask(token=secret).choices[0].message.content == "hello"
    revoke_token(gateway.data, "brief", utc_now())
    before = gateway.engine.steps
    with pytest.raises(openai.AuthenticationError):
        gateway.ask(token=secret)
    assert gateway.engine.steps == before


def test_a_page_in_a_browser_gets_nothing(gateway) -> None:
    assert post(gateway)[0] == 200
    for host in (
        "evil.example",
        f"evil.example:{gateway.port}",
        "127.0.0.1",
        "127.0.0.1:1",
        f"127.0.0.1.evil:{gateway.port}",
    ):
        assert post(gateway, host=host)[0] == 403
    for header in (
        "Origin: http://evil.example",
        "Origin: null",
        f"Origin: http://127.0.0.1:{gateway.port}",
        "Sec-Fetch-Site: cross-site",
    ):
        status, said = post(gateway, header)
        assert (status, b"access-control" in said.lower()) == (403, False)
    assert post(gateway, "Content-Type: text/plain")[0] == 415
    assert post(gateway, f"Host: 127.0.0.1:{gateway.port}")[0] == 400  # two of them
    assert post(gateway, host=f"LOCALHOST:{gateway.port}")[0] == 200


def test_bodies_that_are_huge_broken_or_deep_are_refused_in_shape(gateway) -> None:
    before = gateway.engine.steps
    for body, status in (
        (b"", 400),
        (b"[" * 200_000, 400),
        (b'{"model": "champion", "messages": NaN}', 400),
        (b"\xff\xfe", 400),
        (b'{"model":"champion","messages":[{"role":"user","content":"\\ud800"}]}', 400),
    ):
        found, said = post(gateway, body=body)
        assert found == status
        assert json.loads(said.split(b"\r\n\r\n", 1)[1])["error"]["type"] == "invalid_request_error"
    assert post(gateway, body=b" " * (BODY.size + 1))[0] == 413
    assert gateway.engine.steps == before
    assert (
        raw(gateway.port, ["GET /v1/chat/../models HTTP/1.1", f"Host: 127.0.0.1:{gateway.port}", "Connection: close"])[
            0
        ]
        == 401
    )


def test_a_connection_that_says_nothing_is_closed(gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", gateway.port), 120) as sock:
        sock.sendall(b"POST /v1/chat/completions HT")
        assert sock.recv(100) == b""  # a timeout fails
    monkeypatch.undo()  # a busy machine is no silent client
    assert gateway.ask().choices[0].message.content == "hello"


@pytest.mark.parametrize("token", ["wrong", "plain"])
def test_a_connection_that_begins_another_request_and_says_no_more_is_closed(
    gateway, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setattr(server, "HEAD_SECONDS", 2.0 if token == "plain" else 60.0)
    secret = gateway.secrets.get(token, token)
    head = f"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\nAuthorization: Bearer {secret}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", gateway.port), 120) as sock:
        sock.sendall(head.encode())
        said = sock.recv(65_536)
        assert said.split()[1] == (b"200" if token == "plain" else b"401")
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            sock.sendall(b"GET /v1/mod")
            while sock.recv(65_536):
                pass  # ends when the connection is closed; a timeout fails


def test_a_client_that_hangs_up_leaves_the_engine_and_others_go_on(gateway) -> None:
    for stream in (False, True):
        content = json.dumps({**ASK, "stream": stream}).encode()
        head = [
            "POST /v1/chat/completions HTTP/1.1",
            f"Host: 127.0.0.1:{gateway.port}",
            f"Authorization: Bearer {gateway.secrets['plain']}",
            "Content-Type: application/json",
            f"Content-Length: {len(content)}",
        ]
        with socket.create_connection(("127.0.0.1", gateway.port), 120) as sock:
            sock.sendall("\r\n".join([*head, "", ""]).encode() + content)
    assert gateway.ask().choices[0].message.content == "hello"
    until(lambda: gateway.engine.unfinished == 0)


def test_what_makes_a_stream_has_ended_when_its_reader_is_gone() -> None:
    ended: list[str] = []

    async def parts() -> AsyncIterator[bytes]:
        try:
            yield b"one"
            yield b"two"
        finally:
            ended.append("yes")

    async def receive() -> dict[str, object]:
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.body":
            raise OSError("gone")

    async def answered() -> list[str]:
        made = parts()
        with contextlib.suppress(Exception):
            await TimedStream(made)({"type": "http", "asgi": {"spec_version": "2.3"}}, receive, send)
        return list(ended)

    assert asyncio.run(answered()) == ["yes"]


def test_a_stream_counts_until_its_end(gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MOST_UNDER_WAY", 1)
    go_on = threading.Event()

    def slow(known: tuple[int, ...]) -> tuple[int, ...]:
        assert go_on.wait(60)
        return gateway.renderer.answer("hello")

    gateway.says(slow)
    with gateway.client() as client, client.chat.completions.create(**ASK, stream=True) as stream:
        try:
            next(iter(stream))
            with pytest.raises(openai.RateLimitError, match="requests are active"):
                gateway.ask()
        finally:
            go_on.set()
        assert [one.choices[0].finish_reason for one in stream][-1] == "stop"
    gateway.says(gateway.renderer.answer("hello"))
    until(lambda: gateway.api._under_way == 0)
    assert gateway.ask().choices[0].message.content == "hello"


def test_only_hashes_of_tokens_are_kept_and_names_are_used_once(tmp_path: Path) -> None:
    made, secret = new_token(tmp_path, "editor", consent=True, now=utc_now())
    assert secret not in token_file(tmp_path).read_text()
    assert token_of(secret, read_tokens(tmp_path)) == made
    assert token_of(secret + "x", read_tokens(tmp_path)) is None
    assert token_of("\udcff", read_tokens(tmp_path)) is None
    with pytest.raises(GatewayTokenError, match="already"):
        new_token(tmp_path, "editor", consent=False, now=utc_now())
    revoke_token(tmp_path, "editor", utc_now())
    assert token_of(secret, read_tokens(tmp_path)) is None
    assert new_token(tmp_path, "editor", consent=False, now=utc_now())[0].consent is False
    with pytest.raises(GatewayTokenError, match="no valid token"):
        revoke_token(tmp_path, "nobody", utc_now())
    token_file(tmp_path).write_text("[]")
    with pytest.raises(GatewayTokenError, match="cannot be read"):
        read_tokens(tmp_path)
    with pytest.raises(ValueError, match="pattern"):
        GatewayToken(name="../x", sha256="0" * 64, consent=False, created="")


def test_no_address_but_loopback_is_taken(tmp_path: Path) -> None:
    for address in ("0.0.0.0", "::", "192.168.1.2", "example.org", ""):
        with pytest.raises(ValueError, match="loopback address only"):
            Settings(data=tmp_path, gateway={"address": address})
    assert Settings(data=tmp_path, gateway={"address": "::1"}).gateway.enabled is False
    with pytest.raises(ValueError, match="invalid regular expression"):
        Settings(data=tmp_path, gateway={"redact": ["("]})

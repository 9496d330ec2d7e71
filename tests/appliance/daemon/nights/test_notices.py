"""The end of a night is told over real servers on this machine, and nothing that goes wrong there fails a night."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword
from daemon_kit import until
from pydantic import ValidationError

from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.daemon.nights.notices import Notice, NoticeError, Notices, read_secret
from appliance.nights.settings import EmailSettings, ReportSettings
from appliance.records.nights import Night, NightState

NOTICE = Notice(
    "Assay: the night of 2026-11-24 is done", "promote: \u00e4 better model\n", {"night": {"key": "2026-11-24"}}
)
SECRET = "tk_0123456789"


class Server(ThreadingHTTPServer):
    """Keeps what it is sent; `status` is its answer."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.status = 200
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Any

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        self.send_response(self.server.status)
        if self.server.status == 302:
            self.send_header("location", f"{self.server.url}/elsewhere")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


class Mailbox:
    def __init__(self) -> None:
        self.got: list[Any] = []

    async def handle_DATA(self, server: object, session: object, envelope: Any) -> str:  # noqa: N802
        self.got.append(envelope)
        return "250 OK"


@pytest.fixture
def mail() -> Iterator[tuple[Mailbox, int]]:
    box = Mailbox()

    def login(server: object, session: object, envelope: object, mechanism: str, data: Any) -> AuthResult:
        right = isinstance(data, LoginPassword) and data.password == SECRET.encode()
        return AuthResult(success=right, handled=right)

    loop = asyncio.new_event_loop()
    making = loop.create_server(
        lambda: SMTP(box, authenticator=login, auth_require_tls=False, loop=loop), "127.0.0.1", 0
    )
    listening = loop.run_until_complete(making)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield box, listening.sockets[0].getsockname()[1]
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    listening.close()
    loop.close()


@pytest.fixture
def secret(tmp_path) -> str:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    return str(tmp_path / "secret")


def test_a_webhook_and_ntfy_get_the_notice_with_their_tokens(server, secret) -> None:
    settings = ReportSettings(
        webhook=f"{server.url}/hook", webhook_token=secret, ntfy=f"{server.url}/nights", ntfy_token=secret
    )
    assert Notices(settings, print).try_all(NOTICE) == {"webhook": "", "ntfy": ""}
    (path, headers, body), (topic, ntfy, text) = sorted(server.got)  # both are told at once
    assert (path, headers["authorization"]) == ("/hook", f"Bearer {SECRET}")
    assert json.loads(body)["night"] == {"key": "2026-11-24"}
    assert json.loads(body)["title"] == NOTICE.title
    assert (topic, ntfy["title"], text.decode()) == ("/nights", NOTICE.title, NOTICE.text)


def test_an_e_mail_arrives_and_a_wrong_password_is_said_without_it(mail, secret, tmp_path) -> None:
    box, port = mail
    usual = {"host": "127.0.0.1", "port": port, "security": "none", "sender": "assay@here", "to": ("ada@here",)}
    email = EmailSettings.model_validate({**usual, "user": "assay", "password": secret})
    assert Notices(ReportSettings(email=email), print).try_all(NOTICE) == {"e-mail": ""}
    (envelope,) = box.got
    assert envelope.rcpt_tos == ["ada@here"]
    assert b"Subject: Assay: the night of 2026-11-24 is done" in envelope.content
    (tmp_path / "wrong").write_text("tk_wrong")
    wrong = EmailSettings.model_validate({**usual, "user": "assay", "password": str(tmp_path / "wrong")})
    (failed,) = Notices(ReportSettings(email=wrong), print).try_all(NOTICE).values()
    assert "535" in failed
    assert "tk_wrong" not in failed
    unprotected = EmailSettings.model_validate({**usual, "security": "starttls"})
    (failed,) = Notices(ReportSettings(email=unprotected), print).try_all(NOTICE).values()
    assert failed  # a server without STARTTLS gets nothing
    assert len(box.got) == 1


def test_a_redirect_is_not_followed_and_no_token_leaves_with_it(server, secret) -> None:
    server.status = 302
    settings = ReportSettings(webhook=f"{server.url}/hook", webhook_token=secret)
    assert Notices(settings, print).try_all(NOTICE) == {"webhook": "127.0.0.1 answered with status 302"}
    assert [path for path, _, _ in server.got] == ["/hook"]


def test_what_fails_is_an_event_without_url_or_secret_and_the_night_stays_as_it_ended(data, secret) -> None:
    report = {"webhook": "http://127.0.0.1:9/hook?key=abc", "webhook_token": secret, "ntfy": "http://127.0.0.1:9/t"}
    with Core(Settings(data=data, report=report)) as core:
        night = Night(
            key="2026-11-24", opens=core.now(), closes="", state=NightState.DONE, reason="done", updated=core.now()
        )
        core.ledger.put_night(night)
        core._tell(night)
        until(lambda: core.ledger.night("2026-11-24").reported)
        said = [event.text for _, event in core.ledger.events() if event.kind == "report"]
        assert len(said) == 2
        assert all("127.0.0.1 could not be reached: Connection refused" in text for text in said)
        assert not any(SECRET in text or "abc" in text or "/hook" in text for text in said)
        assert core.ledger.night("2026-11-24").state is NightState.DONE


def test_a_secret_is_a_file_or_a_credential_of_one_line(tmp_path, secret) -> None:
    assert read_secret(secret) == SECRET
    assert read_secret("secret", {"CREDENTIALS_DIRECTORY": str(tmp_path)}) == SECRET
    for content in (b"", b"\n", b"two\nlines", b"\xff", b"x" * 5000):
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(NoticeError, match="does not contain a one-line secret"):
            read_secret(str(tmp_path / "bad"))
    with pytest.raises(NoticeError, match="cannot be read"):
        read_secret(str(Path(tmp_path) / "none"))
    with pytest.raises(NoticeError, match="no such credential: ntfy"):
        read_secret("ntfy", {})


def test_settings_that_would_send_a_secret_unprotected_are_refused() -> None:
    with pytest.raises(ValidationError, match="never sent over http"):
        ReportSettings(webhook="http://example.org/hook", webhook_token="token")
    with pytest.raises(ValidationError, match="out of the URL"):
        ReportSettings(ntfy="https://me:pw@example.org/topic")
    with pytest.raises(ValidationError, match="never sent unprotected"):
        EmailSettings(host="example.org", sender="a@b", to=("c@d",), user="a", password="p", security="none")
    for url in ("file:///etc/passwd", "example.org", "ftp://example.org/x"):
        with pytest.raises(ValidationError, match="https://"):
            ReportSettings(webhook=url)


def test_a_server_that_answers_a_byte_at_a_time_keeps_nobody_else_from_being_told(server) -> None:
    ended = threading.Event()

    def drip(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            for byte in itertools.cycle(b"HTTP/1.1 200 OK\r\nx: y"):
                if ended.wait(0.05):
                    return
                connection.sendall(bytes([byte]))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip, args=(listening,))
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        settings = ReportSettings(webhook=url, ntfy=f"{server.url}/nights", timeout=5.0)
        try:
            failed = Notices(settings, lambda text: None).try_all(NOTICE)
        finally:
            ended.set()
            thread.join()
    assert "longer" in failed["webhook"]
    assert failed["ntfy"] == ""
    assert len(server.got) == 1


@pytest.mark.parametrize("title", ["a\r\nx-injected: 1", "a\nBcc: stranger@evil.example", "a\x00b", "\u2028Bcc: x@y"])
def test_no_title_adds_a_header(server, mail, title: str) -> None:
    box, port = mail
    email = EmailSettings(host="127.0.0.1", port=port, security="none", sender="a@example.org", to=("b@example.org",))
    settings = ReportSettings(ntfy=f"{server.url}/nights", email=email)
    Notices(settings, lambda text: None).try_all(Notice(title, "text\n.\nRCPT TO:<stranger@evil.example>\n"))
    assert not any("x-injected" in headers for _, headers, _ in server.got)
    for envelope in box.got:
        assert envelope.rcpt_tos == ["b@example.org"]
        assert not any(line.lower().startswith(b"bcc") for line in envelope.content.split(b"\r\n\r\n")[0].splitlines())

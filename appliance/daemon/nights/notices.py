"""Notifies people that a night has ended: by webhook, ntfy or e-mail, as configured, from the ledger's records.

Invariants: no night waits for these threads; each channel has a timeout, and a failure is an event that names channel
and host, never the URL, a header or a secret. Secrets are read at send time from a file or a systemd credential, and
are in no record and no log. Redirects are not followed: a token only goes to its host.
"""

from __future__ import annotations

import http.client
import json
import os
import smtplib
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import IO
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from appliance.daemon.views import ledger_views as views
from appliance.daemon.views.cycle_views import step_figures
from appliance.ledger.audited import AuditedLedger
from appliance.nights.settings import EmailSettings, ReportSettings
from appliance.records.nights import Night
from appliance.reporting.as_text import as_figures, as_text
from appliance.reporting.night_report import night_report
from appliance.system.durable_file import expanded
from appliance.text.printable import printable

MOST_SECRET = 4096
SPARE_SECONDS = 2.0
"""Extra time for a channel to report its own timeout, in seconds."""
LONGEST_TEXT = 20_000
"""Maximum characters of a message."""


class NoticeError(Exception):
    """A notice about a night could not be sent; the text contains no secret."""


@dataclass(frozen=True)
class Notice:
    title: str
    text: str
    """Plain lines, escaped."""
    figures: Mapping[str, object] = field(default_factory=dict)
    """Figures for programs."""


class Notices:
    """Sends notices about nights in background threads, through the configured channels. `said` gets a sentence for
    each failed one."""

    def __init__(self, settings: ReportSettings, said: Callable[[str], object]) -> None:
        self._settings = settings
        self._said = said
        self._threads: list[threading.Thread] = []

    @property
    def ways(self) -> dict[str, Callable[[Notice], None]]:
        """Functions that send a notice, by the name of the configured channel."""
        settings = self._settings
        found: dict[str, Callable[[Notice], None]] = {}
        if settings.webhook:
            found["webhook"] = self._webhook
        if settings.ntfy:
            found["ntfy"] = self._ntfy
        if settings.email.host:
            found["e-mail"] = self._email
        return found

    def tell(self, notice: Callable[[], Notice], done: Callable[[], object] = lambda: None) -> None:
        """Builds a notice and sends it through every configured channel, in its own thread. Calls `done` afterwards."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=self._tell, args=(notice, done), name="notices", daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self, seconds: float = 5.0) -> None:
        """Waits up to `seconds` for each notice that is being sent."""
        for thread in self._threads:
            thread.join(seconds)

    def try_all(self, notice: Notice) -> dict[str, str]:
        """Sends a notice through all configured channels concurrently, and returns why each failed, empty on success. A
        server that answers byte by byte times out too."""
        late = f"it took longer than {self._settings.timeout:g} seconds"
        found = dict.fromkeys(self.ways, late)

        def send(name: str, way: Callable[[Notice], None]) -> None:
            found[name] = self._sent(way, notice)

        threads = [threading.Thread(target=send, args=one, name="notice", daemon=True) for one in self.ways.items()]
        for thread in threads:
            thread.start()
        end = time.monotonic() + self._settings.timeout + SPARE_SECONDS
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        return dict(found)

    def _tell(self, make: Callable[[], Notice], done: Callable[[], object]) -> None:
        try:
            if self.ways:
                notice = make()
                for name, failed in self.try_all(notice).items():
                    if failed:
                        self._said(f"the notice of the night could not be sent by {name}: {failed}")
            done()
        except Exception as error:  # noqa: BLE001 - the thread's outermost frame: a notice never fails a night
            self._said(f"the notice of the night could not be sent: {type(error).__name__}")

    def _sent(self, way: Callable[[Notice], None], notice: Notice) -> str:
        try:
            way(notice)
        except NoticeError as error:
            return printable(str(error), limit=300)
        except (OSError, http.client.HTTPException, smtplib.SMTPException, ValueError) as error:
            return type(error).__name__ + (f" ({error.errno})" if isinstance(error, OSError) and error.errno else "")
        return ""

    def _webhook(self, notice: Notice) -> None:
        content = {"title": notice.title, "text": notice.text[:LONGEST_TEXT], **notice.figures}
        headers = {"content-type": "application/json"}
        url, token = self._settings.webhook, self._settings.webhook_token
        self._post(url, json.dumps(content).encode(), headers, token)

    def _ntfy(self, notice: Notice) -> None:
        title = notice.title.encode("ascii", "replace").decode().replace("\n", " ")
        headers = {"title": title, "content-type": "text/plain; charset=utf-8"}
        self._post(self._settings.ntfy, notice.text[:3500].encode(), headers, self._settings.ntfy_token)

    def _post(self, url: str, body: bytes, headers: dict[str, str], token: str) -> None:
        if token:
            headers = {**headers, "authorization": f"Bearer {read_secret(token)}"}
        request = Request(url, data=body, headers=headers, method="POST")  # noqa: S310 - http and https, by the settings
        opener = build_opener(_NoRedirects, *([ProxyHandler({})] if token else []))
        host = urlsplit(url).hostname
        try:
            with opener.open(request, timeout=self._settings.timeout) as answer:
                answer.read(1)
        except HTTPError as error:
            error.close()
            raise NoticeError(f"{host} answered with status {error.code}") from None
        except OSError as error:
            reason = getattr(error, "reason", error)
            why = getattr(reason, "strerror", None) or type(reason).__name__
            raise NoticeError(f"{host} could not be reached: {why}") from None

    def _email(self, notice: Notice) -> None:
        settings = self._settings.email
        message = EmailMessage()
        message["Subject"] = notice.title.replace("\n", " ")
        message["From"] = settings.sender
        message["To"] = ", ".join(settings.to)
        message.set_content(notice.text[:LONGEST_TEXT])
        try:
            with self._mail_server(settings) as server:
                if settings.user:
                    server.login(settings.user, read_secret(settings.password))
                server.send_message(message)
        except smtplib.SMTPResponseException as error:
            raise NoticeError(f"{settings.host} answered with status {error.smtp_code}") from None
        except (OSError, smtplib.SMTPException) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            raise NoticeError(f"{settings.host} could not be used: {why}") from None

    def _mail_server(self, settings: EmailSettings) -> smtplib.SMTP:
        context = ssl.create_default_context()
        where = settings.host, settings.port
        if settings.security == "tls":
            return smtplib.SMTP_SSL(*where, timeout=self._settings.timeout, context=context)
        server = smtplib.SMTP(*where, timeout=self._settings.timeout)
        if settings.security == "starttls":
            server.starttls(context=context)
        return server


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: http.client.HTTPMessage, newurl: str
    ) -> None:
        return None


def read_secret(place: str, environ: Mapping[str, str] = os.environ) -> str:
    """Reads a secret from a file or the systemd credential of that name. Raises NoticeError without the secret."""
    if "/" in place:
        path = expanded(place)
    elif folder := environ.get("CREDENTIALS_DIRECTORY"):
        path = Path(folder) / place
    else:
        raise NoticeError(f"no such credential: {place}: name a file, or start the daemon by systemd with it")
    try:
        with path.open("rb") as file:
            content = file.read(MOST_SECRET + 1)
    except OSError as error:
        raise NoticeError(f"the secret in {path} cannot be read: {error.strerror}") from None
    try:
        secret = content.decode().strip()
    except UnicodeDecodeError:
        secret = ""
    if not secret or len(content) > MOST_SECRET or any(ord(character) < 32 for character in secret):
        raise NoticeError(f"{path} does not contain a one-line secret")
    return secret


def night_notice(ledger: AuditedLedger, night: Night) -> Notice:
    """Builds the notice about an ended night: the report of its cycle, or the reason why none ran."""
    title = printable(f"Assay: the night of {night.key} is {night.state.value}", limit=120)
    about = {"night": night.model_dump(mode="json")}
    cycle = ledger.cycle(night.cycle) if night.cycle else None
    if cycle is None:
        return Notice(title, printable(night.reason) + "\n", about)
    report = night_report(views.cycle_detail(ledger, cycle), step_figures(ledger, cycle))
    reason = f"{printable(night.reason)}\n\n" if night.reason else ""
    return Notice(title, reason + as_text(report), {**about, "report": as_figures(report).model_dump(mode="json")})

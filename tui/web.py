"""The terminal program in a browser on this machine: `assay tui --web`.

Invariants: the server listens on the loopback address alone. Everything lies below a path with a token, which is new
with every start; without it every request is refused. The token is in no cookie, since browsers send cookies to every
port of an address. Requests with another Host or Origin are refused, so neither DNS rebinding nor another page in the
browser can use the program; the page loads nothing from elsewhere and runs no foreign script. Each window runs its own
program, which ends with the window.

Not promised: anyone who can read this user's terminal or processes can read the token, too.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import shlex
import socket
import sys
from collections.abc import Sequence

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from textual_serve.server import Server

ADDRESS = "127.0.0.1"
TOKEN_BYTES = 32
FOREIGN = re.compile(r"<link\b[^>]*https?://(?!127\.0\.0\.1[:/])[^>]*>")
OWN_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
OWN_CLICK = re.compile(r'onClick="([^"]*)"')


def source_hash(script: str) -> str:
    """Returns the hash that names a script in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


class WebServer(Server):
    """Serves the program to web browsers, and starts `command` for each browser window."""

    def __init__(self, command: Sequence[str], port: int, token: str) -> None:
        super().__init__(shlex.join(command), host=ADDRESS, port=port, title="assay")
        self._token = token
        self._host = f"{ADDRESS}:{port}"
        self.public_url = f"http://{self._host}"

    @property
    def address(self) -> str:
        """URL to open in a browser, with the secret token."""
        return f"{self.public_url}/{self._token}/"

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard()])
        app.add_subapp(f"/{self._token}/", await super()._make_app())
        return app

    async def handle_index(self, request: web.Request) -> web.Response:
        """Serves the browser page without its font from elsewhere, and with a content security policy for scripts."""
        answer = await super().handle_index(request)
        assert isinstance(answer, web.Response)
        text = answer.text = FOREIGN.sub("", answer.text or "")
        answer.headers["content-security-policy"] = self._policy(
            [*map(source_hash, OWN_SCRIPT.findall(text)), "'unsafe-hashes'", *map(source_hash, OWN_CLICK.findall(text))]
        )
        return answer

    async def on_startup(self, app: web.Application) -> None:
        sys.stdout.write(f"open {self.address}\nCtrl-C stops it\n")
        sys.stdout.flush()

    def _guard(self) -> Middleware:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            why = self.refusal(request)
            if why:
                return web.Response(status=403, text=f"{why}\n", headers=self._headers)
            answer = await handler(request)
            if not answer.prepared:
                for name, value in self._headers.items():
                    answer.headers.setdefault(name, value)
            return answer

        return guard

    def refusal(self, request: web.Request) -> str:
        """Returns the reason for refusing a browser's request; empty to serve it."""
        if request.headers.get("host") != self._host:
            return f"wrong Host header: use {self._host}"
        origin = request.headers.get("origin")
        if (origin is None and request.path.endswith("/ws")) or (origin is not None and origin != self.public_url):
            return "request from another origin refused"
        shown = request.path.removeprefix("/").partition("/")[0]  # of OPTIONS and CONNECT it may be no path
        if not secrets.compare_digest(shown.encode(), self._token.encode()):
            return "missing token: open the address that `assay tui --web` printed"
        return ""

    def _policy(self, scripts: Sequence[str] = ()) -> str:
        """Returns the page's content security policy; `scripts` are allowed beside those served here."""
        more = "".join(f" {one}" for one in dict.fromkeys(scripts))
        return (
            f"default-src 'self'; script-src 'self' 'wasm-unsafe-eval'{more}; style-src 'self' 'unsafe-inline'; "
            f"img-src 'self' data:; connect-src 'self' ws://{self._host}; frame-ancestors 'none'; base-uri 'none'; "
            "form-action 'none'"
        )

    @property
    def _headers(self) -> dict[str, str]:
        return {
            "content-security-policy": self._policy(),
            "referrer-policy": "no-referrer",
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
        }


def serve(command: Sequence[str], port: int) -> int:
    """Serves the program to web browsers until Ctrl-C or SIGTERM; returns an exit code, 2 if the port is taken."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((ADDRESS, port))
        listening.listen()
    except OSError as error:
        sys.stderr.write(f"cannot listen on {ADDRESS}:{port}: {error.strerror}; --port 0 takes a free port\n")
        return 2
    server = WebServer(command, listening.getsockname()[1], secrets.token_urlsafe(TOKEN_BYTES))
    web.run_app(server._make_app(), sock=listening, print=None, access_log=None)
    return 0

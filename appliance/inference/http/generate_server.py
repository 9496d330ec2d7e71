"""Serves an engine by `/inference/v1/generate` on the loopback address.

Invariants: it never listens on another address; a request without the key is refused. The key file is readable by its
owner only. (A Unix socket would need no key, but clients such as the package verifiers accept only HTTP addresses.)
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import uvicorn
from torch import nn

from appliance.inference.engine import Engine, ModelError, ModelFiles, PushProof
from appliance.inference.engine_loop import EngineLoop
from appliance.inference.http.generate_api import GenerateApi
from appliance.inference.http.server import http_config

LOOPBACK = "127.0.0.1"
LEAST_KEY = 16


class _LoopbackServer(uvicorn.Server):
    """HTTP server that leaves signals to the owning process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class GenerateServer:
    """Context manager: serves an engine over HTTP in threads of its own, and closes the engine at the end."""

    def __init__(
        self, engine: Engine, *, model: str, most_tokens: int, key: str, ends: tuple[int, ...] = (), port: int = 0
    ) -> None:
        """Prepares to serve an engine over HTTP on this machine. `port` 0 is any free one; for the rest see
        `GenerateApi`. Raises ModelError for an invalid key or a port in use."""
        if len(key) < LEAST_KEY or not key.isascii() or not key.isprintable():
            raise ModelError(
                f"invalid key: it needs at least {LEAST_KEY} printable characters", hint="omit it to generate one"
            )
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((LOOPBACK, port))
        except OSError as error:
            self._socket.close()
            raise ModelError(
                f"cannot listen on port {port}: {error.strerror}", hint="name another port, or 0 for any"
            ) from error
        self.address = f"http://{LOOPBACK}:{self._socket.getsockname()[1]}/v1"
        """base_url for clients."""
        self._loop = EngineLoop(engine)
        api = GenerateApi(self._loop, model, most_tokens, key, ends)
        self._server = _LoopbackServer(http_config(api.app))
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="generate", daemon=True
        )

    @property
    def failure(self) -> Exception | None:
        """Error of a failed engine, or None."""
        return self._loop.failure

    @property
    def version(self) -> str:
        """Version of the serving weights; empty if a failed push left none."""
        return self._loop.version

    def push(self, weights: ModelFiles | nn.Module, version: str) -> PushProof:
        """Loads new weights into the served engine once running requests have ended; see `Engine.push`."""
        return self._loop.push(weights, version)

    def __enter__(self) -> GenerateServer:
        self._socket.listen(128)
        self._loop.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.should_exit = True
        self._loop.__exit__()
        self._thread.join()
        self._socket.close()


def read_key(path: Path) -> str:
    """Reads the API key from its file, creating it if missing. Raises ModelError if others can read it."""
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123
                file.write(secrets.token_urlsafe(32) + "\n")
        if path.stat().st_mode & 0o077:
            raise ModelError(f"key file {path} is readable by others", hint=f"run chmod 600 {path}")
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"the key in {path} cannot be read: {error}", hint="name another --key-file") from error

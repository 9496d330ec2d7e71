"""Serves an engine by `/inference/v1/generate` on the loopback address: token ids in; ids, log-probabilities, versions
out.

Invariants: it never listens on another address; a request without the key is refused. The key file is readable by its
owner only. (A Unix socket would need no key, but clients such as the package verifiers accept only HTTP addresses.)

It is vLLM's route (0.32), as far as an external trainer needs it; parameters that would silently change the sampled
distribution (top-p, top-k, penalties, stop strings) are refused. Invariants: a request is fully validated before the
engine sees it; every field is bounded; every refusal is an object `error` with a message and a status below 500; all
routes but `/health` require the key.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import uvicorn
from pydantic import BaseModel, ConfigDict, Field
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from torch import nn

from appliance.inference.engine import Engine, GenerationRequest, ModelError, ModelFiles, PushProof, Turn
from appliance.inference.engine_loop import AbortedError, EngineLoop
from appliance.inference.http.server import http_config
from common.bounded_models import FirstErrorModel, InvalidInputError, read_model
from common.errors import reading
from common.strict_json import Bounds, NotJsonError

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
    with reading(f"the key in {path}", ModelError, "name another --key-file"):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123
                file.write(secrets.token_urlsafe(32) + "\n")
        if path.stat().st_mode & 0o077:
            raise ModelError(f"key file {path} is readable by others", hint=f"run chmod 600 {path}")
        return path.read_text().strip()


MAX_TOKENS = 1 << 20
"""Maximum ids in a list; the engine's own limit is lower."""
BODY = Bounds(16 << 20, values=MAX_TOKENS + 10_000, containers=10_000)
MAX_UNDER_WAY = 4096
"""Maximum concurrent requests, including queued ones."""

TokenId = Annotated[int, Field(ge=0, lt=1 << 31, strict=True)]
Name = Annotated[str, Field(max_length=256)]


M = TypeVar("M", bound=BaseModel)


class _Message(FirstErrorModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SamplingParams(_Message):
    """vLLM's sampling parameters. Fields with one allowed value are sent by clients and must not change."""

    temperature: float = Field(1.0, ge=0, le=100, allow_inf_nan=False)
    max_tokens: int | None = Field(None, ge=1, le=MAX_TOKENS, strict=True)
    """Maximum new tokens; by default as many as fit."""
    stop_token_ids: list[TokenId] = Field([], max_length=64)
    seed: int | None = Field(None, ge=-(1 << 63), lt=1 << 63, strict=True)
    logprobs: int | None = Field(None, ge=0, le=1, strict=True)
    """Log-probabilities of sampled tokens are always returned, and no others."""
    n: Literal[1] = 1
    top_p: Literal[1] = 1
    top_k: Literal[-1, 0] = 0
    min_p: Literal[0] = 0
    presence_penalty: Literal[0] = 0
    frequency_penalty: Literal[0] = 0
    repetition_penalty: Literal[1] = 1
    stop: Annotated[list[str], Field(max_length=0)] | None = None
    min_tokens: Literal[0] = 0
    ignore_eos: bool = False
    skip_special_tokens: bool = False
    spaces_between_special_tokens: bool = True
    detokenize: bool = False
    routed_experts_prompt_start: int | None = Field(None, ge=0)


class GenerateRequest(_Message):
    token_ids: list[TokenId] = Field(min_length=1, max_length=MAX_TOKENS)
    sampling_params: SamplingParams = SamplingParams()
    model: Name | None = None
    request_id: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[\w.:-]+$")] | None = None
    cache_salt: Name | None = None
    priority: int = Field(0, ge=-(1 << 31), lt=1 << 31)
    stream: Literal[False] = False
    return_token_ids: bool = True


class AbortRequest(_Message):
    request_ids: list[Annotated[str, Field(max_length=128)]] = Field(min_length=1, max_length=MAX_UNDER_WAY)


class GenerateApi:
    def __init__(self, loop: EngineLoop, model: str, most_tokens: int, key: str, ends: tuple[int, ...]) -> None:
        """Creates the HTTP interface to an engine. `model` is the served name; `most_tokens` limits a conversation;
        `ends` are the end tokens of the model's files."""
        self._loop = loop
        self._model = model
        self._most = most_tokens
        self._ends = ends
        self._key = key.encode()
        self._under_way: dict[str, int] = {}
        """Loop numbers of running requests, by the callers' ids."""
        self.app = Starlette(
            routes=[
                Route("/health", self._health, methods=["GET"]),
                Route("/v1/models", self._known(self._models), methods=["GET"]),
                Route("/inference/v1/generate", self._known(self._generate), methods=["POST"]),
                Route("/inference/v1/abort_requests", self._known(self._abort), methods=["POST"]),
            ],
            exception_handlers={HTTPException: _refused},
        )

    def _known(self, handler: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            scheme, _, key = request.headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(key.strip().encode(), self._key):
                raise HTTPException(401, "missing or wrong key: send `Authorization: Bearer KEY`")
            return await handler(request)

        return answer

    async def _health(self, _: Request) -> Response:
        """Answers a health request: the HTTP status is the engine's health, as in vLLM."""
        return Response(status_code=503 if self._loop.failure else 200)

    async def _models(self, _: Request) -> Response:
        card = {"id": self._model, "object": "model", "created": 0, "owned_by": "assay", "root": self._model}
        card |= {"parent": None, "max_model_len": self._most, "weight_version": self._loop.version}
        return JSONResponse({"object": "list", "data": [card]})

    async def _generate(self, request: Request) -> Response:
        asked = await _read(request, GenerateRequest)
        if asked.model not in (None, self._model):
            raise HTTPException(404, f"unknown model {asked.model!r}: use {self._model!r}")
        name = asked.request_id or f"gen-{secrets.token_hex(8)}"
        if name in self._under_way:
            raise HTTPException(409, f"request {name} is already running")
        if len(self._under_way) >= MAX_UNDER_WAY:
            raise HTTPException(429, f"{MAX_UNDER_WAY} requests are running: wait for some to finish")
        number, future = self._loop.generate(self._request(asked))
        self._under_way[name] = number
        try:
            turn = await turn_or_abort(request, self._loop, number, asyncio.wrap_future(future))
        except AbortedError:
            return JSONResponse(_answer(name, None, ()))
        except ValueError as error:
            raise HTTPException(400, str(error)) from error
        except Exception as error:
            raise HTTPException(503, f"the engine cannot answer: {error}") from error
        finally:
            del self._under_way[name]
        return JSONResponse(_answer(name, turn, tuple(asked.sampling_params.stop_token_ids)))

    def _request(self, asked: GenerateRequest) -> GenerationRequest:
        how, prompt = asked.sampling_params, tuple(asked.token_ids)
        room = self._most - len(prompt)
        if room < 1 or (how.max_tokens or 1) > room:
            raise HTTPException(
                400,
                f"{len(prompt)} tokens and {how.max_tokens or 1} new ones are more than the maximum context length of "
                f"{self._most} tokens",
            )
        ends = () if how.ignore_eos else self._ends
        stops = tuple(dict.fromkeys((*how.stop_token_ids, *ends)))
        if not stops and not how.ignore_eos:
            raise HTTPException(
                400, "the model's files name no end token: set stop_token_ids, or ignore_eos to sample max_tokens"
            )
        stops = stops or (-1,)
        return GenerationRequest(
            id=0,
            prompt=prompt,
            stop=stops[0],
            other_stops=stops[1:],
            max_tokens=len(prompt) + (how.max_tokens or room),
            temperature=how.temperature,
            seed=secrets.randbits(62) if how.seed is None else how.seed,
        )

    async def _abort(self, request: Request) -> Response:
        asked = await _read(request, AbortRequest)
        for name in asked.request_ids:
            if name in self._under_way:
                self._loop.abort(self._under_way[name])
        return JSONResponse({})


async def turn_or_abort(request: Request, loop: EngineLoop, number: int, turn: asyncio.Future[Turn]) -> Turn:
    """Waits for the turn that the engine samples, and returns it; aborts it if the client disconnects."""
    left = asyncio.ensure_future(hung_up(request))
    try:
        await asyncio.wait((turn, left), return_when=asyncio.FIRST_COMPLETED)
        if not turn.done():
            loop.abort(number)
        return await turn
    finally:
        left.cancel()


async def hung_up(request: Request) -> None:
    """Waits until a client disconnects."""
    while not await request.is_disconnected():
        await asyncio.sleep(0.2)


async def _read(request: Request, shape: type[M]) -> M:
    parts, size = [], 0
    try:
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            if size > BODY.size:
                raise HTTPException(413, f"the body is longer than {BODY.size} bytes")
    except ClientDisconnect as error:
        raise HTTPException(400, "the body ended early") from error
    try:
        return read_model(shape, b"".join(parts), BODY)
    except NotJsonError as error:
        raise HTTPException(400, f"the body is unusable: {error}") from error
    except InvalidInputError as error:
        fault = error.fault
        hint = ""
        if fault.place[:1] == ("sampling_params",) and fault.kind in ("literal_error", "too_long"):
            hint = ": a truncated or reshaped distribution does not match the log-probabilities used in training"
        raise HTTPException(400, f"{fault.where or 'the body'}: {fault.what}{hint}") from error


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = "invalid_request_error" if error.status_code < 500 else "server_error"
    body = {"message": error.detail, "type": kind, "param": None, "code": error.status_code}
    return JSONResponse({"error": body}, status_code=error.status_code, headers=error.headers)


def _answer(name: str, turn: Turn | None, stops: tuple[int, ...]) -> dict[str, Any]:
    """Encodes a sampled turn as vLLM's API does; None is an aborted one, without tokens."""
    choice: dict[str, Any] = {"index": 0, "token_ids": [], "logprobs": {"content": []}, "finish_reason": "abort"}
    choice |= {"stop_reason": None, "weight_versions": []}
    if turn is not None:
        choice["token_ids"] = list(turn.ids)
        choice["logprobs"]["content"] = [
            {"token": f"token_id:{token}", "token_id": token, "logprob": logprob, "bytes": None, "top_logprobs": []}
            for token, logprob in zip(turn.ids, turn.logprobs, strict=True)
        ]
        choice["finish_reason"] = turn.ended
        choice["stop_reason"] = turn.ids[-1] if turn.ids[-1] in stops else None
        choice["weight_versions"] = [
            {"version": span.version, "start": span.start, "end": span.end} for span in turn.weights
        ]
    return {"request_id": name, "choices": [choice], "prompt_logprobs": None}

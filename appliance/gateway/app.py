"""Routes of the gateway: models, answers in three formats, a count of tokens, and a verdict on a session's last answer.

Invariants: a request is validated completely before it reaches the engine; a refusal has the shape of its route; an
answer without a verdict says so. For a token without consent no session is stored and nothing is written to disk; its
prompts stay in the engine's cache like everybody's.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
import traceback
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Protocol

import structlog
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from appliance.gateway.anthropic_messages import MESSAGES_FORMAT, MessagesRequest
from appliance.gateway.champion import NAME, ServedModel
from appliance.gateway.chat_request import ChatRequest, SentMessage, VerdictRequest
from appliance.gateway.conversation import (
    ConversationError,
    WrittenPrompt,
    append_turn,
    history_of,
    read_turn,
    require_tools,
    write,
)
from appliance.gateway.draw_rules import CHANGED, changes, logprobs_of, require_form, rule_of, unbound
from appliance.gateway.keeping import CheckedAnswer, SessionKeeper
from appliance.gateway.message_tree import Continuation, OpenSessions
from appliance.gateway.openai_responses import RESPONSES_FORMAT
from appliance.gateway.replies import (
    CHAT,
    MESSAGES,
    TOO_LONG,
    AnswerChecker,
    AnswerChecks,
    ChatReply,
    GatewayError,
    StreamHead,
    WireFormat,
    read_body,
    require_check,
)
from appliance.gateway.sessions import KeptSessionError
from appliance.gateway.tokens import GatewayToken
from appliance.inference.engine import GenerationRequest, Turn
from appliance.inference.engine_loop import EngineLoop
from appliance.inference.http.generate_server import hung_up
from appliance.system.slow_readers import STALL_SECONDS, TimedStream, answer_in_time

log = structlog.get_logger("assay")
BEAT_SECONDS = 5.0
"""Interval between keep-alive comments on a stream without an answer yet, in seconds."""
MOST_UNDER_WAY = 64
CHARS_PER_TOKEN = 16
"""Characters per token of the context beyond which a conversation is refused before it is encoded."""
MOST_ATTEMPTS = 64
"""Newest requests whose answer a retry gets again."""
RETRY = "x-stainless-retry-count"
"""Header of OpenAI's clients: how often this request was sent before."""
UNREAD = "its stream was not read to the end"
"""Reason why a turn is not trained on."""
LEAST_DIGITS = 12
"""Shortest digest prefix accepted as a model name."""

Answers = Callable[[Request], Awaitable[Response]]


class HasModel(Protocol):
    """Interface of `ServedChampion` that the routes use."""

    @property
    def model(self) -> ServedModel | None: ...

    @property
    def problem(self) -> str: ...


@dataclass(frozen=True)
class PreparedChat:
    """A validated chat request with its rendered prompt, ready for the engine."""

    format: WireFormat
    request: ChatRequest
    token: GatewayToken
    served: ServedModel
    prompt: WrittenPrompt
    generation: GenerationRequest
    name: str
    created: int
    attempt: str
    """Digest of the request; empty for a client that does not count its retries."""


class GatewayApi:
    def __init__(
        self,
        loop: EngineLoop,
        champion: HasModel,
        most_tokens: int,
        checker: AnswerChecker,
        keeper: SessionKeeper,
        temperature: float = 1.0,
    ) -> None:
        """Creates the gateway's HTTP application. `most_tokens` limits a conversation; `temperature` is training's."""
        self._loop, self._champion, self._most = loop, champion, most_tokens
        self._checks, self._keeper, self._temperature = AnswerChecks(checker), keeper, temperature
        self._live = OpenSessions()
        self._attempts: OrderedDict[str, asyncio.Future[ChatReply]] = OrderedDict()
        self._under_way = 0
        routes: list[tuple[str, str, Answers]] = [
            ("GET", "/v1/models", self._models),
            ("GET", "/v1/models/{name}", self._model),
            ("POST", "/v1/chat/completions", partial(self._answer, CHAT)),
            ("POST", "/v1/responses", partial(self._answer, RESPONSES_FORMAT)),
            ("POST", MESSAGES, partial(self._answer, MESSAGES_FORMAT)),
            ("POST", f"{MESSAGES}/count_tokens", self._count),
            ("POST", "/v1/assay/sessions/{id}/verdict", self._verdict),
        ]
        self._routes = Starlette(
            routes=[Route(path, handler, methods=[method]) for method, path, handler in routes],
            exception_handlers={GatewayError: _in_shape, HTTPException: _no_route, Exception: _unforeseen},
        )
        self._routes.router.redirect_slashes = False

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request to the gateway, as an ASGI application; status 429 while `MOST_UNDER_WAY` requests are
        active. A request counts as active until its answer, possibly streamed, has ended."""
        if self._under_way >= MOST_UNDER_WAY:
            full = GatewayError(429, f"{MOST_UNDER_WAY} requests are active: retry later", retry=2)
            await full.response(scope["path"])(scope, receive, send)
            return
        self._under_way += 1
        unforeseen: dict[str, str] = {}
        try:
            await answer_in_time(self._routes, scope, receive, send, STALL_SECONDS)
        except Exception as error:  # noqa: BLE001 - a traceback may quote what was asked, and a log is for others
            unforeseen = {"kind": type(error).__name__, "at": _place(error)}
        finally:
            self._under_way -= 1
        if unforeseen:  # outside the handler, so that a failure here does not chain that traceback
            log.error("unexpected error in the gateway", **unforeseen)

    async def _models(self, _: Request) -> Response:
        served = self._champion.model
        cards = [] if served is None else [self._card(served)]
        ends = {"first_id": NAME if cards else None, "last_id": NAME if cards else None, "has_more": False}
        return JSONResponse({"object": "list", "data": cards, "models": cards, **ends})

    async def _model(self, request: Request) -> Response:
        return JSONResponse(self._card(self._served(request.path_params["name"])))

    def _card(self, served: ServedModel) -> dict[str, Any]:
        card = {"id": NAME, "object": "model", "created": 0, "owned_by": "assay"}
        card |= {"type": "model", "display_name": NAME, "created_at": "1970-01-01T00:00:00Z"}
        return card | {"max_model_len": self._most, "weights": served.version}

    def _served(self, name: str) -> ServedModel:
        served = self._champion.model
        if served is None:
            raise GatewayError(503, self._champion.problem, code="no_model", retry=10)
        if name != NAME and not (len(name) >= LEAST_DIGITS and served.version.startswith(name)):
            said = f"unknown model {name[:80]!r}: use {NAME!r}"
            raise GatewayError(404, said, code="model_not_found", param="model")
        return served

    async def _count(self, request: Request) -> Response:
        asked = await read_body(request, MessagesRequest)
        token: GatewayToken = request.scope["token"]
        served = self._served(asked.model)
        prompt = await run_in_threadpool(self._written, asked, token, served, Continuation())
        return JSONResponse({"input_tokens": len(prompt.ids)})

    async def _answer(self, form: WireFormat, request: Request) -> Response:
        asked = await read_body(request, form.request)
        token: GatewayToken = request.scope["token"]
        count = request.headers.get(RETRY, "")
        attempt = await run_in_threadpool(_digest, asked, token) if count else ""
        if count not in ("", "0") and (again := await self._earlier(attempt)) is not None:
            if not asked.stream:
                return JSONResponse(form.whole(again, asked))
            head = StreamHead(again.id, again.created, again.model, again.prompt_tokens)
            return _streamed(chain([form.begin(head)], form.rest(again, asked)))
        prepared = await run_in_threadpool(self._prepared, form, asked, token, attempt)
        if asked.stream:
            return _streamed(self._stream(prepared))
        numbers, waiting = self._begun(prepared)
        reply = asyncio.ensure_future(self._reply(prepared, waiting))
        left = asyncio.ensure_future(hung_up(request))
        try:
            await asyncio.wait((reply, left), return_when=asyncio.FIRST_COMPLETED)
            if not reply.done():
                self._abort(numbers)
            return JSONResponse(form.whole(await reply, asked))
        finally:
            left.cancel()
            self._abort(numbers)

    def _begun(self, asked: PreparedChat) -> tuple[list[int], list[asyncio.Future[Turn]]]:
        """Asks the engine for the answers to a request, each with its own seed; returns their numbers there."""
        seeds = range(asked.generation.seed, asked.generation.seed + asked.request.n)
        begun = [self._loop.generate(replace(asked.generation, seed=seed)) for seed in seeds]
        return [number for number, _ in begun], [asyncio.wrap_future(future) for _, future in begun]

    def _abort(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._loop.abort(number)  # no-op once it has ended

    async def _earlier(self, attempt: str) -> ChatReply | None:
        """Returns the answer to the same request sent before, once it has one; None if it never gets one."""
        if (earlier := self._attempts.get(attempt)) is None:
            return None
        await asyncio.wait((earlier,))
        return None if earlier.cancelled() else earlier.result()

    def _written(
        self, request: ChatRequest, token: GatewayToken, served: ServedModel, match: Continuation | None = None
    ) -> WrittenPrompt:
        """Renders a request's prompt, as `match` continues a session; None for the open session that matches. Raises
        GatewayError."""
        if (chars := request.chars) > (most := CHARS_PER_TOKEN * self._most):
            said = (
                f"this conversation has {chars} characters, and a context of {self._most} tokens takes at most {most}"
            )
            tokens = (chars // CHARS_PER_TOKEN, self._most)
            raise GatewayError(400, said, code=TOO_LONG, param=request.own_names("messages"), tokens=tokens)
        history = history_of(token.sha256, request.messages)
        try:
            require_tools(request.offered, served.renderer, tuple(served.marks.values()))
            if match is None:
                match = Continuation()
                if token.consent:
                    match = self._live.find(history, served.version, alone=request.assay.check is not None)
            return write(request, history, match, served.renderer, self._temperature)
        except ConversationError as error:
            raise GatewayError(400, f"{error}: {error.hint}", param=request.own_names("messages")) from error

    def _prepared(self, form: WireFormat, request: ChatRequest, token: GatewayToken, attempt: str) -> PreparedChat:
        """Validates a request and renders its prompt, continuing an open session if one matches. Raises
        GatewayError."""
        served = self._served(request.model)
        if request.assay.check is not None:
            require_check(request.assay.check)
        prompt = self._written(request, token, served)
        room = self._most - len(prompt.ids)
        wanted = request.max_completion_tokens or request.max_tokens
        if room < 1:
            said = f"this conversation has {len(prompt.ids)} tokens, and the model's context is {self._most}"
            tokens = (len(prompt.ids), self._most)
            raise GatewayError(400, said, code=TOO_LONG, param=request.own_names("messages"), tokens=tokens)
        rule = rule_of(request, served, prompt.ids, restricts=self._loop.restricts)
        if changes(rule):
            prompt = replace(prompt, why=prompt.why or CHANGED)
        generation = GenerationRequest(
            id=0,
            prompt=prompt.ids,
            stop=served.renderer.stop,
            other_stops=served.renderer.other_stops,
            max_tokens=len(prompt.ids) + min(wanted or room, room),
            temperature=1.0 if request.temperature is None else request.temperature,
            seed=secrets.randbits(62) if request.seed is None else request.seed,
            rule=rule,
        )
        name = f"{form.id}{secrets.token_hex(12)}"
        return PreparedChat(form, request, token, served, prompt, generation, name, int(time.time()), attempt)

    async def _stream(self, asked: PreparedChat) -> AsyncIterator[bytes]:
        """Streams the answer to a request. Text or call is known only at the end of a turn; until then the stream
        has only comments. The engine gets the request when somebody begins to read."""
        form = asked.format
        head = StreamHead(asked.name, asked.created, asked.request.model, len(asked.prompt.ids))
        numbers, waiting = self._begun(asked)
        reply = asyncio.ensure_future(self._reply(asked, waiting))
        read = False
        try:
            yield form.begin(head)
            while not (await asyncio.wait((reply,), timeout=BEAT_SECONDS))[0]:
                yield form.beat
            chunks = form.rest(await reply, asked.request)
            last = next(chunks)
            for chunk in chunks:
                yield last
                last = chunk
            read = True
            yield last
        except GatewayError as error:
            yield form.failed(error, head)
        except Exception as error:
            yield form.failed(_nobody_foresaw(error), head)
            raise
        finally:
            self._abort(numbers)
            reply.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await reply
            if not read and not reply.cancelled() and reply.exception() is None:
                await run_in_threadpool(self._set_aside, reply.result())

    def _set_aside(self, reply: ChatReply) -> None:
        """Notes that the client has not read all of an answer: it may ask again, and go on from another."""
        with _told():
            for one in (reply, *reply.others):
                if one.session is not None:
                    self._live.set_aside(one.session, one.node, UNREAD)
                    self._keeper.set_aside(one.session, one.node, UNREAD)

    async def _reply(self, asked: PreparedChat, waiting: Sequence[Awaitable[Turn]]) -> ChatReply:
        attempt = asyncio.get_running_loop().create_future()
        if asked.attempt:
            self._attempts[asked.attempt] = attempt
            while len(self._attempts) > MOST_ATTEMPTS:
                self._attempts.popitem(last=False)
        try:
            first, *others = await asyncio.gather(*(self._answered(asked, one) for one in waiting))
            reply = replace(first, others=tuple(others))
            attempt.set_result(reply)
        finally:
            attempt.cancel()  # no-op once it has a result
        return reply

    async def _answered(self, asked: PreparedChat, waiting: Awaitable[Turn]) -> ChatReply:
        try:
            turn = await waiting
        except ValueError as error:
            raise GatewayError(400, str(error)) from error
        except Exception as error:
            raise GatewayError(503, f"the engine cannot answer: {str(error)[:300]}", retry=5) from error
        served, request = asked.served, asked.request
        if any(span.version != served.version for span in turn.weights):
            raise GatewayError(503, "another model came into service: retry", retry=1)
        read = await run_in_threadpool(read_turn, turn, asked.prompt, served.renderer, request)
        text, calls, complete = read.text, read.calls, turn.ended == "stop"
        cuts = [(at, stop) for stop in request.stop if (at := text.find(stop)) >= 0]
        text, calls, complete = (text[: min(cuts)[0]], (), True) if cuts else (text, calls, complete)
        if complete and not cuts:
            require_form(request, asked.generation.rule, text, called=bool(calls))
        checked = None
        if request.assay.check is not None and not calls:
            checked = await self._checks.check(request.assay.check, text, complete=complete)
        said = None if calls and not text else text
        message = SentMessage(role="assistant", content=said, tool_calls=list(calls) or None)
        less = bool(cuts) or not read.whole
        session, node = None, -1
        if asked.token.consent:
            session, node = await self._kept(asked, turn, message, checked, cut=less)
        ended: Literal["stop", "length", "tool_calls"] = "stop" if complete else "length"
        return ChatReply(
            id=asked.name,
            created=asked.created,
            model=request.model,
            version=served.version,
            text=text,
            calls=calls,
            thoughts=read.thoughts,
            ended="tool_calls" if calls else ended,
            prompt_tokens=len(asked.prompt.ids),
            tokens=len(turn.ids),
            session=session,
            node=node,
            unused=(*request.unused, *unbound(request, asked.generation.rule)),
            logprobs=tuple(logprobs_of(turn, served.renderer)) if request.logprobs else None,
            cut=min(cuts)[1] if cuts else None,
            verdict=None if checked is None else checked.verdict,
        )

    async def _kept(
        self, asked: PreparedChat, turn: Turn, message: SentMessage, checked: CheckedAnswer | None, *, cut: bool
    ) -> tuple[str | None, int]:
        """Stores the answered conversation, and returns the id of its session, None if it could not be stored or was
        deleted, and the turn there. After a `cut` the client has less of the turn than its tokens."""
        request, served, whole = asked.request, asked.served, turn.ended == "stop" and not cut
        append = partial(append_turn, version=served.version, created=self._keeper.now(), whole=whole)
        tree, added = await run_in_threadpool(append, *(self._live, request, asked.prompt, turn, message))
        kept = False
        with _told():  # a full disk must not lose the answer
            names = tuple(one.name for one in request.offered)
            keep = partial(self._keeper.keep, complete=turn.ended == "stop")
            said = [*request.messages, message]
            kept = await run_in_threadpool(
                keep, *(asked.token.name, tree, added, said, served.renderer, names, checked)
            )
        if tree.recorded and not kept:
            self._live.forget(tree)
        return tree.id if kept else None, added.node

    async def _verdict(self, request: Request) -> Response:
        token: GatewayToken = request.scope["token"]
        name = str(request.path_params["id"])
        try:
            kept = await run_in_threadpool(self._keeper.files.get, name)
        except KeptSessionError as error:
            raise GatewayError(404, str(error), code="no_session") from error
        # A later token of the same name has another owner, and one without consent adds nothing.
        if kept.token != token.name or kept.created < token.created or not token.consent:
            raise GatewayError(404, f"no such session: {name!r}", code="no_session")
        asked = await read_body(request, VerdictRequest)
        await run_in_threadpool(require_check, asked.check)
        if not kept.answer or kept.redacted:
            why = (
                f"it matches rule {kept.rule} of gateway.redact" if kept.redacted else "its last turn is not an answer"
            )
            raise GatewayError(409, f"session {kept.id} cannot be checked: {why}", code="no_answer")
        checked = await self._checks.check(asked.check, kept.answer, complete=kept.complete)
        try:
            judged = await run_in_threadpool(self._keeper.judge, kept, checked)
        except KeptSessionError as error:
            raise GatewayError(404, f"session {kept.id} was deleted meanwhile", code="no_session") from error
        if not judged:
            said = f"session {kept.id} continued while its answer was checked: request a verdict on the newest answer"
            raise GatewayError(409, said, code="no_answer")
        return JSONResponse({"session": kept.id, "verdict": checked.verdict.model_dump(mode="json")})


@contextmanager
def _told() -> Iterator[None]:
    """Logs, inside the block, why a session could not be written, and swallows that error."""
    try:
        yield
    except (OSError, KeptSessionError) as error:
        log.warning("a session was not kept", problem=str(error)[:300], hint=getattr(error, "hint", ""))


def _digest(asked: ChatRequest, token: GatewayToken) -> str:
    return hashlib.sha256(f"{token.sha256} {asked.model_dump_json()}".encode()).hexdigest()


def _streamed(parts: AsyncIterator[bytes] | Iterator[bytes]) -> TimedStream:
    return TimedStream(parts, media_type="text/event-stream", headers={"cache-control": "no-store"})


async def _in_shape(request: Request, error: Exception) -> Response:
    assert isinstance(error, GatewayError)
    return error.response(request.url.path)


async def _no_route(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    path = request.url.path
    return GatewayError(status, f"no such route: {request.method} {path[:200]}").response(path)


async def _unforeseen(request: Request, error: Exception) -> Response:
    return _nobody_foresaw(error).response(request.url.path)


def _nobody_foresaw(error: Exception) -> GatewayError:
    return GatewayError(500, f"unexpected error in the gateway: {type(error).__name__}")


def _place(error: Exception) -> str:
    """Returns file and line where an error was raised, without any of its data."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""

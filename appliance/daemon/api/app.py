"""The control API: requests of clients to the core, as JSON over HTTP on a Unix socket.

Invariants: every response is JSON except `/metrics` and the event stream, every error is a `Failure` with message, hint
and exit code; a request is fully validated before anything happens; handlers run outside the event loop, so a slow one
delays nobody. Every endpoint of `appliance.client.api_client` has exactly one handler.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from pydantic import BaseModel, TypeAdapter
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from appliance.client.api_client import ApiClient
from appliance.client.connection import Failure
from appliance.client.endpoints import Endpoint, endpoints_of
from appliance.daemon.api.event_stream import EventStream
from appliance.daemon.api.handlers import BODY, LARGER_BODIES, WAKING, Answer, Handler, handlers
from appliance.daemon.api.metrics import CONTENT_TYPE
from appliance.daemon.api.requests import arguments, document
from appliance.daemon.coordination.core import Core
from appliance.errors import exit_code
from common.strict_json import Bounds

HTTP_STATUS = {2: 400, 4: 409, 5: 500}
"""HTTP status by the exit code that a command then returns."""

Aliases = TypeAdapter(dict[str, str | None])


def make_app(
    core: Core, *, wake: Callable[[], None], next_cycle: Callable[[], str | None], stop: Callable[[], None]
) -> Starlette:
    """Builds the app. `wake` is called when there may be new work, `stop` when a client shuts the daemon down."""
    endpoints = endpoints_of(ApiClient)
    stream = EventStream(core.ledger)
    described = cache(lambda: json.dumps(document(endpoints.values())))
    routes = [Route("/v1/openapi.json", partial(_described, described), methods=["GET"])]
    routes += [Route(one.path, stream.endpoint, methods=["GET"]) for one in endpoints.values() if one.streams]
    for endpoint, handler in bound(endpoints, handlers(core, next_cycle, stop)):
        known = _waking(handler, wake) if endpoint.name in WAKING else handler
        bounds = LARGER_BODIES.get(endpoint.name, BODY)
        routes.append(Route(endpoint.path, _endpoint(endpoint, known, bounds), methods=[endpoint.method]))
    app = Starlette(routes=routes, exception_handlers={HTTPException: _no_such_route, Exception: _unforeseen})
    app.router.redirect_slashes = False
    return app


def bound(endpoints: Mapping[str, Endpoint], known: Mapping[str, Handler]) -> list[tuple[Endpoint, Handler]]:
    """Pairs endpoints and handlers. Raises TypeError for a missing or surplus handler, or one with other parameters."""
    answered = {name for name, one in endpoints.items() if not one.streams}
    if unmatched := (answered ^ known.keys()) | ((WAKING | LARGER_BODIES.keys()) - answered):
        raise TypeError(f"not both an endpoint and a handler: {', '.join(sorted(unmatched))}")
    for name in answered:
        inspect.signature(known[name]).bind(*endpoints[name].parameters)
    return [(endpoints[name], handler) for name, handler in known.items()]


def _waking(handler: Handler, wake: Callable[[], None]) -> Handler:
    def handle(*given: object) -> Answer:
        answer = handler(*given)
        wake()
        return answer

    return handle


async def _described(text: Callable[[], str], _: Request) -> Response:
    return Response(await run_in_threadpool(text), media_type="application/json")


def _endpoint(endpoint: Endpoint, handler: Handler, bounds: Bounds) -> Callable[[Request], object]:
    async def answer(request: Request) -> Response:
        body = bytearray()
        announced = request.headers.get("content-length", "")
        if announced.isdigit() and int(announced) > bounds.size:
            return _json(_too_large(bounds.size), 413)
        async for part in request.stream():
            body += part
            if len(body) > bounds.size:
                return _json(_too_large(bounds.size), 413)
        return await run_in_threadpool(
            _answer, endpoint, handler, request.path_params, request.query_params, bytes(body), bounds
        )

    return answer


def _too_large(most: int) -> Failure:
    return Failure(message=f"the request is larger than {most} bytes", hint="send less", exit_code=2)


def _answer(
    endpoint: Endpoint, handler: Handler, path: Mapping[str, str], query: Mapping[str, str], body: bytes, bounds: Bounds
) -> Response:
    try:
        answer = handler(*arguments(endpoint, path, query, body, bounds))
        return Response(answer, media_type=CONTENT_TYPE) if isinstance(answer, str) else _json(answer, 200)
    except Exception as error:
        hint = getattr(error, "hint", None)
        if not isinstance(hint, str):
            raise  # unforeseen
        failure = Failure(
            message=str(error), hint=hint, exit_code=int(exit_code(error)), refusal=getattr(error, "refusal", None)
        )
        return _json(failure, HTTP_STATUS.get(failure.exit_code, 500))


async def _no_such_route(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    failure = Failure(
        message=f"no such route: {request.method} {request.url.path}",
        hint="see GET /v1/openapi.json, or Control API in docs/operate.md, for the routes",
        exit_code=2,
    )
    return _json(failure, status)


async def _unforeseen(request: Request, error: Exception) -> Response:
    """Reports an unforeseen error to the client; the traceback goes to the daemon's log."""
    failure = Failure(
        message=f"unexpected error in the daemon: {type(error).__name__}",
        hint="see its log; the request may not have taken effect",
        exit_code=5,
    )
    return _json(failure, 500)


def _json(answer: BaseModel | Sequence[BaseModel] | Mapping[str, str | None], status: int) -> Response:
    if isinstance(answer, BaseModel):
        content = answer.model_dump_json()
    elif isinstance(answer, Mapping):
        content = Aliases.dump_json(dict(answer)).decode()
    else:
        content = "[" + ",".join(item.model_dump_json() for item in answer) + "]"
    return Response(content, status_code=status, media_type="application/json")

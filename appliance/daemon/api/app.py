"""The control API: requests of clients to the core, as JSON over HTTP on a Unix socket.

Invariants: every response is JSON except `/metrics` and the event stream, every error is a `Failure` with message, hint
and exit code; a request is fully validated before anything happens; handlers run outside the event loop, so a slow one
delays nobody. Each subject has a module of routes and a line in `api_routes`.
"""

from __future__ import annotations

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

from appliance.client.connection import Failure
from appliance.daemon.api.event_stream import STREAM, EventStream
from appliance.daemon.api.metrics import CONTENT_TYPE
from appliance.daemon.api.openapi import document
from appliance.daemon.api.requests import ApiRequest, ApiRoute, Handler, MetricsText
from appliance.daemon.api.routes_curriculum import curriculum_routes
from appliance.daemon.api.routes_cycles import cycle_routes
from appliance.daemon.api.routes_gateway import gateway_routes
from appliance.daemon.api.routes_governance import governance_routes
from appliance.daemon.api.routes_jobs import job_routes
from appliance.daemon.api.routes_models import model_routes
from appliance.daemon.api.routes_nights import night_routes
from appliance.daemon.api.routes_screen import screen_routes
from appliance.daemon.api.routes_service import service_routes
from appliance.daemon.coordination.core import Core
from appliance.errors import exit_code

HTTP_STATUS = {2: 400, 4: 409, 5: 500}
"""HTTP status by the exit code that a command then returns."""
WAKING = (
    *("/v1/cycles", "/v1/trainings", "/v1/jobs", "/v1/jobs/{id}/retry"),
    *("/v1/cycles/{id}/resume", "/v1/jobs/{id}/resume"),
    *("/v1/models/{digest}/approve", "/v1/models/{digest}/evaluate"),
    *("/v1/schedule/pause", "/v1/schedule/resume"),
)
"""POST routes that may create work."""

Aliases = TypeAdapter(dict[str, str | None])


def api_routes(core: Core, next_cycle: Callable[[], str | None], stop: Callable[[], None]) -> list[ApiRoute]:
    """Returns all routes except the event stream and the OpenAPI document."""
    return [
        *service_routes(core, next_cycle, stop),
        *cycle_routes(core),
        *night_routes(core),
        *model_routes(core),
        *governance_routes(core),
        *job_routes(core),
        *curriculum_routes(core),
        *gateway_routes(core),
        *screen_routes(core),
    ]


def make_app(
    core: Core, *, wake: Callable[[], None], next_cycle: Callable[[], str | None], stop: Callable[[], None]
) -> Starlette:
    """Builds the app. `wake` is called when there may be new work, `stop` when a client shuts the daemon down."""
    listed = api_routes(core, next_cycle, stop)
    stream = EventStream(core.ledger)
    described = cache(lambda: json.dumps(document([*listed, STREAM])))
    routes = [
        Route("/v1/openapi.json", partial(_described, described), methods=["GET"]),
        Route(STREAM.path, stream.endpoint, methods=["GET"]),
    ]
    for route in listed:
        wakes = route.method == "POST" and route.path in WAKING
        handler = _waking(_handler(route), wake) if wakes else _handler(route)
        routes.append(Route(route.path, _endpoint(handler, route.most), methods=[route.method]))
    app = Starlette(routes=routes, exception_handlers={HTTPException: _no_such_route, Exception: _unforeseen})
    app.router.redirect_slashes = False
    return app


def _handler(route: ApiRoute) -> Handler:
    def handle(asked: ApiRequest) -> object:
        asked.require_known(route.asked_with)
        return route.handler(asked)

    return handle  # type: ignore[return-value]


def _waking(handler: Handler, wake: Callable[[], None]) -> Handler:
    def handle(asked: ApiRequest) -> object:
        answer = handler(asked)
        wake()
        return answer

    return handle  # type: ignore[return-value]


async def _described(text: Callable[[], str], _: Request) -> Response:
    return Response(await run_in_threadpool(text), media_type="application/json")


def _endpoint(handler: Handler, most: int) -> Callable[[Request], object]:
    async def endpoint(request: Request) -> Response:
        body = bytearray()
        announced = request.headers.get("content-length", "")
        if announced.isdigit() and int(announced) > most:
            return _json(_too_large(most), 413)
        async for part in request.stream():
            body += part
            if len(body) > most:
                return _json(_too_large(most), 413)
        asked = ApiRequest(request.path_params, request.query_params, bytes(body))
        return await run_in_threadpool(_answer, handler, asked)

    return endpoint


def _too_large(most: int) -> Failure:
    return Failure(message=f"the request is larger than {most} bytes", hint="send less", exit_code=2)


def _answer(handler: Handler, asked: ApiRequest) -> Response:
    try:
        answer = handler(asked)
        if isinstance(answer, MetricsText):
            return Response(answer.text, media_type=CONTENT_TYPE)
        return _json(answer, 200)
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

"""The control API: what clients may ask of the core, as JSON over HTTP on a Unix socket.

What always holds: every answer is JSON, every error is a `Failure` with a message, a hint and an exit code; a request
is validated whole before anything happens; handlers run outside the event loop, so a slow one delays nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from appliance.client.messages import (
    Failure,
    JobDetail,
    Judgement,
    KeyChange,
    MeaningWord,
    PolicyChange,
    PolicyText,
    Rollback,
    StartCycle,
    SubmitJob,
)
from appliance.daemon import hindsight, views
from appliance.daemon.core import Core
from appliance.daemon.errors import NotThereError, RequestError
from appliance.daemon.failures import failure_of, http_status
from appliance.places import parse_policy
from appliance.records import MAX_JOB_FILE_BYTES

MAX_BODY_BYTES = 1_000_000
LARGE = {"/v1/jobs": 8 << 20, "/v1/files": MAX_JOB_FILE_BYTES}
"""Routes that take more: a spec with its tests or its sources, a file of a job."""
MAX_LIMIT = 1000

M = TypeVar("M", bound=BaseModel)
Aliases = TypeAdapter(dict[str, str | None])
Answer = BaseModel | Sequence[BaseModel] | Mapping[str, str | None]


class Asked:
    """One request, read whole: path parameters, query, body."""

    def __init__(self, path: Mapping[str, str], query: Mapping[str, str], body: bytes) -> None:
        self.path = path
        self.content = body
        self._query = query

    def text(self, name: str) -> str | None:
        return self._query.get(name)

    def needed(self, name: str) -> str:
        value = self._query.get(name)
        if not value:
            raise RequestError(f"the query lacks {name}", hint=f"add ?{name}=")
        return value

    def number(self, name: str, default: int, *, high: int) -> int:
        """A whole number from 0 to `high`."""
        text = self._query.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) <= high):
            raise RequestError(f"{name} is no whole number from 0 to {high}", hint=f"write {name}={default}")
        return int(text)

    def body(self, shape: type[M]) -> M:
        try:
            return shape.model_validate_json(self.content or b"{}")
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in fault["loc"]) or "the body"
            raise RequestError(f"{where}: {fault['msg']}", hint=f"send a {shape.__name__}") from error


class Routes:
    """One method for each route; each returns what is sent as JSON."""

    def __init__(
        self, core: Core, *, wake: Callable[[], None], next_cycle: Callable[[], str | None], stop: Callable[[], None]
    ) -> None:
        self._core = core
        self._wake = wake
        self._next_cycle = next_cycle
        self._stop = stop

    def status(self, asked: Asked) -> Answer:
        return self._core.status(self._next_cycle())

    def cycles(self, asked: Asked) -> Answer:
        return self._core.ledger.cycles(asked.number("limit", 20, high=MAX_LIMIT))

    def cycle(self, asked: Asked) -> Answer:
        cycle = self._core.ledger.cycle(asked.path["id"])
        if cycle is None:
            raise NotThereError(f"there is no cycle {asked.path['id']!r}", hint="`assay cycle ls` lists them")
        return views.cycle_detail(self._core.ledger, cycle)

    def start_cycle(self, asked: Asked) -> Answer:
        wanted = asked.body(StartCycle)
        cycle = self._core.start_cycle(wanted.kind, wanted.seed)
        self._wake()
        return cycle

    def rollouts(self, asked: Asked) -> Answer:
        limit = asked.number("limit", 50, high=MAX_LIMIT)
        return self._core.questions.rollout_views(cycle=asked.text("cycle"), job=asked.text("job"), limit=limit)

    def checkpoints(self, asked: Asked) -> Answer:
        limit = asked.number("limit", 100, high=MAX_LIMIT)
        return views.checkpoint_views(self._core.ledger, cycle=asked.text("cycle"), limit=limit)

    def decisions(self, asked: Asked) -> Answer:
        limit = asked.number("limit", 20, high=MAX_LIMIT)
        name = asked.text("candidate")
        candidate = self._core.governance.digest_of(name) if name else None
        return self._core.ledger.decisions(candidate=candidate, limit=limit)

    def evaluation(self, asked: Asked) -> Answer:
        evaluation = self._core.ledger.evaluation(asked.path["id"])
        if evaluation is None:
            raise NotThereError(f"there is no evaluation {asked.path['id']!r}", hint="decisions name theirs")
        return evaluation

    def compare(self, asked: Asked) -> Answer:
        return self._core.compare(asked.needed("a"), asked.needed("b"))

    def approve(self, asked: Asked) -> Answer:
        approved = self._core.approve(asked.path["digest"], _bytes(asked.body(Judgement).envelope))
        self._wake()
        return approved

    def reject(self, asked: Asked) -> Answer:
        return self._core.reject(asked.path["digest"], _bytes(asked.body(Judgement).envelope))

    def rollback(self, asked: Asked) -> Answer:
        wanted = asked.body(Rollback)
        return self._core.rollback(wanted.person, wanted.reason)

    def keys(self, asked: Asked) -> Answer:
        return self._core.trust.keys()

    def change_key(self, asked: Asked) -> Answer:
        return self._core.change_key(_bytes(asked.body(KeyChange).envelope))

    def policy(self, asked: Asked) -> Answer:
        return self._core.trust.policy_in_force()

    def backtest(self, asked: Asked) -> Answer:
        content = asked.body(PolicyText).content
        policy = parse_policy(content.encode(), "the policy") if content else self._core.policy
        return hindsight.backtest(self._core.ledger, policy)

    def budget(self, asked: Asked) -> Answer:
        return self._core.budget()

    def change_policy(self, asked: Asked) -> Answer:
        wanted = asked.body(PolicyChange)
        return self._core.change_policy(_bytes(wanted.content), _bytes(wanted.envelope))

    def jobs(self, asked: Asked) -> Answer:
        return self._core.listed_jobs(asked.number("limit", 50, high=MAX_LIMIT))

    def job(self, asked: Asked) -> Answer:
        job = self._core.ledger.job(asked.path["id"])
        if job is None:
            raise NotThereError(f"there is no job {asked.path['id']!r}", hint="`assay jobs ls` lists them")
        artifact = self._core.ledger.artifact(job.artifact) if job.artifact else None
        bundle = str(self._core.data / artifact.folder) if artifact else None
        job = self._core.as_it_stands(self._core.meanings.as_it_counts(job))
        return JobDetail(job=job, artifact=artifact, bundle=bundle)

    def submit(self, asked: Asked) -> Answer:
        job = self._core.desk.submit(asked.body(SubmitJob))
        self._wake()
        return job

    def put_file(self, asked: Asked) -> Answer:
        return self._core.desk.put_file(asked.content)

    def cancel(self, asked: Asked) -> Answer:
        return self._core.desk.cancel(asked.path["id"])

    def retry(self, asked: Asked) -> Answer:
        job = self._core.desk.retry(asked.path["id"])
        self._wake()
        return job

    def meanings(self, asked: Asked) -> Answer:
        return self._core.meanings.waiting(asked.number("limit", 50, high=MAX_LIMIT))

    def give_meaning(self, asked: Asked) -> Answer:
        return self._core.give_meaning(asked.path["id"], _bytes(asked.body(MeaningWord).envelope))

    def artifacts(self, asked: Asked) -> Answer:
        return self._core.ledger.artifacts(asked.number("limit", 50, high=MAX_LIMIT))

    def events(self, asked: Asked) -> Answer:
        after = asked.number("after", 0, high=2**62)
        return views.numbered_events(self._core.ledger, after=after, limit=asked.number("limit", 200, high=MAX_LIMIT))

    def shutdown(self, asked: Asked) -> Answer:
        self._stop()
        return {"stopping": None}


def make_app(
    core: Core, *, wake: Callable[[], None], next_cycle: Callable[[], str | None], stop: Callable[[], None]
) -> Starlette:
    """`wake` is called when there may be new work, `stop` when a client asks the daemon to end."""
    do = Routes(core, wake=wake, next_cycle=next_cycle, stop=stop)
    reading: dict[str, Callable[[Asked], Answer]] = {
        "/v1/status": do.status,
        "/v1/cycles": do.cycles,
        "/v1/cycles/{id}": do.cycle,
        "/v1/rollouts": do.rollouts,
        "/v1/checkpoints": do.checkpoints,
        "/v1/decisions": do.decisions,
        "/v1/evaluations/{id}": do.evaluation,
        "/v1/models/compare": do.compare,
        "/v1/keys": do.keys,
        "/v1/policy": do.policy,
        "/v1/policy/budget": do.budget,
        "/v1/jobs": do.jobs,
        "/v1/jobs/{id}": do.job,
        "/v1/meanings": do.meanings,
        "/v1/artifacts": do.artifacts,
        "/v1/events": do.events,
    }
    writing: dict[str, Callable[[Asked], Answer]] = {
        "/v1/cycles": do.start_cycle,
        "/v1/jobs": do.submit,
        "/v1/jobs/{id}/cancel": do.cancel,
        "/v1/jobs/{id}/meaning": do.give_meaning,
        "/v1/jobs/{id}/retry": do.retry,
        "/v1/files": do.put_file,
        "/v1/models/{digest}/approve": do.approve,
        "/v1/models/{digest}/reject": do.reject,
        "/v1/models/rollback": do.rollback,
        "/v1/keys": do.change_key,
        "/v1/policy": do.change_policy,
        "/v1/policy/backtest": do.backtest,
        "/v1/shutdown": do.shutdown,
    }
    routes = [Route(path, _endpoint(handler), methods=["GET"]) for path, handler in reading.items()]
    routes += [
        Route(path, _endpoint(handler, LARGE.get(path, MAX_BODY_BYTES)), methods=["POST"])
        for path, handler in writing.items()
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _no_such_route, Exception: _unforeseen})
    app.router.redirect_slashes = False
    return app


def _endpoint(handler: Callable[[Asked], Answer], most: int = MAX_BODY_BYTES) -> Callable[[Request], object]:
    async def endpoint(request: Request) -> Response:
        body = bytearray()
        announced = request.headers.get("content-length", "")
        if announced.isdigit() and int(announced) > most:
            return _json(_too_large(most), 413)
        async for part in request.stream():
            body += part
            if len(body) > most:
                return _json(_too_large(most), 413)
        asked = Asked(request.path_params, request.query_params, bytes(body))
        return await run_in_threadpool(_answer, handler, asked)

    return endpoint


def _too_large(most: int) -> Failure:
    return Failure(message=f"the request is larger than {most} bytes", hint="send less", exit_code=2)


def _answer(handler: Callable[[Asked], Answer], asked: Asked) -> Response:
    try:
        return _json(handler(asked), 200)
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            raise
        return _json(failure, http_status(failure))


async def _no_such_route(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    failure = Failure(
        message=f"no {request.method} {request.url.path} here",
        hint="docs/running.md lists what can be asked",
        exit_code=2,
    )
    return _json(failure, status)


async def _unforeseen(request: Request, error: Exception) -> Response:
    """Sent to the client; the traceback goes to the daemon's log."""
    failure = Failure(
        message=f"the daemon met an error that nobody foresaw: {type(error).__name__}",
        hint="its log has the details; what was asked for may not have happened",
        exit_code=5,
    )
    return _json(failure, 500)


def _bytes(text: str) -> bytes:
    """What a client sent, as it will be checked: half a character is refused there, and is no fault of ours."""
    return text.encode("utf-8", "surrogatepass")


def _json(answer: Answer, status: int) -> Response:
    if isinstance(answer, BaseModel):
        content = answer.model_dump_json()
    elif isinstance(answer, Mapping):
        content = Aliases.dump_json(dict(answer)).decode()
    else:
        content = "[" + ",".join(item.model_dump_json() for item in answer) + "]"
    return Response(content, status_code=status, media_type="application/json")

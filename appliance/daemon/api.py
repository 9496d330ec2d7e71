"""The control API: what clients may ask of the core, as JSON over HTTP on a Unix socket.

What always holds: every answer is JSON but that to `/metrics`, every error is a `Failure` with a message, a hint and an
exit code; a request is validated whole before anything happens; handlers run outside the event loop, so a slow one
delays nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from appliance.client.connection import Failure
from appliance.client.messages import (
    PolicyChange,
    PolicyText,
    Rollback,
    SignedStatement,
    StartCycle,
    StartTraining,
    SubmitJob,
    ValidationEnvelope,
)
from appliance.curriculum.certificates import record_certificate
from appliance.daemon import backtest, status, views
from appliance.daemon.child_log import log_part
from appliance.daemon.core import Core
from appliance.daemon.cycles import MAX_TRACES_BYTES
from appliance.daemon.errors import NotThereError, RequestError
from appliance.daemon.metrics import CONTENT_TYPE, exposition
from appliance.errors import exit_code
from appliance.places import parse_policy
from appliance.records.jobs import MAX_JOB_FILE_BYTES
from appliance.records.training import RolloutFilter
from curriculum.certification.certificate import Certificate
from curriculum.own.taskset import OwnContent

MAX_BODY_BYTES = 1_000_000
LARGE = {"/v1/jobs": 8 << 20, "/v1/files": MAX_JOB_FILE_BYTES, "/v1/traces": MAX_TRACES_BYTES, "/v1/tasksets": 64 << 20}
"""Routes that take more: a spec with its tests or its sources, a file of a job, conversations, problems."""
MAX_LIMIT = 1000
LOGS = ("worker", "broker")
"""The processes whose standard error is kept."""
HTTP_STATUS = {2: 400, 4: 409, 5: 500}
"""Of each exit code that a command then ends with."""

M = TypeVar("M", bound=BaseModel)
Aliases = TypeAdapter(dict[str, str | None])


@dataclass(frozen=True)
class MetricsText:
    text: str


Answer = BaseModel | Sequence[BaseModel] | Mapping[str, str | None] | MetricsText


class ApiRequest:
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

    def limit(self, default: int) -> int:
        return self.number("limit", default, high=MAX_LIMIT)

    def optional_number(self, name: str) -> int | None:
        return None if self._query.get(name) is None else self.number(name, 0, high=2**62)

    def filter(self, shape: type[M]) -> M:
        """Of the query, what the shape has a field for."""
        given = {name: value for name, value in self._query.items() if name in shape.model_fields}
        return _validated(shape, lambda: shape.model_validate_strings(given), "the query")

    def envelope(self, shape: type[SignedStatement | ValidationEnvelope] = SignedStatement) -> bytes:
        """The signed statement in the body."""
        return _bytes(self.body(shape).envelope)

    def body(self, shape: type[M]) -> M:
        return _validated(shape, lambda: shape.model_validate_json(self.content or b"{}"), "the body")


def _validated(shape: type[M], made: Callable[[], M], whole: str) -> M:
    try:
        return made()
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in fault["loc"]) or whole
        raise RequestError(f"{where}: {fault['msg']}", hint=f"send a {shape.__name__}") from error


Handler = Callable[[ApiRequest], Answer]


def reading(core: Core, next_cycle: Callable[[], str | None]) -> dict[str, Handler]:
    """What is answered to GET, by path."""
    ledger = core.ledger

    def rollouts(asked: ApiRequest) -> Answer:
        where = asked.filter(RolloutFilter)
        return core.rollouts.rollout_views(where, limit=asked.limit(50))

    def log(asked: ApiRequest) -> Answer:
        file = core.data / "logs" / f"{asked.path['process']}.log"
        if asked.path["process"] not in LOGS:
            raise NotThereError(f"there is no log of {asked.path['process']!r}", hint=f"ask for {' or '.join(LOGS)}")
        return log_part(file, after=asked.optional_number("after"), lines=asked.limit(100))

    def decisions(asked: ApiRequest) -> Answer:
        name = asked.text("candidate")
        candidate = core.governance.digest_of(name) if name else None
        return ledger.decisions(candidate=candidate, limit=asked.limit(20))

    def evaluation(asked: ApiRequest) -> Answer:
        found = ledger.evaluation(asked.path["id"])
        if found is None:
            raise NotThereError(f"there is no evaluation {asked.path['id']!r}", hint="decisions name theirs")
        return found

    return {
        "/metrics": lambda asked: MetricsText(exposition(status.status_of(core, next_cycle()))),
        "/v1/status": lambda asked: status.status_of(core, next_cycle()),
        "/v1/cycles": lambda asked: ledger.cycles(asked.limit(20)),
        "/v1/cycles/{id}": lambda asked: core.cycles.detail(asked.path["id"]),
        "/v1/cycles/{id}/passes": lambda asked: core.rollouts.pass_counts(asked.path["id"]),
        "/v1/rollouts": rollouts,
        "/v1/rollouts/{id:path}": lambda asked: core.rollouts.rollout_detail(asked.path["id"], core.data),
        "/v1/logs/{process}": log,
        "/v1/checkpoints": lambda asked: views.checkpoint_views(
            ledger, cycle=asked.text("cycle"), limit=asked.limit(100)
        ),
        "/v1/decisions": decisions,
        "/v1/evaluations/{id}": evaluation,
        "/v1/models/compare": lambda asked: core.governance.compare(asked.needed("a"), asked.needed("b")),
        "/v1/keys": lambda asked: core.trust.keys(),
        "/v1/policy": lambda asked: core.trust.policies.in_force(),
        "/v1/policy/budget": lambda asked: backtest.budget(ledger, core.policy, core.now()),
        "/v1/jobs": lambda asked: status.jobs_of(core, asked.limit(50)),
        "/v1/jobs/{id}": lambda asked: status.job_detail(core, asked.path["id"]),
        "/v1/validations": lambda asked: core.validations.waiting(asked.limit(50)),
        "/v1/artifacts": lambda asked: ledger.artifacts(asked.limit(50)),
        "/v1/events": lambda asked: views.numbered_events(
            ledger, after=asked.number("after", 0, high=2**62), limit=asked.limit(200)
        ),
    }


def writing(core: Core, wake: Callable[[], None], stop: Callable[[], None]) -> dict[str, Handler]:
    """What is answered to POST, by path. `waking` handlers may have made new work."""

    def waking(handler: Handler) -> Handler:
        def handle(asked: ApiRequest) -> Answer:
            answer = handler(asked)
            wake()
            return answer

        return handle

    def start_cycle(asked: ApiRequest) -> Answer:
        wanted = asked.body(StartCycle)
        return core.cycles.start(wanted.kind, wanted.seed)

    def rollback(asked: ApiRequest) -> Answer:
        wanted = asked.body(Rollback)
        return core.governance.rollback(wanted.person, wanted.reason)

    def change_policy(asked: ApiRequest) -> Answer:
        wanted = asked.body(PolicyChange)
        return core.governance.change_policy(_bytes(wanted.content), _bytes(wanted.envelope))

    def try_policy(asked: ApiRequest) -> Answer:
        content = asked.body(PolicyText).content
        policy = parse_policy(content.encode(), "the policy") if content else core.policy
        return backtest.backtest(core.ledger, policy)

    def shutdown(asked: ApiRequest) -> Answer:
        stop()
        return {"stopping": None}

    return {
        "/v1/cycles": waking(start_cycle),
        "/v1/trainings": waking(lambda asked: core.cycles.train(asked.body(StartTraining))),
        "/v1/traces": lambda asked: core.cycles.put_traces(asked.content),
        "/v1/cycles/{id}/cancel": lambda asked: core.cycles.cancel(asked.path["id"]),
        "/v1/jobs": waking(lambda asked: core.jobs.submit(asked.body(SubmitJob))),
        "/v1/jobs/{id}/cancel": lambda asked: core.jobs.cancel(asked.path["id"]),
        "/v1/jobs/{id}/retry": waking(lambda asked: core.jobs.retry(asked.path["id"])),
        "/v1/jobs/{id}/validation": lambda asked: core.validations.record(
            asked.path["id"], asked.envelope(ValidationEnvelope)
        ),
        "/v1/certificates": lambda asked: record_certificate(core.ledger.audit, asked.body(Certificate)),
        "/v1/files": lambda asked: core.jobs.put_file(asked.content),
        "/v1/tasksets": lambda asked: core.own_work.add(asked.body(OwnContent)),
        "/v1/tasksets/{name:path}/remove": lambda asked: core.own_work.remove(asked.path["name"]),
        "/v1/models/{digest}/approve": waking(
            lambda asked: core.governance.approve(asked.path["digest"], asked.envelope())
        ),
        "/v1/models/{digest}/reject": lambda asked: core.governance.reject(asked.path["digest"], asked.envelope()),
        "/v1/models/{digest}/evaluate": waking(
            lambda asked: core.cycles.evaluate(core.governance.digest_of(asked.path["digest"]))
        ),
        "/v1/models/rollback": rollback,
        "/v1/keys": lambda asked: core.trust.change_key(asked.envelope()),
        "/v1/policy": change_policy,
        "/v1/policy/backtest": try_policy,
        "/v1/shutdown": shutdown,
    }


def make_app(
    core: Core, *, wake: Callable[[], None], next_cycle: Callable[[], str | None], stop: Callable[[], None]
) -> Starlette:
    """`wake` is called when there may be new work, `stop` when a client asks the daemon to end."""
    routes = [Route(path, _endpoint(handler), methods=["GET"]) for path, handler in reading(core, next_cycle).items()]
    routes += [
        Route(path, _endpoint(handler, LARGE.get(path, MAX_BODY_BYTES)), methods=["POST"])
        for path, handler in writing(core, wake, stop).items()
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _no_such_route, Exception: _unforeseen})
    app.router.redirect_slashes = False
    return app


def _endpoint(handler: Handler, most: int = MAX_BODY_BYTES) -> Callable[[Request], object]:
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
            raise  # nobody foresaw it
        failure = Failure(
            message=str(error), hint=hint, exit_code=int(exit_code(error)), refusal=getattr(error, "refusal", None)
        )
        return _json(failure, HTTP_STATUS.get(failure.exit_code, 500))


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


def _json(answer: BaseModel | Sequence[BaseModel] | Mapping[str, str | None], status: int) -> Response:
    if isinstance(answer, BaseModel):
        content = answer.model_dump_json()
    elif isinstance(answer, Mapping):
        content = Aliases.dump_json(dict(answer)).decode()
    else:
        content = "[" + ",".join(item.model_dump_json() for item in answer) + "]"
    return Response(content, status_code=status, media_type="application/json")

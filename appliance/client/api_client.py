"""A typed client of the control API over its Unix socket; one request at a time, so each thread needs its own client.

Every method raises DaemonNotRunning or DaemonSilent when there is no answer, and ApiError with the daemon's own
message, hint and exit code when it refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from appliance.client.failures import ApiError, DaemonNotRunning, DaemonSilent
from appliance.client.messages import (
    Approved,
    Backtest,
    BudgetView,
    CheckpointView,
    Comparison,
    CycleDetail,
    Failure,
    JobDetail,
    Judgement,
    KeyChange,
    Keys,
    MeaningWord,
    NumberedEvent,
    PolicyChange,
    PolicyInForce,
    PolicyText,
    Rollback,
    RolloutView,
    StartCycle,
    Status,
    StoredFile,
    SubmitJob,
)
from appliance.records import Artifact, Cycle, Evaluation, Job
from policies.decision import Decision
from policies.register import KnownKey

T = TypeVar("T")

_Aliases = TypeAdapter(dict[str, str | None])


class ApiClient:
    def __init__(self, socket_path: Path, *, timeout_seconds: float = 10.0) -> None:
        """Connects with the first request, not here."""
        self._socket_path = socket_path
        self._timeout_seconds = timeout_seconds
        transport = httpx.HTTPTransport(uds=str(socket_path))
        self._http = httpx.Client(transport=transport, base_url="http://assay", timeout=timeout_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # what there is
    def status(self) -> Status:
        return self._get("/v1/status", TypeAdapter(Status))

    def cycles(self, limit: int = 20) -> list[Cycle]:
        """Newest first."""
        return self._get("/v1/cycles", TypeAdapter(list[Cycle]), limit=limit)

    def cycle(self, cycle: str) -> CycleDetail:
        return self._get(f"/v1/cycles/{_part(cycle)}", TypeAdapter(CycleDetail))

    def rollouts(self, *, cycle: str | None = None, job: str | None = None, limit: int = 50) -> list[RolloutView]:
        """Newest first."""
        return self._get("/v1/rollouts", TypeAdapter(list[RolloutView]), cycle=cycle, job=job, limit=limit)

    def checkpoints(self, *, cycle: str | None = None, limit: int = 100) -> list[CheckpointView]:
        """Newest first, each with its aliases and the newest decision about it."""
        return self._get("/v1/checkpoints", TypeAdapter(list[CheckpointView]), cycle=cycle, limit=limit)

    def decisions(self, *, candidate: str | None = None, limit: int = 20) -> list[Decision]:
        """Newest first."""
        return self._get("/v1/decisions", TypeAdapter(list[Decision]), candidate=candidate, limit=limit)

    def evaluation(self, evaluation: str) -> Evaluation:
        return self._get(f"/v1/evaluations/{_part(evaluation)}", TypeAdapter(Evaluation))

    def compare(self, a: str, b: str) -> Comparison:
        """Two models by alias, digest or a prefix of at least six digits."""
        return self._get("/v1/models/compare", TypeAdapter(Comparison), a=a, b=b)

    def jobs(self, limit: int = 50) -> list[Job]:
        """Newest first."""
        return self._get("/v1/jobs", TypeAdapter(list[Job]), limit=limit)

    def job(self, job: str) -> JobDetail:
        return self._get(f"/v1/jobs/{_part(job)}", TypeAdapter(JobDetail))

    def artifacts(self, limit: int = 50) -> list[Artifact]:
        return self._get("/v1/artifacts", TypeAdapter(list[Artifact]), limit=limit)

    def events(self, *, after: int = 0, limit: int = 200) -> list[NumberedEvent]:
        """Ascending, those after the number given."""
        return self._get("/v1/events", TypeAdapter(list[NumberedEvent]), after=after, limit=limit)

    # what a person can do
    def start_cycle(self, request: StartCycle | None = None) -> Cycle:
        """Starts a cycle now; an unfinished one goes on and is returned instead."""
        return self._post("/v1/cycles", request or StartCycle(), TypeAdapter(Cycle))

    def submit(self, request: SubmitJob) -> Job:
        return self._post("/v1/jobs", request, TypeAdapter(Job))

    def put_file(self, content: bytes) -> StoredFile:
        """Sends a file that a job is going to name."""
        headers = {"content-type": "application/octet-stream"}
        return self._read(self._request("POST", "/v1/files", {}, content, headers), TypeAdapter(StoredFile))

    def cancel(self, job: str) -> Job:
        """Calls it off; ApiError with exit code 4 when it has ended otherwise."""
        return self._read(self._request("POST", f"/v1/jobs/{_part(job)}/cancel", {}, b"{}"), TypeAdapter(Job))

    def retry(self, job: str) -> Job:
        """A new job that asks the same with the next seed."""
        return self._read(self._request("POST", f"/v1/jobs/{_part(job)}/retry", {}, b"{}"), TypeAdapter(Job))

    def approve(self, candidate: str, envelope: bytes) -> Approved:
        """Puts a candidate into service if the policy then says so; ApiError with exit code 4 if not. `envelope` is a
        signed word, as `appliance.client.signing` makes it."""
        return self._post(f"/v1/models/{_part(candidate)}/approve", _judgement(envelope), TypeAdapter(Approved))

    def reject(self, candidate: str, envelope: bytes) -> Approved:
        return self._post(f"/v1/models/{_part(candidate)}/reject", _judgement(envelope), TypeAdapter(Approved))

    def meanings(self, limit: int = 50) -> list[Job]:
        """Jobs that wait for a person's word on whether their check says what was meant, newest first."""
        return self._get("/v1/meanings", TypeAdapter(list[Job]), limit=limit)

    def give_meaning(self, job: str, envelope: bytes) -> Job:
        """`envelope` is a signed word, as `appliance.client.signing` makes it; returns the job with it."""
        word = MeaningWord(envelope=envelope.decode("ascii"))
        return self._post(f"/v1/jobs/{_part(job)}/meaning", word, TypeAdapter(Job))

    def rollback(self, person: str, reason: str = "") -> dict[str, str | None]:
        """Puts the previous champion back; returns the aliases."""
        return self._post("/v1/models/rollback", Rollback(person=person, reason=reason), _Aliases)

    def keys(self) -> Keys:
        """Whose keys are known."""
        return self._get("/v1/keys", TypeAdapter(Keys))

    def change_key(self, envelope: bytes) -> KnownKey:
        """Admits or revokes a key."""
        return self._post("/v1/keys", KeyChange(envelope=envelope.decode("ascii")), TypeAdapter(KnownKey))

    def policy(self) -> PolicyInForce:
        return self._get("/v1/policy", TypeAdapter(PolicyInForce))

    def budget(self) -> BudgetView:
        """How the quarter's budget stands under the policy in force."""
        return self._get("/v1/policy/budget", TypeAdapter(BudgetView))

    def backtest(self, content: bytes = b"") -> Backtest:
        """What these rules would have decided so far; those in force without any."""
        return self._post("/v1/policy/backtest", PolicyText(content=content.decode()), TypeAdapter(Backtest))

    def change_policy(self, content: bytes, envelope: bytes) -> PolicyInForce:
        """Puts a signed policy file into force."""
        change = PolicyChange(content=content.decode(), envelope=envelope.decode("ascii"))
        return self._post("/v1/policy", change, TypeAdapter(PolicyInForce))

    def shutdown(self) -> None:
        """Asks the daemon to stop; it answers before it does."""
        self._request("POST", "/v1/shutdown", {}, b"{}")

    def _get(self, path: str, shape: TypeAdapter[T], **query: str | int | None) -> T:
        known = {name: str(value) for name, value in query.items() if value is not None}
        return self._read(self._request("GET", path, known, None), shape)

    def _post(self, path: str, body: BaseModel, shape: TypeAdapter[T]) -> T:
        return self._read(self._request("POST", path, {}, body.model_dump_json().encode()), shape)

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        known = headers or ({"content-type": "application/json"} if body is not None else {})
        try:
            answer = self._http.request(method, path, params=dict(query), content=body, headers=dict(known))
        except httpx.ConnectError as error:
            raise DaemonNotRunning(self._socket_path) from error
        except httpx.TimeoutException as error:
            raise DaemonSilent(self._socket_path, self._timeout_seconds) from error
        except httpx.TransportError as error:
            raise ApiError(
                f"the daemon broke off the conversation: {type(error).__name__}",
                hint="see its log, and ask again",
            ) from error
        if answer.is_success:
            return answer.content
        raise _failure(answer)

    def _read(self, content: bytes, shape: TypeAdapter[T]) -> T:
        try:
            return shape.validate_json(content)
        except ValidationError as error:
            raise ApiError(
                f"the daemon's answer has another shape than expected ({error.error_count()} differences)",
                hint="the daemon is of another version: restart `assay serve` after an upgrade",
            ) from error


def _judgement(envelope: bytes) -> Judgement:
    return Judgement(envelope=envelope.decode("ascii"))


def _failure(answer: httpx.Response) -> ApiError:
    try:
        failure = Failure.model_validate_json(answer.content)
    except ValidationError:
        return ApiError(f"the daemon answered {answer.status_code}: {answer.text[:200]!r}", hint="see the daemon's log")
    return ApiError(failure.message, hint=failure.hint, exit_code=failure.exit_code)


def _part(name: str) -> str:
    """One path segment: what a person typed cannot reach another route."""
    return quote(name, safe="")

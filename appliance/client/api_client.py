"""Typed client of the control API over its Unix socket. One request at a time: each thread needs its own client.

Every method raises DaemonNotRunning or DaemonSilent without an answer, and ApiError with the daemon's message, hint and
exit code on refusal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from appliance.client.connection import ApiConnection
from appliance.client.messages import (
    Approved,
    Backtest,
    BudgetView,
    CheckpointView,
    CycleDetail,
    JobDetail,
    Keys,
    LogPart,
    ModelComparison,
    NumberedEvent,
    OwnTasksetView,
    PolicyChange,
    PolicyInForce,
    PolicyText,
    Rollback,
    RolloutDetail,
    RolloutView,
    SignedStatement,
    StartCycle,
    StartTraining,
    StoredFile,
    SubmitJob,
    ValidationEnvelope,
)
from appliance.client.retention import Prune, Pruned
from appliance.client.screen import AuditLine, CycleCurves, MachineView, ModelLineage
from appliance.client.status import Status
from appliance.records.artifacts import Artifact
from appliance.records.cycles import Cycle
from appliance.records.evaluations import Evaluation
from appliance.records.jobs import Job
from appliance.records.training import ANY_ROLLOUT, PassCount, RolloutFilter
from policies.contract.decision import Decision
from policies.contract.keys import KnownKey

if TYPE_CHECKING:
    from curriculum.certification.certificate import Certificate


class ApiClient(ApiConnection):
    """Client of the control API with one method per request."""

    # what there is
    def status(self) -> Status:
        return self.get("/v1/status", Status)

    def cycles(self, limit: int = 20) -> list[Cycle]:
        """Returns the cycles, newest first."""
        return self.get("/v1/cycles", list[Cycle], limit=limit)

    def cycle(self, cycle: str) -> CycleDetail:
        return self.get(f"/v1/cycles/{_part(cycle)}", CycleDetail)

    def pass_counts(self, cycle: str) -> list[PassCount]:
        """Returns how many of a cycle's rollouts passed, by purpose, taskset and level; takes seconds for large
        nights."""
        return self.get(f"/v1/cycles/{_part(cycle)}/passes", list[PassCount])

    def cancel_cycle(self, cycle: str) -> Cycle:
        """Cancels a cycle and returns it; ApiError with exit code 4 if it has ended otherwise."""
        return self.read(self.request("POST", f"/v1/cycles/{_part(cycle)}/cancel", {}, b"{}"), Cycle)

    def resume_cycle(self, cycle: str) -> Cycle:
        """Retries a parked cycle and returns it; ApiError with exit code 4 if it is not parked."""
        return self.read(self.request("POST", f"/v1/cycles/{_part(cycle)}/resume", {}, b"{}"), Cycle)

    def rollouts(self, where: RolloutFilter = ANY_ROLLOUT, *, limit: int = 50) -> list[RolloutView]:
        """Returns the rollouts that match a filter, newest first."""
        given = where.model_dump(mode="json", exclude_none=True)
        return self.get("/v1/rollouts", list[RolloutView], **given, limit=limit)

    def rollout(self, rollout: str) -> RolloutDetail:
        return self.get(f"/v1/rollouts/{_part(rollout)}", RolloutDetail)

    def log(self, process: str, *, after: int | None = None, limit: int = 100) -> LogPart:
        """Returns the last lines of the log of a worker, the broker or the gateway, or those after a position."""
        return self.get(f"/v1/logs/{_part(process)}", LogPart, after=after, limit=limit)

    def checkpoints(
        self, *, cycle: str | None = None, before: str | None = None, limit: int = 100
    ) -> list[CheckpointView]:
        """Returns model checkpoints, newest first, with aliases and newest decision; `before` is a digest."""
        return self.get("/v1/checkpoints", list[CheckpointView], cycle=cycle, before=before, limit=limit)

    def lineage(self, checkpoint: str, limit: int = 50) -> ModelLineage:
        return self.get(f"/v1/checkpoints/{_part(checkpoint)}/lineage", ModelLineage, limit=limit)

    def curves(self, cycle: str) -> CycleCurves:
        return self.get(f"/v1/cycles/{_part(cycle)}/curves", CycleCurves)

    def machine(self) -> MachineView:
        return self.get("/v1/machine", MachineView)

    def audit(self, *, before: int | None = None, limit: int = 100) -> list[AuditLine]:
        """Returns entries of the audit log below the number `before`, newest first."""
        return self.get("/v1/audit", list[AuditLine], before=before, limit=limit)

    def decisions(self, *, candidate: str | None = None, limit: int = 20) -> list[Decision]:
        """Returns decisions about candidates, newest first."""
        return self.get("/v1/decisions", list[Decision], candidate=candidate, limit=limit)

    def evaluation(self, evaluation: str) -> Evaluation:
        return self.get(f"/v1/evaluations/{_part(evaluation)}", Evaluation)

    def compare(self, a: str, b: str) -> ModelComparison:
        """Compares two models on the same sealed items. Each is named by an alias, a digest, or a prefix of at least
        six digits."""
        return self.get("/v1/models/compare", ModelComparison, a=a, b=b)

    def jobs(self, limit: int = 50) -> list[Job]:
        """Returns the jobs, newest first."""
        return self.get("/v1/jobs", list[Job], limit=limit)

    def job(self, job: str) -> JobDetail:
        return self.get(f"/v1/jobs/{_part(job)}", JobDetail)

    def artifacts(self, limit: int = 50) -> list[Artifact]:
        return self.get("/v1/artifacts", list[Artifact], limit=limit)

    def events(self, *, after: int = 0, limit: int = 200) -> list[NumberedEvent]:
        """Returns the daemon's events after the given number, ascending."""
        return self.get("/v1/events", list[NumberedEvent], after=after, limit=limit)

    # what a person can do
    def start_cycle(self, request: StartCycle | None = None) -> Cycle:
        """Starts a cycle now and returns it; if one is unfinished, returns that one instead."""
        return self.post("/v1/cycles", request or StartCycle(), Cycle)

    def start_training(self, request: StartTraining) -> Cycle:
        """Starts a training in stages and returns its cycle; ApiError with exit code 4 while another cycle is
        unfinished."""
        return self.post("/v1/trainings", request, Cycle)

    def put_traces(self, content: bytes) -> StoredFile:
        """Uploads a file of conversations for a training stage."""
        headers = {"content-type": "application/octet-stream"}
        return self.read(self.request("POST", "/v1/traces", {}, content, headers), StoredFile)

    def put_certificate(self, certificate: Certificate) -> Certificate:
        """Records a taskset's certification report, signed, in the audit log."""
        return self.post("/v1/certificates", certificate, type(certificate))

    def submit(self, request: SubmitJob) -> Job:
        return self.post("/v1/jobs", request, Job)

    def put_file(self, content: bytes) -> StoredFile:
        """Uploads a file for a job."""
        headers = {"content-type": "application/octet-stream"}
        return self.read(self.request("POST", "/v1/files", {}, content, headers), StoredFile)

    def add_taskset(self, content: bytes) -> OwnTasksetView:
        """Stores the owner's problems as a taskset; `content` is an `OwnContent` as JSON."""
        return self.read(self.request("POST", "/v1/tasksets", {}, content), OwnTasksetView)

    def remove_taskset(self, name: str) -> OwnTasksetView:
        """Removes a taskset of the owner's problems; ApiError with exit code 4 while a cycle uses it."""
        return self.read(self.request("POST", f"/v1/tasksets/{_part(name)}/remove", {}, b"{}"), OwnTasksetView)

    def cancel(self, job: str) -> Job:
        """Cancels a job and returns it; ApiError with exit code 4 if it has ended otherwise."""
        return self.read(self.request("POST", f"/v1/jobs/{_part(job)}/cancel", {}, b"{}"), Job)

    def resume(self, job: str) -> Job:
        """Retries a parked job and returns it; ApiError with exit code 4 if it is not parked."""
        return self.read(self.request("POST", f"/v1/jobs/{_part(job)}/resume", {}, b"{}"), Job)

    def retry(self, job: str) -> Job:
        """Submits a new job with the same question and the next seed, and returns it."""
        return self.read(self.request("POST", f"/v1/jobs/{_part(job)}/retry", {}, b"{}"), Job)

    def judge(self, verdict: Literal["approve", "reject"], candidate: str, envelope: bytes) -> Approved:
        """Records a person's decision about a candidate. An approval puts the candidate into service if the policy
        permits; otherwise ApiError with exit code 4. `envelope` is a signed statement from `appliance.client.signing`.
        """
        return self.post(f"/v1/models/{_part(candidate)}/{verdict}", _signed(envelope), Approved)

    def evaluate(self, model: str) -> Cycle:
        """Starts a cycle that evaluates a model anew beside the champion. ApiError with exit code 4 while a cycle is
        unfinished."""
        return self.read(self.request("POST", f"/v1/models/{_part(model)}/evaluate", {}, b"{}"), Cycle)

    def open_validations(self, limit: int = 50) -> list[Job]:
        """Returns jobs whose check no person has validated yet, newest first."""
        return self.get("/v1/validations", list[Job], limit=limit)

    def validate(self, job: str, envelope: bytes) -> Job:
        """Records a person's signed validation of a job's check (see `appliance.client.signing`); returns the job with
        it."""
        statement = ValidationEnvelope(envelope=envelope.decode("ascii"))
        return self.post(f"/v1/jobs/{_part(job)}/validation", statement, Job)

    def prune(self, request: Prune) -> Pruned:
        """Drops the tokens of old training rollouts, or reports what would be dropped."""
        return self.post("/v1/prune", request, Pruned)

    def rollback(self, person: str, reason: str = "", *, going: str = "") -> dict[str, str | None]:
        """Takes the model `going`, or by default the one next in line, out of service; returns the aliases."""
        asked = Rollback(person=person, reason=reason, going=going)
        return self.post("/v1/models/rollback", asked, dict[str, str | None])

    def keys(self) -> Keys:
        """Returns the persons' keys known to the daemon, and the policy's rules for signing."""
        return self.get("/v1/keys", Keys)

    def change_key(self, envelope: bytes) -> KnownKey:
        """Admits or revokes a person's key by a signed statement; returns the key."""
        return self.post("/v1/keys", _signed(envelope), KnownKey)

    def policy(self) -> PolicyInForce:
        return self.get("/v1/policy", PolicyInForce)

    def budget(self) -> BudgetView:
        """Returns the state of the quarter's promotion budget under the policy in force."""
        return self.get("/v1/policy/budget", BudgetView)

    def backtest(self, content: bytes = b"") -> Backtest:
        """Returns what past decisions would be under this policy file, or under the policy in force if it is empty."""
        return self.post("/v1/policy/backtest", PolicyText(content=content.decode()), Backtest)

    def change_policy(self, content: bytes, envelope: bytes) -> PolicyInForce:
        """Puts a signed policy file into force."""
        change = PolicyChange(content=content.decode(), envelope=envelope.decode("ascii"))
        return self.post("/v1/policy", change, PolicyInForce)

    def shutdown(self) -> None:
        """Asks the daemon to stop; returns before it has stopped."""
        self.request("POST", "/v1/shutdown", {}, b"{}")


def _signed(envelope: bytes) -> SignedStatement:
    return SignedStatement(envelope=envelope.decode("ascii"))


def _part(name: str) -> str:
    """Quotes one path segment of a URL, so that user input cannot reach another route."""
    return quote(name, safe="")

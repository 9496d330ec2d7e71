"""The control API: its table of endpoints, which is also the typed client over the Unix socket.

One request at a time: each thread needs its own client. Every method raises DaemonNotRunning or DaemonSilent without an
answer, and ApiError with the daemon's message, hint and exit code on refusal. `appliance.daemon.api.handlers` has one
handler for each endpoint, by name.
"""
# mypy: disable-error-code="empty-body"
# ruff: noqa: A002 - path parameters have the names of the wire

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from appliance.client.connection import ApiConnection
from appliance.client.endpoints import Package, get, post

if TYPE_CHECKING:
    import appliance.client.gateway
    import appliance.client.messages
    import appliance.client.nights
    import appliance.client.own_tasks
    import appliance.client.retention
    import appliance.client.screen
    import appliance.client.status
    import appliance.records.cycles
    import appliance.records.evaluations
    import appliance.records.jobs
    import appliance.records.training
    import curriculum.certification.certificate
    import curriculum.own.taskset
    import policies.contract.decision

    client, records = appliance.client, appliance.records
    certification, own = curriculum.certification, curriculum.own
    contract = policies.contract
else:
    client, records = Package("appliance.client"), Package("appliance.records")
    certification, own = Package("curriculum.certification"), Package("curriculum.own")
    contract = Package("policies.contract")


class ApiClient(ApiConnection):
    """Client of the control API with one method per request."""

    # the daemon
    @get("/metrics")
    def metrics(self) -> str:
        """Figures for Prometheus."""

    @get("/v1/status")
    def status(self) -> client.status.Status:
        """Running and waiting work."""

    @get("/v1/logs/{process}")
    def log(self, process: str, *, after: int | None = None, limit: int = 100) -> client.messages.LogPart:
        """Log lines of a child process.

        The last lines, or those after a position.
        """

    @get("/v1/events")
    def events(self, *, after: int = 0, limit: int = 200) -> list[client.messages.NumberedEvent]:
        """Events after a number, ascending."""

    @post("/v1/prune")
    def prune(self, body: client.retention.Prune) -> client.retention.Pruned:
        """Drops the tokens of old rollouts."""

    @post("/v1/shutdown")
    def shutdown(self) -> dict[str, str | None]:
        """Stops the daemon; it answers first."""

    # cycles
    @get("/v1/cycles")
    def cycles(self, limit: int = 20) -> list[records.cycles.Cycle]:
        """Cycles, newest first."""

    @get("/v1/cycles/{id}")
    def cycle(self, id: str) -> client.messages.CycleDetail:
        """A cycle with its steps."""

    @get("/v1/cycles/{id}/passes")
    def pass_counts(self, id: str) -> list[records.training.PassCount]:
        """Pass counts of its rollouts, by purpose, taskset and level.

        Takes seconds for large nights.
        """

    @get("/v1/rollouts")
    def rollouts(
        self, where: records.training.RolloutFilter | None = None, *, limit: int = 50
    ) -> list[client.messages.RolloutView]:
        """Judged rollouts, newest first."""

    @get("/v1/rollouts/{id:path}")
    def rollout(self, id: str) -> client.messages.RolloutDetail:
        """A rollout with its conversation as text."""

    @post("/v1/cycles")
    def start_cycle(self, body: client.messages.StartCycle | None = None) -> records.cycles.Cycle:
        """Starts a cycle, or resumes the unfinished one."""

    @post("/v1/trainings")
    def start_training(self, body: client.messages.StartTraining) -> records.cycles.Cycle:
        """Starts a training in stages.

        ApiError with exit code 4 while another cycle is unfinished.
        """

    @post("/v1/traces")
    def put_traces(self, body: bytes) -> client.messages.StoredFile:
        """Stores conversations for a training stage."""

    @post("/v1/cycles/{id}/cancel")
    def cancel_cycle(self, id: str) -> records.cycles.Cycle:
        """Cancels a cycle.

        ApiError with exit code 4 if it has ended otherwise.
        """

    @post("/v1/cycles/{id}/resume")
    def resume_cycle(self, id: str) -> records.cycles.Cycle:
        """Resumes a parked cycle.

        ApiError with exit code 4 if it is not parked.
        """

    # schedule
    @get("/v1/schedule")
    def schedule(self, limit: int = 7) -> client.nights.ScheduleView:
        """The schedule, and why nights are held."""

    @get("/v1/promotions")
    def promotions(self, limit: int = 100) -> list[client.nights.PromotionView]:
        """Promotions with their gains and losses."""

    @get("/v1/held-out")
    def held_out(self, limit: int = 60) -> list[client.nights.HeldOutNight]:
        """Held-out success of every evaluated night, oldest first."""

    @post("/v1/schedule/pause")
    def pause_schedule(self, body: client.nights.PauseSchedule) -> client.nights.ScheduleView:
        """Pauses nights until a time."""

    @post("/v1/schedule/resume")
    def resume_schedule(self) -> client.nights.ScheduleView:
        """Ends the pause of nights."""

    @post("/v1/notices/try")
    def try_notices(self) -> client.nights.NoticesTried:
        """Sends a test notice through every channel."""

    # models
    @get("/v1/checkpoints")
    def checkpoints(
        self, *, cycle: str | None = None, before: str | None = None, limit: int = 100
    ) -> list[client.messages.CheckpointView]:
        """Checkpoints with their aliases.

        Newest first; `before` is a digest.
        """

    @get("/v1/decisions")
    def decisions(self, *, candidate: str | None = None, limit: int = 20) -> list[contract.decision.Decision]:
        """Decisions, newest first."""

    @get("/v1/evaluations/{id}")
    def evaluation(self, id: str) -> records.evaluations.Evaluation:
        """An evaluation, item by item."""

    @get("/v1/models/compare")
    def compare(self, a: str, b: str) -> client.messages.ModelComparison:
        """Compares two models on the same sealed questions.

        Each is an alias, a digest, or a prefix of at least six digits.
        """

    @post("/v1/models/{digest}/approve")
    def approve(self, digest: str, body: client.messages.SignedStatement) -> client.messages.Approved:
        """Records a person's approval.

        The candidate goes into service if the policy permits; otherwise ApiError with exit code 4.
        """

    @post("/v1/models/{digest}/reject")
    def reject(self, digest: str, body: client.messages.SignedStatement) -> client.messages.Approved:
        """Records a person's rejection."""

    @post("/v1/models/{digest}/evaluate")
    def evaluate(self, digest: str) -> records.cycles.Cycle:
        """Evaluates a model against the champion again.

        ApiError with exit code 4 while a cycle is unfinished.
        """

    @post("/v1/models/rollback")
    def rollback(self, body: client.messages.Rollback) -> dict[str, str | None]:
        """Puts the previous champion back.

        Returns the aliases.
        """

    # governance
    @get("/v1/keys")
    def keys(self) -> client.messages.Keys:
        """Known keys."""

    @get("/v1/policy")
    def policy(self) -> client.messages.PolicyInForce:
        """The policy in force."""

    @get("/v1/policy/budget")
    def budget(self) -> client.messages.BudgetView:
        """Budget of the quarter."""

    @post("/v1/keys")
    def change_key(self, body: client.messages.SignedStatement) -> contract.decision.KnownKey:
        """Admits or revokes a key."""

    @post("/v1/policy")
    def change_policy(self, body: client.messages.PolicyChange) -> client.messages.PolicyInForce:
        """Puts a signed policy into force."""

    @post("/v1/policy/backtest")
    def backtest(self, body: client.messages.PolicyText) -> client.messages.Backtest:
        """Decisions that a policy would have made."""

    # jobs
    @get("/v1/jobs")
    def jobs(self, limit: int = 50) -> list[records.jobs.Job]:
        """Newest first."""

    @get("/v1/jobs/{id}")
    def job(self, id: str) -> client.messages.JobDetail:
        """A job with its bundle."""

    @get("/v1/validations")
    def open_validations(self, limit: int = 50) -> list[records.jobs.Job]:
        """Jobs whose check nobody has validated."""

    @get("/v1/artifacts")
    def artifacts(self, limit: int = 50) -> list[records.jobs.Artifact]:
        """Newest first."""

    @post("/v1/jobs")
    def submit(self, body: client.messages.SubmitJob) -> records.jobs.Job:
        """Submits a job."""

    @post("/v1/jobs/{id}/cancel")
    def cancel(self, id: str) -> records.jobs.Job:
        """Cancels a job.

        ApiError with exit code 4 if it has ended otherwise.
        """

    @post("/v1/jobs/{id}/resume")
    def resume(self, id: str) -> records.jobs.Job:
        """Resumes a parked job.

        ApiError with exit code 4 if it is not parked.
        """

    @post("/v1/jobs/{id}/retry")
    def retry(self, id: str) -> records.jobs.Job:
        """Retries a job with the next seed."""

    @post("/v1/jobs/{id}/validation")
    def validate(self, id: str, body: client.messages.ValidationEnvelope) -> records.jobs.Job:
        """Records a person's statement on its check."""

    @post("/v1/files")
    def put_file(self, body: bytes) -> client.messages.StoredFile:
        """Stores a file for a job."""

    # curriculum
    @post("/v1/certificates")
    def put_certificate(self, body: certification.certificate.Certificate) -> certification.certificate.Certificate:
        """Signs a certification's report into the audit log."""

    @get("/v1/own/candidates")
    def candidates(self) -> list[client.own_tasks.TaskCandidate]:
        """Verified work that may become tasks."""

    @post("/v1/own/collected")
    def collect(self, body: client.own_tasks.CollectedRows) -> client.messages.OwnTasksetView:
        """Adds checked candidates, by key, to own/jobs or own/sessions."""

    @post("/v1/tasksets")
    def add_taskset(self, body: own.taskset.OwnContent) -> client.messages.OwnTasksetView:
        """Adds a taskset of the owner."""

    @post("/v1/tasksets/{name:path}/remove")
    def remove_taskset(self, name: str) -> client.messages.OwnTasksetView:
        """Removes a taskset of the owner.

        ApiError with exit code 4 while a cycle uses it.
        """

    # gateway
    @get("/v1/gateway/tokens")
    def tokens(self) -> list[client.gateway.TokenView]:
        """Tokens of the gateway."""

    @get("/v1/gateway/sessions")
    def sessions(self, limit: int = 50) -> list[client.gateway.SessionRow]:
        """Stored sessions, newest first."""

    @get("/v1/gateway/sessions/{id}")
    def session(self, id: str) -> client.gateway.SessionDetail:
        """A stored session."""

    @post("/v1/gateway/tokens")
    def new_token(self, body: client.gateway.NewToken) -> client.gateway.MadeToken:
        """Creates a token; its secret is shown only once."""

    @post("/v1/gateway/tokens/{name}/revoke")
    def revoke_token(self, name: str) -> client.gateway.TokenView:
        """Revokes a token."""

    @post("/v1/gateway/sessions/{id}/delete")
    def delete_session(self, id: str) -> client.gateway.DeletedSessions:
        """Deletes a session, or `all`."""

    # screens
    @get("/v1/machine")
    def machine(self) -> client.screen.MachineView:
        """Processors, memory, GPUs and processes."""

    @get("/v1/cycles/{id}/curves")
    def curves(self, id: str) -> client.screen.CycleCurves:
        """Figures of a cycle, step by step."""

    @get("/v1/checkpoints/{id}/lineage")
    def lineage(self, id: str, limit: int = 50) -> client.screen.ModelLineage:
        """A checkpoint and what it came from."""

    @get("/v1/audit")
    def audit(
        self, where: client.screen.AuditBefore | None = None, *, limit: int = 100
    ) -> list[client.screen.AuditLine]:
        """Entries of the audit log, newest first."""

    @get("/v1/events/stream", streams=True)
    def event_stream(self, *, after: int | None = None) -> records.cycles.Event:
        """Events as they come, as server-sent events; `Last-Event-ID` or `after` resumes."""

    def judge(self, verdict: Literal["approve", "reject"], candidate: str, envelope: bytes) -> client.messages.Approved:
        """Sends a signed statement from `appliance.client.signing` to `approve` or `reject`."""
        statement = client.messages.SignedStatement.of(envelope)
        return self.approve(candidate, statement) if verdict == "approve" else self.reject(candidate, statement)

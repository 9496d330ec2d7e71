"""Messages of `assay status` and the screen's top line, which are requested most often."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from appliance.records.cycles import Cycle
from appliance.records.nights import Canary, CanaryState
from policies.canary import Counts, describe
from policies.contract.decision import Decision
from runtime.model import FrozenModel


class WorkerStatus(FrozenModel):
    """A process that trains, evaluates or works on jobs."""

    state: Literal["idle", "running", "backing_off"]
    pid: int | None = None
    doing: str = ""
    """`cycle <id>` or `jobs`; empty when idle."""
    since: str | None = None
    """Start of the current work; UTC, ISO 8601."""
    failures: int = 0
    """Consecutive crashes without progress."""
    last_failure: str = ""
    waits_for: str = ""
    """Condition that blocks further work; empty if none."""


class CanaryView(FrozenModel):
    """A promoted model on trial beside the champion, with its results so far."""

    canary: Canary
    counts: Counts
    odds: float
    """Odds to 1 that it is worse than the champion."""
    needed: float
    """Odds to 1 that cause a rollback."""
    closes: str | None
    """Earliest end of its window; None while it replays earlier jobs."""
    closes_latest: str | None

    @property
    def summary(self) -> str:
        """State of the canary's trial, in one sentence."""
        rules, counts = self.canary.rules, self.counts
        if self.canary.state is CanaryState.REPLAY:
            doing = f"replays earlier jobs, {counts.to_replay} to go"
        else:
            doing = (
                f"answers {100 * rules.share:g} % of the jobs, champion at {str(self.closes)[:16]} after "
                f"{rules.min_jobs} of them, by {str(self.closes_latest)[:16]} UTC at the latest"
            )
        return f"{doing}; {describe(counts, rules)}"


class GatewayStatus(FrozenModel):
    """State of the gateway, the endpoint for the owner's own agent."""

    enabled: bool
    """True if the daemon runs it."""
    base_url: str
    answers: bool
    """True if a process listens there now: the daemon's, or `assay gateway serve`."""
    tokens: int
    """Number of valid tokens."""

    @property
    def summary(self) -> str:
        """State of the gateway in words, with advice if it does not answer."""
        if self.answers:
            used = f"tokens in use: {self.tokens}" if self.tokens else "no token yet: `assay gateway token new NAME`"
            return f"at {self.base_url}, {used}"
        if self.enabled:
            return f"nothing answers at {self.base_url} yet: see `assay logs gateway`"
        return "disabled: set gateway.enabled and restart, or run `assay gateway serve`"


class Status(FrozenModel):
    version: str
    pid: int
    data: str
    """Path of the data folder."""
    started: str
    uptime_seconds: float
    worker: WorkerStatus
    """The worker that uses a model."""
    solvers: WorkerStatus = WorkerStatus(state="idle")
    """The worker of the job solvers, which runs beside it."""
    broker_news: str = ""
    """Newest event of the daemon's own broker since the start, with its time; empty if none."""
    cycles_wait_for: str = ""
    """Configuration fault that blocks every cycle, with advice; empty if none."""
    cycle: Cycle | None
    """The unfinished cycle, or else the newest; None before the first."""
    step_metrics: dict[str, float] = Field(default_factory=dict)
    """Metrics of the newest training step of that cycle."""
    aliases: dict[str, str | None]
    """Manifest digests, or None, of `champion`, `candidate`, `previous` and `canary`."""
    canary: CanaryView | None = None
    """State of the canary; None without one."""
    candidate_waits_for: str = ""
    """The candidate's waiting reason (a person, or something else) in a sentence; empty without one."""
    decision: Decision | None
    """Newest decision about the candidate; without a candidate, the newest of all."""
    jobs: dict[str, int]
    """Number of jobs by state."""
    next_cycle: str | None
    """Scheduled start of the next cycle; UTC, ISO 8601."""
    nights: str = ""
    """Pause of nights by a person, or why the unfinished cycle may not work now; empty if neither."""
    policy: str
    """Digest of the policy file in force."""
    last_event: int
    """Number of the newest event."""
    gateway: GatewayStatus | None = None
    tampered: str = ""
    """Part of the ledger or log that was changed from outside; work and decisions stop. Empty if none."""

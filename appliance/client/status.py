"""What `assay status` and the screen's first line need, apart from the other messages: it is asked for most often."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from appliance.records.cycles import Cycle
from appliance.records.service import Canary, CanaryState
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
    """When it started what it is doing; UTC, ISO 8601."""
    failures: int = 0
    """Crashes in a row without progress."""
    last_failure: str = ""
    waits_for: str = ""
    """What has to pass before work goes on; empty when nothing has to."""


class CanaryView(FrozenModel):
    """A promoted model beside the champion, and what the jobs say so far."""

    canary: Canary
    counts: Counts
    odds: float
    """To 1, that it is worse than the champion."""
    needed: float
    """Odds to 1 that take it back."""
    closes: str | None
    """When its window closes at the earliest; None while it works earlier jobs again."""
    closes_latest: str | None

    @property
    def summary(self) -> str:
        """Where it stands, in a sentence."""
        rules, counts = self.canary.rules, self.counts
        if self.canary.state is CanaryState.REPLAY:
            doing = f"works earlier jobs again, {counts.to_replay} to go"
        else:
            doing = (
                f"answers {100 * rules.share:g} % of the jobs, champion at {str(self.closes)[:16]} after "
                f"{rules.min_jobs} of them, at the latest at {str(self.closes_latest)[:16]} UTC"
            )
        return f"{doing}; {describe(counts, rules)}"


class GatewayStatus(FrozenModel):
    """The endpoint for the owner's own agent."""

    enabled: bool
    """Whether the daemon runs it."""
    base_url: str
    answers: bool
    """Whether anything listens there now: the daemon's, or `assay gateway serve`."""
    tokens: int
    """In use."""

    @property
    def summary(self) -> str:
        """What there is and, where it does not answer, what to do about it."""
        if self.answers:
            used = f"tokens in use: {self.tokens}" if self.tokens else "no token yet: `assay gateway token new NAME`"
            return f"at {self.base_url}, {used}"
        if self.enabled:
            return f"nothing answers at {self.base_url} yet: `assay logs gateway` says why"
        return "switched off: set gateway.enabled and restart, or run `assay gateway serve`"


class Status(FrozenModel):
    version: str
    pid: int
    data: str
    """The data folder."""
    started: str
    uptime_seconds: float
    worker: WorkerStatus
    """Of what takes a model."""
    solvers: WorkerStatus = WorkerStatus(state="idle")
    """Of the solvers of jobs, which work beside it."""
    broker_news: str = ""
    """The last that happened to the daemon's own broker since the start, and when; empty when nothing did."""
    cycles_wait_for: str = ""
    """What of the configuration keeps every cycle from beginning, and what to do; empty when nothing does."""
    cycle: Cycle | None
    """The unfinished cycle; otherwise the newest; None before the first."""
    step_metrics: dict[str, float] = Field(default_factory=dict)
    """Of the newest training step of that cycle."""
    aliases: dict[str, str | None]
    """`champion`, `candidate`, `previous` and `canary`: manifest digests, or None."""
    canary: CanaryView | None = None
    """How the canary stands; None when there is none."""
    candidate_waits_for: str = ""
    """What the candidate waits for, a person or something else, in a sentence; empty when there is none."""
    decision: Decision | None
    """The newest decision about the candidate; about anything when there is no candidate."""
    jobs: dict[str, int]
    """Jobs by state."""
    next_cycle: str | None
    """When the schedule starts the next cycle; UTC, ISO 8601."""
    policy: str
    """Digest of the policy file in force."""
    last_event: int
    """Number of the newest event."""
    gateway: GatewayStatus | None = None
    """None of a daemon of an earlier version."""
    tampered: str = ""
    """What of the ledger or the log somebody changed: nothing is begun or decided meanwhile. Empty when nothing."""

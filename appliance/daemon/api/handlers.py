"""Handlers of the control API: one for each endpoint of `appliance.client.api_client`, by name.

Handlers take the endpoint's parameters in order, and only translate: the work is in `daemon.service`,
`daemon.governance` and `daemon.views`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pydantic import BaseModel

from appliance.client.gateway import MadeToken, NewToken
from appliance.client.messages import (
    Backtest,
    LogPart,
    PolicyChange,
    PolicyInForce,
    PolicyText,
    Rollback,
    SignedStatement,
    StartCycle,
    ValidationEnvelope,
)
from appliance.client.nights import NoticesTried, PauseSchedule, ScheduleView
from appliance.curriculum.certificates import record_certificate
from appliance.daemon.api import read_models
from appliance.daemon.api.metrics import exposition
from appliance.daemon.api.read_models import ScreenViews, schedule_view, until_time
from appliance.daemon.api.requests import utf8
from appliance.daemon.contract import NotThereError
from appliance.daemon.coordination.core import Core
from appliance.daemon.governance import backtest
from appliance.daemon.governance.backtest import promotions
from appliance.daemon.nights.notices import Notice
from appliance.daemon.processes.child_log import log_part
from appliance.daemon.views import ledger_views as views
from appliance.learning.recipes.stages import MOST_TRACES
from appliance.records.cycles import Cycle
from appliance.records.evaluations import Evaluation
from appliance.records.jobs import MAX_JOB_FILE_BYTES
from appliance.settings.policy_files import parse_policy
from common.strict_json import Bounds
from curriculum.own.taskset import BOUNDS, MOST_BYTES
from policies.contract.decision import Decision

Answer = BaseModel | Sequence[BaseModel] | Mapping[str, str | None] | str
Handler = Callable[..., Answer]

LOGS = ("worker", "broker", "gateway")
"""Processes whose standard error is stored."""
TRIAL = Notice("Assay: test notice", "This is a test: notices of ended nights look like this.\n", {"trial": True})
BODY = Bounds(1_000_000)
LARGER_BODIES = {
    "submit": Bounds(8 << 20),  # a spec may include tests or sources
    "put_file": Bounds(MAX_JOB_FILE_BYTES),
    "put_traces": Bounds(MOST_TRACES),
    "collect": Bounds(MOST_BYTES),
    "add_taskset": BOUNDS,
}
"""Bounds of a body by endpoint; `BODY` for the others."""
WAKING = {
    *("start_cycle", "start_training", "resume_cycle", "submit", "retry", "resume"),
    *("approve", "evaluate", "pause_schedule", "resume_schedule"),
}
"""Endpoints that may create work."""


def handlers(core: Core, next_cycle: Callable[[], str | None], stop: Callable[[], None]) -> dict[str, Handler]:
    """Returns the handlers by endpoint; the event stream has its own. `stop` is called when a client shuts the daemon
    down."""
    ledger, cycles, jobs, nights = core.ledger, core.cycles, core.jobs, core.nights
    governance, gateway, screen = core.governance, core.gateway, ScreenViews(core)

    def log(process: str, after: int | None, limit: int) -> LogPart:
        if process not in LOGS:
            raise NotThereError(f"no such log: {process!r}", hint=f"use one of {', '.join(LOGS)}")
        return log_part(core.data / "logs" / f"{process}.log", after=after, lines=limit)

    def shutdown() -> dict[str, str | None]:
        stop()
        return {"stopping": None}

    def start_cycle(body: StartCycle) -> Cycle:
        started = cycles.start(body.kind, body.seed, anew=body.anew)
        nights.release(started.id)
        return started

    def pause_schedule(body: PauseSchedule) -> ScheduleView:
        nights.book.pause(until_time(body.until, core.now()))
        return schedule_view(core, 7)

    def resume_schedule() -> ScheduleView:
        nights.book.resume()
        return schedule_view(core, 7)

    def decisions(candidate: str | None, limit: int) -> list[Decision]:
        return ledger.decisions(candidate=governance.digest_of(candidate) if candidate else None, limit=limit)

    def evaluation(name: str) -> Evaluation:
        found = ledger.evaluation(name)
        if found is None:
            raise NotThereError(f"no such evaluation: {name!r}", hint="take its id from a decision")
        return found

    def signed(act: Callable[[str, bytes], BaseModel]) -> Handler:
        def handle(name: str, body: SignedStatement | ValidationEnvelope) -> BaseModel:
            return act(name, utf8(body.envelope))

        return handle

    def rollback(body: Rollback) -> Mapping[str, str | None]:
        return governance.rollback(body.person, body.reason, body.going)

    def change_policy(body: PolicyChange) -> PolicyInForce:
        return governance.change_policy(utf8(body.content), utf8(body.envelope))

    def try_policy(body: PolicyText) -> Backtest:
        policy = parse_policy(body.content.encode(), "the policy") if body.content else core.policy
        return backtest.backtest(ledger, policy)

    def new_token(body: NewToken) -> MadeToken:
        return gateway.new_token(body.name, consent=body.consent)

    return {
        "metrics": lambda: exposition(read_models.status_of(core, next_cycle())),
        "status": lambda: read_models.status_of(core, next_cycle()),
        "log": log,
        "events": lambda after, limit: views.numbered_events(ledger, after=after, limit=limit),
        "prune": core.retention.prune,
        "shutdown": shutdown,
        "cycles": ledger.cycles,
        "cycle": cycles.detail,
        "pass_counts": lambda name: core.rollouts.pass_counts(name, core.data),
        "rollouts": lambda where, limit: core.rollouts.rollout_views(where, limit=limit),
        "rollout": lambda name: core.rollouts.rollout_detail(name, core.data),
        "start_cycle": start_cycle,
        "start_training": cycles.train,
        "put_traces": cycles.put_traces,
        "cancel_cycle": cycles.cancel,
        "resume_cycle": cycles.resume,
        "schedule": lambda limit: schedule_view(core, limit),
        "promotions": lambda limit: promotions(ledger, core.trust.policies.of, limit=limit),
        "held_out": screen.held_out,
        "pause_schedule": pause_schedule,
        "resume_schedule": resume_schedule,
        "try_notices": lambda: NoticesTried(failed=core.notices.try_all(TRIAL)),
        "checkpoints": lambda cycle, before, limit: views.checkpoint_views(
            ledger, cycle=cycle, before=before, limit=limit
        ),
        "decisions": decisions,
        "evaluation": evaluation,
        "compare": governance.compare,
        "approve": signed(governance.approve),
        "reject": signed(governance.reject),
        "evaluate": lambda digest: cycles.evaluate(governance.digest_of(digest)),
        "rollback": rollback,
        "keys": core.trust.keys,
        "policy": core.trust.policies.in_force,
        "budget": lambda: backtest.budget(ledger, core.policy, core.now()),
        "change_key": lambda body: core.trust.change_key(utf8(body.envelope)),
        "change_policy": change_policy,
        "backtest": try_policy,
        "jobs": lambda limit: read_models.jobs_of(core, limit),
        "job": lambda name: read_models.job_detail(core, name),
        "open_validations": core.validations.waiting,
        "artifacts": ledger.artifacts,
        "submit": lambda body: read_models.as_it_stands(core, jobs.submit(body)),
        "cancel": jobs.cancel,
        "resume": jobs.resume,
        "retry": jobs.retry,
        "validate": signed(core.validations.record),
        "put_file": jobs.put_file,
        "put_certificate": lambda body: record_certificate(ledger.audit, body),
        "candidates": core.collected.candidates,
        "collect": core.collected.collect,
        "add_taskset": core.own_work.add,
        "remove_taskset": core.own_work.remove,
        "tokens": gateway.tokens,
        "sessions": gateway.sessions,
        "session": gateway.session,
        "new_token": new_token,
        "revoke_token": gateway.revoke_token,
        "delete_session": gateway.delete,
        "machine": screen.machine,
        "curves": screen.curves,
        "lineage": screen.lineage,
        "audit": screen.audit,
    }

"""API routes of models: checkpoints, evaluations, decisions, and people's approvals."""

from __future__ import annotations

from appliance.client.messages import Approved, CheckpointView, ModelComparison, Rollback, SignedStatement
from appliance.daemon.api.requests import Answer, ApiRequest, ApiRoute, get, post
from appliance.daemon.contract.errors import NotThereError
from appliance.daemon.coordination.core import Core
from appliance.daemon.views import ledger_views as views
from appliance.records.cycles import Cycle
from appliance.records.evaluations import Evaluation
from policies.contract.decision import Decision


def model_routes(core: Core) -> list[ApiRoute]:
    ledger, governance = core.ledger, core.governance

    def checkpoints(asked: ApiRequest) -> Answer:
        return views.checkpoint_views(
            ledger, cycle=asked.text("cycle"), before=asked.text("before"), limit=asked.limit(100)
        )

    def decisions(asked: ApiRequest) -> Answer:
        name = asked.text("candidate")
        candidate = governance.digest_of(name) if name else None
        return ledger.decisions(candidate=candidate, limit=asked.limit(20))

    def evaluation(asked: ApiRequest) -> Answer:
        found = ledger.evaluation(asked.path["id"])
        if found is None:
            raise NotThereError(f"no such evaluation: {asked.path['id']!r}", hint="take its id from a decision")
        return found

    def rollback(asked: ApiRequest) -> Answer:
        wanted = asked.body(Rollback)
        return governance.rollback(wanted.person, wanted.reason, wanted.going)

    return [
        get(
            "/v1/checkpoints",
            list[CheckpointView],
            checkpoints,
            "Checkpoints with their aliases.",
            ("cycle", "before", "limit"),
        ),
        get("/v1/decisions", list[Decision], decisions, "Decisions, newest first.", ("candidate", "limit")),
        get("/v1/evaluations/{id}", Evaluation, evaluation, "An evaluation, item by item."),
        get(
            "/v1/models/compare",
            ModelComparison,
            lambda asked: governance.compare(asked.needed("a"), asked.needed("b")),
            "Compares two models on the same sealed questions.",
            ("a", "b"),
            needs_query=True,
        ),
        post(
            "/v1/models/{digest}/approve",
            Approved,
            lambda asked: governance.approve(asked.path["digest"], asked.envelope()),
            "Records a person's approval.",
            SignedStatement,
        ),
        post(
            "/v1/models/{digest}/reject",
            Approved,
            lambda asked: governance.reject(asked.path["digest"], asked.envelope()),
            "Records a person's rejection.",
            SignedStatement,
        ),
        post(
            "/v1/models/{digest}/evaluate",
            Cycle,
            lambda asked: core.cycles.evaluate(governance.digest_of(asked.path["digest"])),
            "Evaluates a model against the champion again.",
        ),
        post("/v1/models/rollback", dict[str, str | None], rollback, "Puts the previous champion back.", Rollback),
    ]

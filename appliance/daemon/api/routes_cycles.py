"""API routes of cycles, trainings and rollouts."""

from __future__ import annotations

from appliance.client.messages import CycleDetail, RolloutDetail, RolloutView, StartCycle, StartTraining, StoredFile
from appliance.daemon.api.requests import Answer, ApiRequest, ApiRoute, get, post
from appliance.daemon.coordination.core import Core
from appliance.learning.recipes.stages import MOST_TRACES
from appliance.records.cycles import Cycle
from appliance.records.training import PassCount, RolloutFilter


def cycle_routes(core: Core) -> list[ApiRoute]:
    def rollouts(asked: ApiRequest) -> Answer:
        where = asked.filter(RolloutFilter)
        return core.rollouts.rollout_views(where, limit=asked.limit(50))

    def start(asked: ApiRequest) -> Answer:
        wanted = asked.body(StartCycle)
        started = core.cycles.start(wanted.kind, wanted.seed, anew=wanted.anew)
        core.nights.release(started.id)
        return started

    return [
        get(
            "/v1/cycles",
            list[Cycle],
            lambda asked: core.ledger.cycles(asked.limit(20)),
            "Cycles, newest first.",
            ("limit",),
        ),
        get(
            "/v1/cycles/{id}",
            CycleDetail,
            lambda asked: core.cycles.detail(asked.path["id"]),
            "A cycle with its steps.",
        ),
        get(
            "/v1/cycles/{id}/passes",
            list[PassCount],
            lambda asked: core.rollouts.pass_counts(asked.path["id"], core.data),
            "Pass counts of its rollouts, by purpose, taskset and level.",
        ),
        get("/v1/rollouts", list[RolloutView], rollouts, "Judged rollouts, newest first.", RolloutFilter),
        get(
            "/v1/rollouts/{id:path}",
            RolloutDetail,
            lambda asked: core.rollouts.rollout_detail(asked.path["id"], core.data),
            "A rollout with its conversation as text.",
        ),
        post("/v1/cycles", Cycle, start, "Starts a cycle, or resumes the unfinished one.", StartCycle),
        post(
            "/v1/trainings",
            Cycle,
            lambda asked: core.cycles.train(asked.body(StartTraining)),
            "Starts a training in stages.",
            StartTraining,
        ),
        post(
            "/v1/traces",
            StoredFile,
            lambda asked: core.cycles.put_traces(asked.content),
            "Stores conversations for a training stage.",
            bytes,
            MOST_TRACES,
        ),
        post("/v1/cycles/{id}/cancel", Cycle, lambda asked: core.cycles.cancel(asked.path["id"]), "Cancels a cycle."),
        post(
            "/v1/cycles/{id}/resume",
            Cycle,
            lambda asked: core.cycles.resume(asked.path["id"]),
            "Resumes a parked cycle.",
        ),
    ]

"""API routes of the owner's tasksets and of certificates."""

from __future__ import annotations

from appliance.client.messages import OwnTasksetView
from appliance.client.own_tasks import CollectedRows, TaskCandidate
from appliance.curriculum.certificates import record_certificate
from appliance.daemon.api.requests import ApiRoute, get, post
from appliance.daemon.coordination.core import Core
from curriculum.certification.certificate import Certificate
from curriculum.own.taskset import MOST_BYTES, OwnContent


def curriculum_routes(core: Core) -> list[ApiRoute]:
    return [
        post(
            "/v1/certificates",
            Certificate,
            lambda asked: record_certificate(core.ledger.audit, asked.body(Certificate)),
            "Signs a certification's report into the audit log.",
            Certificate,
        ),
        get(
            "/v1/own/candidates",
            list[TaskCandidate],
            lambda asked: core.collected.candidates(),
            "Verified work that may become tasks.",
        ),
        post(
            "/v1/own/collected",
            OwnTasksetView,
            lambda asked: core.collected.collect(asked.body(CollectedRows)),
            "Adds checked candidates, by key, to own/jobs or own/sessions.",
            CollectedRows,
            MOST_BYTES,
        ),
        post(
            "/v1/tasksets",
            OwnTasksetView,
            lambda asked: core.own_work.add(asked.body(OwnContent)),
            "Adds a taskset of the owner.",
            OwnContent,
            MOST_BYTES,
        ),
        post(
            "/v1/tasksets/{name:path}/remove",
            OwnTasksetView,
            lambda asked: core.own_work.remove(asked.path["name"]),
            "Removes a taskset of the owner.",
        ),
    ]

"""API routes of the daemon itself: status, metrics, logs, events, shutdown."""

from __future__ import annotations

from collections.abc import Callable

from appliance.client.messages import LogPart, NumberedEvent
from appliance.client.retention import Prune, Pruned
from appliance.client.status import Status
from appliance.daemon.api import status
from appliance.daemon.api.metrics import exposition
from appliance.daemon.api.requests import Answer, ApiRequest, ApiRoute, MetricsText, get, post
from appliance.daemon.contract.errors import NotThereError
from appliance.daemon.coordination.core import Core
from appliance.daemon.processes.child_log import log_part
from appliance.daemon.views import ledger_views as views

LOGS = ("worker", "broker", "gateway")
"""Processes whose standard error is stored."""


def service_routes(core: Core, next_cycle: Callable[[], str | None], stop: Callable[[], None]) -> list[ApiRoute]:
    """Declares the routes. `stop` is called when a client shuts the daemon down."""

    def log(asked: ApiRequest) -> Answer:
        file = core.data / "logs" / f"{asked.path['process']}.log"
        if asked.path["process"] not in LOGS:
            raise NotThereError(f"no such log: {asked.path['process']!r}", hint=f"use one of {', '.join(LOGS)}")
        return log_part(file, after=asked.optional_number("after"), lines=asked.limit(100))

    def events(asked: ApiRequest) -> Answer:
        return views.numbered_events(core.ledger, after=asked.number("after", 0, high=2**62), limit=asked.limit(200))

    def shutdown(asked: ApiRequest) -> Answer:
        stop()
        return {"stopping": None}

    def metrics(asked: ApiRequest) -> Answer:
        return MetricsText(exposition(status.status_of(core, next_cycle())))

    return [
        get("/metrics", MetricsText, metrics, "Figures for Prometheus."),
        get("/v1/status", Status, lambda asked: status.status_of(core, next_cycle()), "Running and waiting work."),
        get("/v1/logs/{process}", LogPart, log, "Log lines of a child process.", ("after", "limit")),
        get("/v1/events", list[NumberedEvent], events, "Events after a number, ascending.", ("after", "limit")),
        post(
            "/v1/prune",
            Pruned,
            lambda asked: core.retention.prune(asked.body(Prune)),
            "Drops the tokens of old rollouts.",
            Prune,
        ),
        post("/v1/shutdown", dict[str, str | None], shutdown, "Stops the daemon; it answers first."),
    ]

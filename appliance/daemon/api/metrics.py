"""Prometheus metrics of the core, in text format 0.0.4. Read-only.

    curl --unix-socket DATA/run/assay.sock http://localhost/metrics

Names follow prometheus.io/docs/practices/naming: base units, a word for the quantity, `_total` for counters. Each
figure of a training step is a metric of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from appliance.client.status import Status
from appliance.records.cycles import CycleState
from appliance.records.jobs import JobState

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
UNFIT = re.compile(r"[^a-zA-Z0-9_]")


class StatusCollector(Collector):
    def __init__(self, status: Status) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        status = self._status
        yield _gauge("assay_info", "Running version.", 1, version=status.version)
        yield _gauge("assay_uptime_seconds", "Time since the daemon started.", status.uptime_seconds)
        yield from _disk(Path(status.data))
        yield _gauge("assay_ledger_sound", "1 if the ledger matches the signed log, otherwise 0.", not status.tampered)
        # States without jobs too: a series must not come and go.
        yield _by("assay_jobs", "Jobs by state.", "state", {one.value: 0 for one in JobState} | status.jobs)
        yield _gauge("assay_worker_running", "1 if a worker is running.", status.worker.state == "running")
        yield _gauge("assay_worker_failures", "Consecutive crashes without progress.", status.worker.failures)
        yield _gauge("assay_worker_waiting", "1 if work waits for an obstacle to pass.", bool(status.worker.waits_for))
        yield _gauge("assay_cycles_waiting", "1 if the configuration prevents cycles.", bool(status.cycles_wait_for))
        waits = status.aliases.get("candidate") is not None and status.decision is not None
        yield _gauge("assay_candidate_waiting", "1 if a candidate was decided on and is not in service.", waits)
        if status.next_cycle is not None:
            due = datetime.fromisoformat(status.next_cycle).timestamp()
            yield _gauge("assay_next_cycle_timestamp_seconds", "Time of the next scheduled cycle.", due)
        yield CounterMetricFamily("assay_events", "Events on record.", status.last_event)
        models = {name: digest for name, digest in status.aliases.items() if digest is not None}
        for name, digest in models.items():
            yield _gauge(f"assay_{name}_info", f"Model with the alias {name}.", 1, model=digest[:12])
        if status.canary is not None:
            yield _gauge("assay_canary_odds", "Odds that the canary is worse than the champion.", status.canary.odds)
        if status.cycle is not None:
            running = status.cycle.state is CycleState.RUNNING
            yield _gauge("assay_cycle_running", "1 if the newest cycle is unfinished.", running, cycle=status.cycle.id)
            yield _by("assay_cycle_seconds", "Duration of the newest cycle, by phase.", "phase", status.cycle.seconds)
        for name, value in status.step_metrics.items():
            fit = UNFIT.sub("_", name)
            yield _gauge(f"assay_training_{fit}", f"`{fit}` of the newest trained step.", value)


def exposition(status: Status) -> str:
    """Renders all metrics, including those of this process."""
    registry = CollectorRegistry()
    registry.register(StatusCollector(status))
    ProcessCollector(registry=registry)
    return generate_latest(registry).decode()


def _disk(data: Path) -> Iterator[Metric]:
    """Yields free space and the size of the ledger with its journal; nothing if unreadable."""
    try:
        found = os.statvfs(data)
        ledger = sum(one.stat().st_size for one in data.glob("ledger.sqlite3*") if "before" not in one.name)
    except OSError:
        return
    yield _gauge("assay_disk_free_bytes", "Free space on the data folder's disk.", found.f_bavail * found.f_frsize)
    yield _gauge("assay_ledger_bytes", "Size of the ledger with its journal.", ledger)


def _gauge(name: str, text: str, value: float, **labels: str) -> Metric:
    made = GaugeMetricFamily(name, text, labels=list(labels))
    made.add_metric(list(labels.values()), float(value))
    return made


def _by(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    made = GaugeMetricFamily(name, text, labels=[label])
    for one, value in values.items():
        made.add_metric([one], float(value))
    return made

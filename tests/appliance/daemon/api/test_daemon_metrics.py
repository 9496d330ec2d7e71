"""A Prometheus server is told what a person is."""

from __future__ import annotations

from http.client import HTTPConnection
from socket import AF_UNIX, socket

from prometheus_client.parser import text_string_to_metric_families

from appliance.client.status import Status, WorkerStatus
from appliance.daemon.api.metrics import exposition
from appliance.records.cycles import Cycle, CycleState
from appliance.records.jobs import JobState


def figures(text: str) -> dict[tuple[str, ...], float]:
    """By name and labels' values."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_socket_answers_with_what_the_status_says(start) -> None:
    daemon = start()
    status = daemon.ready().status()
    connection = HTTPConnection("assay")
    connection.sock = socket(AF_UNIX)
    connection.sock.connect(str(daemon.socket))
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = figures(answer.read().decode())
    assert found["assay_info", status.version] == 1
    assert found["assay_ledger_sound",] == 1
    assert found["assay_worker_running",] == 0
    assert found["assay_disk_free_bytes",] > 0
    assert found["assay_ledger_bytes",] > 0
    assert found["assay_candidate_waiting",] == 0
    assert found["process_cpu_seconds_total",] > 0


def test_a_running_cycle_is_told_with_its_phases_and_its_steps_figures_whatever_they_are_called() -> None:
    cycle = Cycle(
        id='night "1"\n',
        kind="night",
        seed=1,
        state=CycleState.RUNNING,
        phase="training",
        seconds={"training": 12.5},
        plan={},
        created="2026-11-23T00:00:00Z",
        updated="2026-11-23T00:00:00Z",
    )
    status = Status(
        version="1",
        pid=1,
        data="/d",
        started="2026-11-23T00:00:00Z",
        uptime_seconds=3.0,
        worker=WorkerStatus(state="running"),
        decision=None,
        next_cycle="2026-11-24T01:00:00+00:00",
        cycles_wait_for="model.path names nothing",
        cycle=cycle,
        step_metrics={"success": 0.25, "learning_ratio": 1.0, "odd name{}": 2.0},
        aliases={"champion": "a" * 64, "candidate": None},
        jobs={"queued": 3},
        policy="p",
        last_event=17,
        tampered="one row",
    )
    found = figures(exposition(status))
    assert found["assay_cycle_running", 'night "1"\n'] == 1
    assert found["assay_cycle_seconds", "training"] == 12.5
    assert found["assay_training_success",] == 0.25
    assert found["assay_training_odd_name__",] == 2.0
    assert {state: found["assay_jobs", state] for state in JobState} == dict.fromkeys(JobState, 0) | {"queued": 3}
    assert found["assay_champion_info", "a" * 12] == 1
    assert found["assay_events_total",] == 17
    assert found["assay_ledger_sound",] == 0
    assert found["assay_next_cycle_timestamp_seconds",] == 1795482000
    assert found["assay_cycles_waiting",] == 1
    assert found["assay_worker_waiting",] == 0

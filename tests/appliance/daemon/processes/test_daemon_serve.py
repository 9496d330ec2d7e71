"""`assay serve` as a person meets it: started, asked, stopped, killed, started again."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from daemon_kit import until

from appliance.client import (
    ApiClient,
    ApiError,
    DaemonNotRunning,
    DaemonSilent,
    JobState,
    PredicateSpec,
    Rollback,
    StartCycle,
    SubmitJob,
)
from verifiers.checklists.spec import ChecklistSpec

WAITS = ChecklistSpec.model_validate({"items": [{"item": "length", "name": "length", "target": 60}]})
QUESTION = SubmitJob(question="a text", spec=WAITS)
"""No solver tries it, so that it waits for a model."""


def test_on_nothing_it_says_what_it_is_and_stops_cleanly_on_sigterm(start, data) -> None:
    daemon = start(bare=True, fresh=True)
    api = daemon.ready()
    status = api.status()
    assert (status.pid, status.data, status.worker.state) == (daemon.process.pid, str(data), "idle")
    assert status.aliases == {"champion": None, "candidate": None, "previous": None, "canary": None}
    output = daemon.end(signal.SIGTERM)
    assert daemon.process.returncode == 0, output
    assert "Traceback" not in output
    assert not daemon.socket.exists()


def test_it_says_that_nights_begin_by_themselves_and_ctrl_c_stops_it_cleanly_too(start, assay) -> None:
    later = (datetime.now(UTC) + timedelta(hours=6)).strftime("%H:00")
    window = {"ASSAY_SCHEDULE__NIGHTLY": f"{later}-{later[:2]}:30", "ASSAY_SCHEDULE__TIMEZONE": "UTC"}
    daemon = start(ASSAY_SCHEDULE__ENABLED="true", **window)
    daemon.ready()
    logs = assay("logs", "worker")
    assert (logs.stdout, logs.stderr) == ("", "the worker has logged nothing yet\n")
    output = daemon.end(signal.SIGINT)
    assert (daemon.process.returncode, "Traceback" in output) == (0, False)
    said = rf"nights of training begin automatically .*assay schedule pause.* next=\S+T{later}"
    assert re.search(said, output), output


def test_a_client_can_ask_it_to_stop(start, assay) -> None:
    daemon = start()
    daemon.ready()
    assert assay("stop").returncode == 0
    assert daemon.process.wait(timeout=120) == 0


def test_a_second_daemon_on_the_same_folder_is_refused_with_the_pid_of_the_first(start, assay) -> None:
    daemon = start()
    api = daemon.ready()
    second = assay("serve")
    assert second.returncode == 5
    assert f"pid {daemon.process.pid}" in second.stderr
    assert "Traceback" not in second.stderr
    assert api.status().pid == daemon.process.pid
    assert not (daemon.data / "run" / "boxes").exists(), "no broker was begun for it"


def test_after_kill_9_the_next_start_replaces_the_socket_and_has_every_job(start) -> None:
    daemon = start()
    api = daemon.ready()
    job = api.submit(QUESTION)
    daemon.end(signal.SIGKILL)
    assert daemon.socket.exists()
    again = start()
    api = again.ready()
    assert api.job(job.id).job == job
    assert api.status().jobs == {"queued": 1}


def test_a_socket_on_which_somebody_else_listens_is_not_taken_from_them(data, assay) -> None:
    place = data.parent / "other.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(place))
        other.listen()
        refused = assay("serve", ASSAY_API__SOCKET=str(place))
    assert (refused.returncode, "another program listens" in refused.stderr) == (5, True)
    assert place.exists()
    assert not (data / "run").exists(), "nothing was begun"


def test_a_file_in_the_socket_s_place_is_left_alone(data, assay) -> None:
    place = data.parent / "precious"
    place.write_text("precious")
    refused = assay("serve", ASSAY_API__SOCKET=str(place))
    assert (refused.returncode, "is not a socket" in refused.stderr) == (2, True)
    assert place.read_text() == "precious"
    assert not (data / "run").exists(), "nothing was begun"


def test_a_socket_path_that_is_too_long_is_refused_with_the_variable_that_shortens_it(data, assay) -> None:
    refused = assay("serve", ASSAY_API__SOCKET=f"/tmp/{'x' * 100}/assay.sock")
    assert refused.returncode == 2
    assert "ASSAY_API__SOCKET" in refused.stderr
    assert not (data / "run").exists(), "nothing was begun"
    client = assay("status", ASSAY_API__SOCKET=f"/tmp/{'x' * 100}/assay.sock")
    assert (client.returncode, "Traceback" in client.stderr) == (3, False)


def test_without_a_daemon_a_command_says_how_to_start_one(assay) -> None:
    failed = assay("status")
    assert failed.returncode == 3
    assert "assay serve" in failed.stderr


def test_a_socket_that_nobody_answers_is_given_up_after_the_timeout(data) -> None:
    place = data.parent / "silent.sock"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(place))
        silent.listen()
        api = ApiClient(place, timeout_seconds=0.3)
        with pytest.raises(DaemonSilent, match=r"did not answer within 0\.3 s") as met:
            api.status()
    assert (met.value.exit_code, str(met.value).startswith("too busy")) == (6, True)
    api = ApiClient(place)
    with pytest.raises(DaemonNotRunning):
        api.status()


def test_an_unknown_key_of_the_configuration_is_named_and_nothing_starts(data, assay) -> None:
    refused = assay("serve", ASSAY_SANDBOX__MEMORY_MIBS="100")
    assert refused.returncode == 2
    assert "sandbox.memory_mibs" in refused.stderr
    assert not data.exists()


def test_a_broken_policy_file_keeps_the_daemon_from_starting(data, assay) -> None:
    data.mkdir()
    (data / "policy.toml").write_text("version = 1\n[improvment]\n")
    refused = assay("serve")
    assert (refused.returncode, "improvment" in refused.stderr) == (2, True)


def test_a_data_folder_that_cannot_be_made_is_an_answer_and_no_traceback(data, assay) -> None:
    data.parent.joinpath("file").write_text("")
    refused = assay("serve", ASSAY_DATA=str(data.parent / "file" / "data"))
    assert (refused.returncode, "Traceback" in refused.stderr) == (5, False)


def test_the_socket_is_for_its_owner_alone(standing) -> None:
    assert stat.S_IMODE(standing.socket.stat().st_mode) == 0o600


@pytest.mark.skipif(os.getuid() != 0, reason="another user can only be tried by root")
def test_another_user_is_refused_even_where_the_file_s_mode_would_let_them_in(start, data) -> None:
    daemon = start()
    daemon.ready()
    for folder in (data.parent, data, data / "run"):
        folder.chmod(0o755)
    daemon.socket.chmod(0o666)
    ask = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
        "s.sendall(b'GET /v1/status HTTP/1.1\\r\\nhost: a\\r\\n\\r\\n'); print(s.recv(65536).decode())"
    )
    stranger = subprocess.run(
        ["/usr/bin/python3", "-c", ask, str(daemon.socket)],
        user=65534,
        group=65534,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "another user" in stranger.stdout, stranger.stderr
    assert str(daemon.process.pid) not in stranger.stdout


def test_every_refusal_is_a_message_a_hint_and_an_exit_code(standing) -> None:
    api = standing.ready()
    with pytest.raises(ApiError, match="without a check") as met:
        api.submit(SubmitJob(question="what is the weather?"))
    assert (met.value.exit_code, "--check" in met.value.hint) == (2, True)
    with pytest.raises(ApiError) as met:
        api.submit(SubmitJob(question="find x", spec=PredicateSpec(predicate="1 == 1")))
    assert (met.value.exit_code, bool(met.value.hint)) == (2, True)
    for ask in (lambda: api.job("none"), lambda: api.cycle("none"), lambda: api.evaluation("none")):
        with pytest.raises(ApiError, match="no such") as met:
            ask()
        assert met.value.exit_code == 2
    for name in ("", "..", "a/../../status", "a?b#c"):
        with pytest.raises(ApiError) as met:
            api.job(name)
        assert met.value.exit_code == 2
    with pytest.raises(ApiError, match="no earlier champion") as met:
        api.rollback(Rollback(person="ada"))
    assert (met.value.exit_code, met.value.refusal) == (4, None)


def test_bytes_that_are_no_request_are_answered_and_hurt_nobody(standing) -> None:
    api = standing.ready()
    for junk in (
        b"\x00\xff" * 1000,
        b'POST /v1/jobs HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{"a": [[[',
        b"POST /v1/jobs HTTP/1.1\r\nhost: a\r\ncontent-length: 100001000\r\n\r\n" + b"[" * 1_100_000,
        b"GET /v1/events?after=1e9 HTTP/1.1\r\nhost: a\r\n\r\n",
        b"DELETE /v1/jobs HTTP/1.1\r\nhost: a\r\n\r\n",
    ):
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(120)
            line.connect(str(standing.socket))
            line.sendall(junk)
            assert line.recv(65536).startswith((b"HTTP/1.1 400", b"HTTP/1.1 405", b"HTTP/1.1 413"))
    assert api.status().pid == standing.process.pid


def test_an_idle_daemon_carries_no_model_and_no_algebra(start, data) -> None:
    daemon = start(
        "import sys\n"
        "from appliance.cli.main import main\n"
        "sys.argv = ['assay', 'serve', '--paused']\n"
        "try:\n    main()\n"
        "finally:\n    print('MODULES', ' '.join(sys.modules))\n",
        fresh=True,
    )
    api = daemon.ready()
    api.submit(QUESTION)
    assert api.status().nights == "nights are paused by a person"
    memory = next(
        int(line.split()[1]) / 1024
        for line in Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines()
        if line.startswith("VmRSS")
    )
    modules = daemon.end().partition("MODULES ")[2].split()
    assert "appliance.daemon.coordination.core" in modules
    assert "verifiers.registry" in modules
    heavy = {"torch", "transformers", "sympy", "numpy", "tokenizers", "textual"}
    assert heavy.isdisjoint(name.partition(".")[0] for name in modules)
    assert memory < 250, f"{memory:.0f} MiB"


def test_events_and_jobs_are_listed_in_order_and_numbered(standing) -> None:
    api = standing.ready()
    jobs = [api.submit(QUESTION.model_copy(update={"seed": seed})) for seed in range(3)]
    assert [job.id for job in api.jobs()][:3] == [job.id for job in reversed(jobs)]
    assert {job.state for job in jobs} == {JobState.QUEUED}
    events = api.events()
    assert [event.number for event in events] == sorted(event.number for event in events)

    def nothing_came_meanwhile() -> bool:
        last = api.status().last_event
        return [event.number for event in api.events(after=last - 1)] == [last] and api.events(after=last) == []

    until(nothing_came_meanwhile)  # what earlier tests asked of it may still be worked on


def test_a_worker_that_cannot_begin_fails_the_cycle_and_not_the_daemon(start, data) -> None:
    daemon = start(
        "import os\n"
        "from pathlib import Path\n"
        "from appliance.config.configuration import Settings\n"
        "from appliance.daemon.api.serve import serve\n"
        f"settings = Settings.load({{}}, environ=dict(os.environ), etc_dir=Path({str(data)!r}))\n"
        f"serve(settings, worker=[{sys.executable!r}, '-c', 'raise SystemExit(2)'])\n"
    )
    api = daemon.ready()
    cycle = api.start_cycle(StartCycle(seed=4))
    until(lambda: api.cycle(cycle.id).cycle.state != "running")
    found = api.cycle(cycle.id).cycle
    assert (found.state, found.seed) == ("failed", 4)
    assert "status 2" in found.failure
    until(lambda: api.status().worker.state == "idle")  # it is told of the cycle first
    assert any(" failed: " in event.event.text for event in api.events())

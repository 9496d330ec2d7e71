"""The broker as a process: quick to start, ends with its client, and however it ends nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from broker_kit import JAIL, BrokerProbe, Settings, call, child_broker, opened, profile, python, result
from guest_roots import without_userland
from sandbox_groups import groups

from runtime.backends.lease import state_mark, working_folder
from runtime.backends.sweep import sweep
from runtime.broker import ask
from runtime.broker.client import start_private
from runtime.errors import InfrastructureError, RefusedError
from runtime.guest.wire import Op
from runtime.profile import BackendName, Cause
from runtime.settings import BrokerSettings

CLIENT = """import sys, time
from broker_kit import *
probe = BrokerProbe.own(BrokerSettings.model_validate_json(sys.argv[1]))
handle = opened(probe.launch(profile()))
probe.snapshot(handle)
probe.launch(JAIL)
for _ in range(4):
    probe.begin_launch(JAIL)
print(probe.process.pid, flush=True)
time.sleep(600)
"""


def gone(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def assert_nothing_is_left(settings: BrokerSettings, *, seconds: float = 120.0) -> None:
    mark, working = state_mark(settings.state_dir), working_folder(settings.state_dir)
    deadline = time.monotonic() + seconds
    while True:
        found = groups(f"assay-{mark}.*")
        folders = list(working.iterdir()) if working.is_dir() else []
        live = list((settings.snapshot_dir or settings.root_dir).glob("live/*"))
        left = [str(path) for path in (*found, *folders, *live) if path.name not in ("kept", "sock", "sock.lock")]
        if not left:
            return
        assert time.monotonic() < deadline, left
        time.sleep(0.02)


def test_a_private_broker_answers_soon_after_its_start(make_settings: Settings) -> None:
    settings = make_settings()
    with BrokerProbe.own(settings):
        pass  # the guests' root is built by the first
    begun = time.monotonic()
    with BrokerProbe.own(settings) as probe:
        probe.stats()
        assert time.monotonic() - begun < 60.0  # 0.2 s where nothing else runs


def test_the_broker_loads_nothing_heavy() -> None:
    code = "import json, runtime.broker.serve, sys; print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=True, cwd="/", timeout=120)
    heavy = {"torch", "numpy", "asyncio", "ssl", "httpx", "sqlalchemy", "starlette", "rich", "multiprocessing"}
    assert heavy & set(json.loads(answer.stdout)) == set()


def test_a_private_broker_ends_with_its_client_also_when_that_is_killed(make_settings: Settings) -> None:
    settings = make_settings()
    kit = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, settings.model_dump_json()],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": kit},
    )
    assert client.stdout is not None
    broker = int(client.stdout.readline())
    client.kill()
    client.wait(120)
    client.stdout.close()
    assert gone(broker, 120.0)  # one second where nothing else runs
    assert_nothing_is_left(settings)


def test_a_broker_that_is_killed_ends_every_wait_and_leaves_nothing_after_the_next_start(
    make_settings: Settings,
) -> None:
    settings = make_settings()
    probe = BrokerProbe.own(settings)
    assert probe.process is not None
    own, jail = opened(probe.launch(profile())), probe.launch(JAIL)
    probe.snapshot(own)
    waiting = [probe.begin_launch(profile(memory_mib=210 + number)) for number in range(6)]
    measured = probe.begin(lambda done: probe.client.snapshot(own, durable=True, label="", done=done))
    probe.process.send_signal(signal.SIGKILL)
    assert all(isinstance(answer.result(120), InfrastructureError) for answer in [*waiting, measured])
    probe.gone.result(120)
    with pytest.raises(BrokenPipeError):
        os.write(own.requests, b"anybody there?")
    for handle in (own, jail):
        os.set_blocking(handle.replies, True)
        assert os.read(handle.replies, 1) == b""
        assert probe.end(handle).cause is Cause.DIED
    probe.close()
    with BrokerProbe.own(settings) as after:
        assert python(opened(after.launch(profile())), "print(1)") == "1\n"
    assert_nothing_is_left(settings)


def test_a_signal_ends_it_in_order(make_settings: Settings, tmp_path: Path) -> None:
    settings = make_settings()
    for number in (signal.SIGTERM, signal.SIGINT):
        process = child_broker(settings, tmp_path / "sock")
        with BrokerProbe.at(tmp_path / "sock") as probe:
            handle = probe.launch(JAIL)
            taking = probe.begin_launch(profile(memory_mib=220))
            process.send_signal(number)
            assert process.wait(120) == 0
            assert isinstance(taking.result(120), InfrastructureError)
            with pytest.raises((EOFError, BrokenPipeError)):
                call(handle, Op.PING)
        assert not (tmp_path / "sock").exists()
        assert_nothing_is_left(settings)


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "Invalid JSON"), ("{}", "state_dir"), ('{"state_dir": "/x", "root_dir": "/y", "other": 1}', "other")],
)
def test_settings_that_cannot_work_end_it_with_two(tmp_path: Path, text: str, why: str) -> None:
    command = [sys.executable, "-I", "-m", "runtime.broker", "--settings", "-", "--socket", str(tmp_path / "sock")]
    answer = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, cwd="/")
    assert answer.returncode == 2
    assert why in answer.stderr


def test_its_log_can_be_json_a_line_an_event(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-m", "runtime.broker", "--settings", "-", "--socket", str(tmp_path / "sock")]
    command += ["--log", "json"]
    answer = subprocess.run(command, input="{}", capture_output=True, text=True, timeout=120, cwd="/")
    assert answer.returncode == 2
    (line,) = map(json.loads, answer.stderr.splitlines())
    assert (line["level"], line["logger"]) == ("error", "runtime.broker")
    assert "state_dir" in line["event"]
    assert line["timestamp"].endswith("Z")


def test_what_cannot_be_is_told_to_the_client_with_a_hint(make_settings: Settings, capfd: object) -> None:
    with BrokerProbe.own(make_settings(backends=(BackendName.GVISOR,), runsc="/nowhere/runsc")) as probe:
        with pytest.raises(RefusedError, match="no runsc at /nowhere/runsc") as refused:
            probe.launch(profile())
        assert "install" in refused.value.hint.lower()
        assert probe.process is not None
        assert probe.process.wait(120) == 1


def test_one_backend_that_does_not_work_does_not_stop_the_other(make_settings: Settings, tmp_path: Path) -> None:
    process = child_broker(make_settings(runsc="/nowhere/runsc"), tmp_path / "sock")
    try:
        assert set(ask(tmp_path / "sock").backends) == {"nsjail"}
        with BrokerProbe.at(tmp_path / "sock") as probe:
            probe.end(probe.launch(JAIL))
            with pytest.raises(RefusedError, match="no runsc at"):
                probe.launch(profile())
    finally:
        process.terminate()
        process.wait(120)


def test_a_broken_golden_image_is_made_again(make_settings: Settings, root_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "roots").mkdir()
    for root in without_userland(root_dir):
        subprocess.run(["cp", "-al", root, tmp_path / "roots"], check=True)
    settings = make_settings(root_dir=tmp_path / "roots")
    wanted = profile("shared")
    with BrokerProbe.own(settings) as probe:
        handles = [probe.launch(wanted) for _ in range(2)]
        figures = probe.stats()
        assert (figures["launches_cold"], figures["launches_restored"] >= 1) == (1, True)
        for handle in handles:
            probe.end(handle)
    images = [folder for folder in (tmp_path / "roots/images").iterdir() if not folder.name.startswith("new-")]
    assert len(images) == 1
    with BrokerProbe.own(settings) as probe:  # as it was
        probe.end(probe.launch(wanted))
        assert probe.stats()["launches_cold"] == 0
    pages = max((images[0] / "image").iterdir(), key=lambda path: path.stat().st_size)
    pages.write_bytes(b"\0" * pages.stat().st_size)
    with BrokerProbe.own(settings) as probe:
        asked = [probe.begin_launch(wanted) for _ in range(3)]
        for answer in asked:
            assert python(result(answer), "print(1)") == "1\n"
        assert probe.stats()["launches_cold"] == 1
        assert probe.stats()["failed_starts"] == 0
    manifest = json.loads((images[0] / "manifest.json").read_text())
    (images[0] / "manifest.json").write_text(json.dumps(manifest | {"label": 1}))
    with BrokerProbe.own(settings) as probe:
        assert python(probe.launch(wanted), "print(1)") == "1\n"
    assert_nothing_is_left(settings)


def test_a_sweep_by_message_finds_what_the_dead_left(make_settings: Settings, tmp_path: Path) -> None:
    settings = make_settings()
    with BrokerProbe.own(settings) as probe:
        dead = start_private(settings)
        victim = BrokerProbe(*dead)
        victim.launch(JAIL)
        assert victim.process is not None
        victim.process.kill()
        victim.process.wait()
        victim.close()
        swept = probe.asked(probe.client.sweep)
        while not swept.owners:  # as long as a process of the dead still ends, it is theirs; a test has five minutes
            time.sleep(0.2)
            swept = probe.asked(probe.client.sweep)
        assert (swept.owners, swept.folders >= 1) == (1, True)
        assert probe.asked(probe.client.sweep).owners == 0
        probe.end(probe.launch(JAIL))
    assert sweep(settings.state_dir).owners == 0
    assert_nothing_is_left(settings)

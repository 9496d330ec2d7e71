"""A cluster by hand: the first machine, who is there, a night's sessions on it, and the way out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import guest_roots as building
import pytest
from forked_commands import run_forked

from appliance.config.configuration import Settings
from appliance.config.places import cluster_settings, runtime_settings
from appliance.settings.config_layers import ConfigError
from appliance.worker.setup.context import sessions
from runtime.cluster import ClusterSessions
from runtime.settings import ClusterSettings

ASSAY = (sys.executable, "-m", "appliance.cli.main")
HERE = f"127.{1 + os.getpid() % 250}.{os.getpid() // 250 % 250}.251"
PORT = 27379


@pytest.fixture
def data() -> Iterator[Path]:
    """Short, because Ray makes sockets below it."""
    made = Path(tempfile.mkdtemp(prefix="ac", dir="/tmp"))
    yield made
    shutil.rmtree(made)


def environ(data: Path, **more: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "XDG_C", "XDG_D"))}
    return {**inherited, "ASSAY_DATA": str(data), "XDG_CONFIG_HOME": str(data / "config"), **more}


def run(data: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    result = run_forked(("cluster", *arguments), environ(data, **more), timeout=120)
    return subprocess.CompletedProcess(result.args, result.returncode, result.stdout.decode(), result.stderr.decode())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a broker")
def test_a_cluster_of_one_machine_from_its_start_to_its_end(data: Path, guest_roots: Path) -> None:
    building.lend(guest_roots, data / "run")
    first = subprocess.Popen(
        [*ASSAY, "cluster", "start", "--interface", HERE, "--port", str(PORT), "--name", "one"],
        env=environ(data),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert first.stdout is not None
        assert f"assay cluster join {HERE}:{PORT}" in first.stdout.readline()
        assert first.stdout.readline() == f"this machine is in the cluster at {HERE}:{PORT}, as one\n"
        twice = run(data, "join", f"{HERE}:{PORT}", "--interface", HERE)
        assert (twice.returncode, "already in a cluster" in twice.stderr) == (5, True)
        flags = {"cluster.address": f"{HERE}:{PORT}", "cluster.interface": HERE, "data": data}
        settings = Settings.load(flags, {}, data, data)
        with sessions(runtime_settings(settings, data), cluster_settings(settings, data)) as pool:
            assert isinstance(pool, ClusterSessions)
            with pool.open() as session:
                assert session.run("print(6 * 7)").output == "42\n"
                found = json.loads(run(data, "status", "--json").stdout)
        line = {"name": "one", "address": HERE, "alive": True, "head": True, "draining": False}
        assert found == [{**line, "drivers": 1, "sessions": 1}]
        left = run(data, "leave", "--wait", "100")
        assert (left.returncode, left.stdout) == (0, "this machine has left the cluster\n")
        assert first.wait(120) == 0
    finally:
        first.kill()
        first.communicate()
    assert sorted(path.name for path in (data / "cluster").iterdir()) == ["lock", "ray.log"]
    assert run(data, "leave").returncode == 3


def test_without_a_cluster_the_commands_say_so(data: Path) -> None:
    for command in ("status", "leave"):
        done = run(data, command)
        assert (done.returncode, "assay cluster" in done.stderr) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("join", "nowhere"), "not ADDRESS:PORT"),
        (("join", "10.0.0.1:6379", "--interface", "0.0.0.0"), "not an interface address"),
        (("join", "10.0.0.1:6379"), "--interface"),
        (("start", "--interface", "127.0.0.1"), "127.0.0.2"),
    ],
)
def test_an_address_that_cannot_be_is_a_usage_error(data: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run(data, *arguments)
    assert (done.returncode, message in done.stderr) == (2, True)


def test_a_machine_without_the_token_does_not_join(data: Path) -> None:
    done = run(data, "join", f"{HERE}:{PORT}", "--interface", HERE)
    assert done.returncode == 5
    assert "token cannot be read" in done.stderr


def test_a_configured_cluster_is_where_sessions_run(data: Path) -> None:
    alone = Settings.load({"data": data}, {}, data, data)
    assert cluster_settings(alone, data) is None
    given = {"ASSAY_CLUSTER__ADDRESS": "10.0.0.1:6379", "ASSAY_CLUSTER__INTERFACE": "10.0.0.2"}
    with pytest.raises(ConfigError, match=r"cannot reach 10\.0\.0\.1:6379.*cluster\.interface"):
        Settings.load({"data": data}, {"ASSAY_CLUSTER__ADDRESS": "10.0.0.1:6379"}, data, data)
    together = Settings.load({"data": data}, given, data, data)
    assert cluster_settings(together, data) == ClusterSettings(
        address="10.0.0.1:6379", interface="10.0.0.2", token=data / "cluster-token"
    )

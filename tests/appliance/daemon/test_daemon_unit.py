"""The units and what docs/running.md says about them agree: commands typed as written reach daemon and broker."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from appliance.config import Settings
from appliance.places import broker_folder, broker_socket

ROOT = Path(__file__).parents[3]
DAEMON, BROKER = "assay.service", "assay-broker.service"
TEXT = (ROOT / "docs" / "running.md").read_text()


def unit(name: str) -> configparser.ConfigParser:
    read = configparser.ConfigParser(strict=False, interpolation=None)
    read.optionxform = str  # type: ignore[assignment, method-assign]
    read.read(ROOT / "systemd" / name)
    return read


def environment(name: str) -> dict[str, str]:
    lines = (ROOT / "systemd" / name).read_text().splitlines()
    assigned = [line.removeprefix("Environment=") for line in lines if line.startswith("Environment=")]
    return dict(line.split("=", 1) for line in assigned)


def settings(environ: dict[str, str], folder: Path, **flags: str) -> Settings:
    return Settings.load(flags, environ=environ, etc_dir=folder, xdg_dir=folder)


def exported() -> dict[str, str]:
    """What the document has a person export."""
    (line,) = [line for line in TEXT.splitlines() if line.strip().startswith("export ")]
    return dict(word.split("=", 1) for word in line.split()[1:])


def test_the_documented_commands_reach_the_socket_of_the_unit(tmp_path) -> None:
    daemon = settings(environment(DAEMON), tmp_path)
    flag = re.search(r"assay status --data (\S+?)[`\s]", TEXT)
    curl = re.search(r"--unix-socket (\S+)", TEXT)
    assert flag
    assert curl
    assert settings({}, tmp_path, data=flag[1]).socket_path == daemon.socket_path
    assert Path(curl[1]) == daemon.socket_path
    typed = settings({key: value for key, value in exported().items() if key != "PATH"}, tmp_path)
    assert typed.socket_path == daemon.socket_path
    assert typed.sandbox.broker == daemon.sandbox.broker


def test_the_daemon_finds_the_broker_of_the_other_unit_and_may_use_it(tmp_path) -> None:
    daemon, broker = settings(environment(DAEMON), tmp_path), settings(environment(BROKER), tmp_path)
    assert broker.data == daemon.data
    assert broker_socket(broker, broker.data) == broker_socket(daemon, daemon.data) == daemon.sandbox.broker
    assert broker.service.user == unit(DAEMON)["Service"]["User"]
    assert f"useradd --system --home-dir {daemon.data} --shell /usr/sbin/nologin {broker.service.user}" in TEXT


def test_the_folders_that_the_units_name_are_those_that_systemd_makes_for_them(tmp_path) -> None:
    broker = settings(environment(BROKER), tmp_path)
    made = unit(BROKER)["Service"]
    assert Path("/run") / made["RuntimeDirectory"] == broker_socket(broker, broker.data).parent
    assert Path("/var/lib") / made["StateDirectory"] == broker_folder(broker, broker.data)
    assert Path("/var/lib") / unit(DAEMON)["Service"]["StateDirectory"] == broker.data


@pytest.mark.parametrize("name", [DAEMON, BROKER])
def test_a_unit_starts_the_program_where_the_documents_put_it(name: str) -> None:
    program = unit(name)["Service"]["ExecStart"].split()[0]
    assert f"PATH={Path(program).parent}:" in TEXT
    assert f"{Path(program).parents[2]}/systemd/{name}" in TEXT
    assert name.removesuffix(".service") in re.findall(r"enable --now (.*)", TEXT)[0].split()


def test_the_daemon_has_no_capability_and_the_broker_only_those_that_the_documents_count() -> None:
    daemon, broker = unit(DAEMON)["Service"], unit(BROKER)["Service"]
    assert (daemon["CapabilityBoundingSet"], daemon["AmbientCapabilities"]) == ("", "")
    assert "User" not in broker
    assert len(broker["CapabilityBoundingSet"].split()) == 7
    assert "the seven capabilities" in TEXT
    assert daemon["NoNewPrivileges"] == broker["NoNewPrivileges"] == "yes"
    assert broker["Delegate"] == "yes"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
@pytest.mark.parametrize("name", [DAEMON, BROKER])
def test_systemd_understands_every_line(name: str, tmp_path: Path) -> None:
    for one in (DAEMON, BROKER):
        text = (ROOT / "systemd" / one).read_text()
        text = re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", text)
        (tmp_path / one).write_text(re.sub(r"(?m)^User=\S+", "User=root", text))
    found = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / name)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (found.returncode, found.stderr) == (0, "")

"""The units and what docs/operate.md says about them agree: commands typed as written reach daemon and broker."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from appliance.config.configuration import Settings
from appliance.config.places import broker_folder, broker_socket
from appliance.inference.http.local_api import CREDENTIAL, KEY
from runtime.service_manager import credential

ROOT = Path(__file__).parents[4]
DAEMON, BROKER, ENGINE = "assay.service", "assay-broker.service", "assay-engine.service"
SOCKET, GPU = "assay-broker.socket", "assay-gpu.conf"
ANALYZE = shutil.which("systemd-analyze")
TEXT = (ROOT / "docs" / "operate.md").read_text()


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


def test_systemd_holds_the_socket_that_daemon_and_broker_are_configured_for(tmp_path) -> None:
    daemon, held, broker = settings(environment(DAEMON), tmp_path), unit(SOCKET)["Socket"], unit(BROKER)
    assert Path(held["ListenSequentialPacket"]) == daemon.sandbox.broker
    assert (held["SocketUser"], held["SocketMode"]) == (unit(DAEMON)["Service"]["User"], "0600")
    assert broker["Service"]["RuntimeDirectoryPreserve"] == "yes", "the socket would go with a broker that stops"
    assert broker["Unit"]["Wants"] == broker["Install"]["Also"] == SOCKET
    assert f"cp /opt/assay/systemd/{SOCKET} /etc/systemd/system/" in TEXT


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


def test_units_say_when_they_serve_and_the_daemon_that_it_lives() -> None:
    for name in (DAEMON, BROKER, ENGINE):
        service = unit(name)["Service"]
        assert (service["Type"], service["NotifyAccess"]) == ("notify", "main")
        assert service["SystemCallArchitectures"] == "native"
        assert service["RestrictAddressFamilies"].split()[:3] == ["AF_UNIX", "AF_INET", "AF_INET6"]
        assert environment(name)["ASSAY_LOG__FORMAT"] == "json"
    assert int(unit(DAEMON)["Service"]["WatchdogSec"]) >= 60


def test_a_secret_comes_as_a_credential_under_the_name_that_is_looked_for(tmp_path) -> None:
    lines = (ROOT / "systemd" / DAEMON).read_text().splitlines()
    assert f"LoadCredential={CREDENTIAL}" in lines
    assert f"SetCredential={CREDENTIAL}:none" in lines
    assert f"/etc/credstore/{CREDENTIAL}" in TEXT
    (tmp_path / CREDENTIAL).write_text("s3cret\n")
    handed = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert credential(CREDENTIAL, KEY, handed) == "s3cret"
    assert credential(CREDENTIAL, KEY, handed | {KEY: "by hand"}) == "by hand"
    assert credential("another", KEY, handed) is None
    assert credential(CREDENTIAL, KEY, {}) is None
    settings({KEY: "x"}, tmp_path)  # a secret's variable is no key of the configuration


def test_the_engine_and_a_gpu_are_as_the_documents_say() -> None:
    assert f"cp /opt/assay/systemd/{GPU} /etc/systemd/system/{DAEMON}.d/" in TEXT
    assert f"/opt/assay/systemd/{ENGINE}" in TEXT
    dropped = (ROOT / "systemd" / GPU).read_text()
    assert "PrivateDevices=no" in dropped, "which would hide them"
    devices = {line for line in dropped.splitlines() if line.startswith("DeviceAllow=")}
    assert devices == {
        line for line in (ROOT / "systemd" / ENGINE).read_text().splitlines() if line.startswith("DeviceAllow=")
    }


@pytest.mark.skipif(ANALYZE is None, reason="there is no systemd-analyze here (Debian's package systemd has it)")
@pytest.mark.parametrize(
    ("name", "dropped", "most"), [(DAEMON, "", 1.5), (BROKER, "", 5.0), (DAEMON, GPU, 2.0), (ENGINE, "", 2.0)]
)
def test_exposure_stays_below_its_bar(name: str, dropped: str, most: float, tmp_path: Path) -> None:
    text = (ROOT / "systemd" / name).read_text()
    if dropped:
        added = (ROOT / "systemd" / dropped).read_text().partition("[Service]\n")[2]
        text = text.replace("\n[Install]", f"\n{added}\n[Install]")
    (tmp_path / name).write_text(text)
    found = subprocess.run(
        [str(ANALYZE), "security", "--offline=true", "--no-pager", str(tmp_path / name)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    level = re.search(r"Overall exposure level for \S+: ([\d.]+)", found.stdout)
    assert level, found.stderr
    assert float(level[1]) <= most
    assert "ignoring" not in found.stderr


@pytest.mark.skipif(ANALYZE is None, reason="there is no systemd-analyze here (Debian's package systemd has it)")
@pytest.mark.parametrize("name", [DAEMON, BROKER, SOCKET, ENGINE])
def test_systemd_understands_every_line(name: str, tmp_path: Path) -> None:
    for one in (DAEMON, BROKER, SOCKET, ENGINE):
        text = (ROOT / "systemd" / one).read_text()
        text = re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", text)
        (tmp_path / one).write_text(re.sub(r"(?m)^(Socket)?User=\S+", r"\1User=root", text))
    found = subprocess.run(
        [str(ANALYZE), "verify", "--man=no", str(tmp_path / name)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (found.returncode, found.stderr) == (0, "")

"""The unit file and what docs/running.md says about it agree: commands typed as written reach the daemon."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

from appliance.config import Settings

ROOT = Path(__file__).parents[3]


def unit_environment() -> dict[str, str]:
    lines = (ROOT / "systemd" / "assay.service").read_text().splitlines()
    assigned = [line.removeprefix("Environment=") for line in lines if line.startswith("Environment=")]
    return dict(line.split("=", 1) for line in assigned)


def test_the_documented_commands_reach_the_socket_of_the_unit(tmp_path) -> None:
    text = (ROOT / "docs" / "running.md").read_text()
    daemon = Settings.load(environ=unit_environment(), etc_dir=tmp_path, xdg_dir=tmp_path)
    exported = re.search(r"ASSAY_DATA=(\S+)", text)
    flag = re.search(r"assay status --data (\S+?)[`\s]", text)
    curl = re.search(r"--unix-socket (\S+)", text)
    assert exported
    assert flag
    assert curl
    for named in (exported[1], flag[1]):
        client = Settings.load({"data": named}, environ={}, etc_dir=tmp_path, xdg_dir=tmp_path)
        assert client.socket_path == daemon.socket_path
    assert Path(curl[1]) == daemon.socket_path


def test_the_unit_starts_the_program_where_the_documents_put_it() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(ROOT / "systemd" / "assay.service")
    program = unit["Service"]["ExecStart"].split()[0]
    text = (ROOT / "docs" / "running.md").read_text()
    assert f"PATH={Path(program).parent}:" in text
    assert f"cp {Path(program).parents[2]}/systemd/assay.service" in text
    assert f"/var/lib/{unit['Service']['StateDirectory']}" == unit_environment()["ASSAY_DATA"]

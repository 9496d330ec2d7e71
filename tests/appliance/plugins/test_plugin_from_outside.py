"""One row of each seam from another distribution: it loads, is certified, is listed, is marked, and can be refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from plugin_kit.plugin_python import GATE, PluginPython, policy_with
from plugin_kit.plugin_python import own_plugin_python as own_plugin_python
from plugin_kit.plugin_python import plugin_python as plugin_python

from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.jobs.check import check_bundle
from appliance.jobs.report import result
from common.plugins.allowed import VARIABLE, written
from common.plugins.installed import SEAMS

SCRIPT = Path(__file__).with_name("plugin_night.py")
SCREEN = """
import asyncio
from pathlib import Path
from tui.app import AssayApp

async def main():
    app = AssayApp(Path("nowhere"))
    async with app.run_test(size=(80, 24)):
        await app.open_view("remainders/hello")
        print(type(app.pane).__name__, app.current.key)

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def night(
    plugin_python: PluginPython, guest_roots: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("night")
    mark = folder / "imported"
    ran = plugin_python.run(SCRIPT, folder, mark, guest_roots, *plugin_python.pin(), REMAINDERS_IMPORTED=str(mark))
    assert ran.returncode == 0, ran.stderr[-2000:]
    return folder, json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.timeout(900)
def test_a_night_uses_what_is_admitted_and_marks_it(night: tuple[Path, dict[str, Any]]) -> None:
    _, found = night
    assert found["plain"]["tasks"] > 0
    assert found["marked"] is False, "a night without it imports nothing of it"
    assert found["imported"] is True
    assert found["with"]["families"] == ["digits", "remainders/divisions"]
    assert "remainders/remainder" in found["with"]["kinds"]
    assert {"remainders/answered", "non_regression/remainders/divisions"} <= set(found["with"]["gates"])
    assert set(found["with"]["outcomes"]) <= {"pass", "fail"}
    assert found["objective"] == "remainders.training:PLAIN"


def test_a_bundle_names_the_plug_in_and_is_verified_where_it_is_admitted(
    night: tuple[Path, dict[str, Any]], plugin_python: PluginPython
) -> None:
    folder, found = night
    state, solved_by, artifact = found["with"]["job"]
    assert (state, solved_by) == ("solved", "remainders/division 1")
    bundle, pin = folder / "with" / artifact, plugin_python.pin()
    assert json.loads((bundle / "versions.json").read_text())["plugins"] == {"remainders": pin._asdict()}
    here = check_bundle(bundle)
    assert (here.ok, here.undecided) == (False, True)
    assert result(here).startswith("not decided")
    assert all(part in here.missing for part in ("remainders/remainder", pin.version, pin.digest))
    assert here.missing in [one.why for one in here.not_checked]
    there = plugin_python.assay(folder / "with", "verify", bundle, "--json")
    assert there.returncode == 0, there.stdout + there.stderr
    assert json.loads(there.stdout)["verdict_now"]["version"] == "1+remainders1.0"


@pytest.mark.timeout(900)
def test_it_is_listed_and_certified_and_imported_by_nothing_else(plugin_python: PluginPython, tmp_path: Path) -> None:
    data, mark = tmp_path / "data", tmp_path / "imported"
    with Core(Settings(data=data), worker=["true"]):
        pass
    pin = plugin_python.pin()

    def assay(*arguments: str) -> Any:
        ran = plugin_python.assay(data, *arguments, REMAINDERS_IMPORTED=str(mark))
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return json.loads(ran.stdout) if "--json" in arguments else ran.stdout

    (row,) = assay("plugins", "ls", "--json")
    assert (row["state"], row["certified"], row["digest"]) == ("not in the policy", False, pin.digest)
    assert [one.split()[0] for one in row["adds"]] == sorted(SEAMS)
    for command in ("plugins", "curriculum ls", "curriculum adapter ls", "policy check", "config show"):
        assay(*command.split())
    assay("check", "exact", "--gold", "1", "--answer", "1")
    assert not mark.exists()
    report = assay("plugins", "certify", "remainders", "--json")
    assert {name.split()[0] for name in report["checks"]} == set(SEAMS)
    assert (report["faults"], report["signed"]) == ([], "yes, into the audit log")
    (row,) = assay("plugins", "ls", "--json")
    assert (row["state"], row["certified"]) == ("not in the policy", True)


def test_commands_and_screens_have_it_once_the_policy_admits_it(plugin_python: PluginPython, tmp_path: Path) -> None:
    pin = plugin_python.pin()
    (tmp_path / "policy.toml").write_text(policy_with(pin, GATE))
    checks = plugin_python.assay(
        tmp_path, *["check", "remainders/remainder", "--number", "17", "--divisor", "12", "--answer"], "17", "--json"
    )
    assert checks.returncode == 1, checks.stderr
    assert json.loads(checks.stdout)["verifier"] == "remainders/remainder"
    adapters = json.loads(plugin_python.assay(tmp_path, "curriculum", "adapter", "ls", "--json").stdout)
    assert adapters[-1]["name"] == "remainders/tables"
    shown = plugin_python.run("-c", SCREEN, **{VARIABLE: written([pin])})
    assert shown.stdout.split() == ["HelloPane", "f5"], shown.stderr


def test_one_that_was_altered_stops_what_would_use_it(own_plugin_python: PluginPython, tmp_path: Path) -> None:
    pin = own_plugin_python.pin()
    (tmp_path / "policy.toml").write_text(policy_with(pin, GATE))
    gates = own_plugin_python.site / "remainders" / "gates.py"
    gates.write_text(gates.read_text().replace("answered < rules.min_items", "False"))
    for command in (("serve",), ("policy", "check"), ("check", "remainders/remainder", "--number", "1")):
        ran = own_plugin_python.assay(tmp_path, *command)
        assert ran.returncode == 4, ran.stderr
        assert "plug-in remainders: remainders/gates.py differs from its RECORD" in " ".join(ran.stderr.split())
    (row,) = json.loads(own_plugin_python.assay(tmp_path, "plugins", "ls", "--json").stdout)
    assert row["state"] == "refused"
    assert "install the distribution again" in row["problem"]

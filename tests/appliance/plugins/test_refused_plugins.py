"""A plug-in that is refused, or listed nowhere, changes no command that does not need it, and can be repaired."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from plugin_kit.installed_plugin import Installed
from plugin_kit.installed_plugin import installed as installed
from plugin_kit.plugin_python import PluginPython, policy_with
from plugin_kit.plugin_python import own_plugin_python as own_plugin_python
from plugin_kit.plugin_python import plugin_python as plugin_python
from tables import table

from appliance.cli.plugins.checks import checked
from appliance.cli.shell import options
from appliance.settings.policy_files import in_force_file, load_policy, parse_policy
from common.plugins.allowed import allow
from common.plugins.installed import Pin, Plugin, PluginError
from curriculum.adapters import ADAPTERS

OTHER = Pin("add-on", "0.9", "0" * 64)
PACKAGED = Path(__file__).parents[3] / "policies" / "default_policy.toml"
SHARE = ("[data.shares]", '[data.shares]\n"add-on/more" = 10.0')
MAIN = """
import sys
from appliance.cli.main import main
try:
    main()
except SystemExit:
    import torch, pydantic
    pydantic.create_model("One")
"""


def listing(data: Path, pin: Pin) -> Path:
    in_force_file(data).parent.mkdir(parents=True)
    in_force_file(data).write_text(policy_with(pin))
    return data


def test_an_owner_repairs_a_refused_plug_in(own_plugin_python: PluginPython, tmp_path: Path) -> None:
    made = Installed(own_plugin_python.site)
    made.put("addon/rows.py", "def ROW(spec, question, small):\n    return []\n")
    made.points("[assay.solvers]\nown = addon.rows:ROW\n")
    data = listing(tmp_path / "data", OTHER)
    certified = own_plugin_python.assay(data, "plugins", "certify", "add-on")
    assert certified.returncode == 0, certified.stderr
    assert 'version = "1.0"' in certified.stdout
    for arguments in (("policy", "check"), ("policy", "check", PACKAGED), ("plugins", "ls")):
        ran = own_plugin_python.assay(data, *arguments)
        assert ran.returncode == 0, ran.stderr


def test_a_policy_asks_for_no_plug_in_that_it_does_not_name(installed: Installed, tmp_path: Path) -> None:
    allow([OTHER])
    parse_policy(policy_with(None).encode(), "p")
    parse_policy(policy_with(OTHER).encode(), "p")
    with pytest.raises(PluginError, match=r"0\.9 is admitted"):
        parse_policy(policy_with(OTHER, replaced=SHARE).encode(), "p")
    parse_policy(policy_with(OTHER, replaced=SHARE).encode(), "p", outside=False)
    assert load_policy(listing(tmp_path, OTHER), outside=False).plugins


def test_libraries_import_no_plug_in_of_theirs(own_plugin_python: PluginPython, tmp_path: Path) -> None:
    made, ran = Installed(own_plugin_python.site), tmp_path / "ran"
    made.put("addon/rows.py", f"open({str(ran)!r}, 'w')\ndef ROW(): pass\n")
    made.points("[torch.backends]\nown = addon.rows:ROW\n[pydantic]\nown = addon.rows:ROW\n")
    done = own_plugin_python.run("-c", MAIN, "policy", "check", PACKAGED, PYDANTIC_DISABLE_PLUGINS="another")
    assert done.returncode == 0, done.stderr
    assert not ran.exists()


@table(
    "words, admitted",
    [
        (["check", "add-on/own", "--data", "{}"], True),
        (["check", "add-on/own", "--json", "--data={}"], True),
        (["check", "add-on/own", "--", "--data={}"], False),
        (["check", "add-on/own", "--", "--data", "{}"], False),
        (["check", "add-on/own", "--spec", "--data={}"], None),
        (["check", "add-on/own", "--spec", "--data", "{}"], None),
    ],
)
def test_a_value_that_looks_like_the_data_folder_admits_nothing(
    words: list[str], admitted: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "named"
    if not data.exists():
        listing(data, OTHER)
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "default"))
    monkeypatch.setattr(sys, "argv", ["assay", *(word.format(data) for word in words)])
    if admitted is None:
        with pytest.raises(PluginError, match="may be the value of --spec"):
            options.plugins_of_command()
    else:
        assert options.plugins_of_command() == ((OTHER,) if admitted else ())


def test_the_data_folder_is_the_one_that_the_command_read(own_plugin_python: PluginPython, tmp_path: Path) -> None:
    other = listing(tmp_path / "other", OTHER)
    ran = own_plugin_python.assay(tmp_path, "check", "selftest", "--verifier", f"--data={other}")
    assert "plug-in" not in ran.stderr
    assert ran.returncode == 2, ran.stderr


def test_a_plugin_that_ends_the_program_in_its_check_is_at_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ends:
        @property
        def pins(self) -> tuple[str, ...]:
            raise SystemExit(0)

    monkeypatch.setitem(ADAPTERS.data, "ender/ends", Ends())
    plugin = Plugin(Pin("ender", "1", "0" * 64), {"adapters": {"ends": "ender:ENDS"}}, {})
    assert list(checked(plugin, None, str, [])) == [("adapters ender/ends", ["SystemExit: 0"])]

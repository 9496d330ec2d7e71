"""A distribution adds to the product only as it was admitted: exact version, exact files, names of its own."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import pytest
from plugin_kit.installed_plugin import FILES, Installed
from plugin_kit.installed_plugin import installed as installed

from common.plugins import allowed
from common.plugins.allowed import VARIABLE, admitted, allow, allow_when_needed, written
from common.plugins.installed import Pin, PluginError, candidates, read_plugin
from common.plugins.table import OpenTable


def engines(**how: object) -> OpenTable[object]:
    return OpenTable("engines", {"torch": "built in"}, **how)


def test_a_distribution_that_nobody_admitted_is_found_and_adds_nothing(installed: Installed) -> None:
    assert "add-on" in candidates()
    table = engines(by_reference=True)
    assert list(table) == ["torch"]
    for name in ("add-on/own", "addon.rows:ROW"):
        assert name not in table
        with pytest.raises(KeyError):
            table[name]
    assert not hasattr(sys, "addon_imported")


def test_an_admitted_one_adds_rows_that_are_imported_when_they_are_read(installed: Installed) -> None:
    allow([read_plugin("add-on").pin])
    table = engines(by_reference=True)
    assert list(table) == ["torch", "add-on/own"]
    assert "add-on/own" in table
    assert table["torch"] == "built in"
    assert not hasattr(sys, "addon_imported")
    assert table["add-on/own"] == table["addon.rows:ROW"] == "of the addon"
    assert "json:loads" not in table, "its module is of no admitted distribution"
    assert list(engines()) == ["torch", "add-on/own"]
    assert "addon.rows:ROW" not in engines(), "a table takes module:object only where it says so"


def test_a_child_has_the_list_of_its_parent_and_a_command_asks_when_it_needs_one(
    installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin = read_plugin("add-on").pin
    monkeypatch.setenv(VARIABLE, written([pin]))
    assert list(admitted()) == ["add-on"]
    asked = []
    allow_when_needed(lambda: asked.append(True) or ())
    assert engines()["torch"] == "built in"
    assert not asked, "a built-in row asks nobody"
    assert list(engines()) == ["torch"], "what was inherited does not count"
    assert asked == [True]


def test_every_other_version_or_file_is_refused_by_name(installed: Installed) -> None:
    pin = read_plugin("add-on").pin
    for other, said in (
        (pin._replace(version="2.0"), "version 1.0 is installed, and 2.0 is admitted"),
        (pin._replace(digest="0" * 64), "its files have the digest"),
        (Pin("elsewhere", "1.0", "0" * 64), "elsewhere: not installed"),
    ):
        allow([other])
        with pytest.raises(PluginError, match=said) as refused:
            engines()["add-on/own"]
        assert refused.value.hint
        assert refused.value.exit_code == 4
    installed.put("addon/rows.py", FILES["addon/rows.py"] + "# another\n")
    allow([pin])
    with pytest.raises(PluginError, match=f"{pin.digest[:12]} is admitted"):
        engines()["add-on/own"]
    assert not hasattr(sys, "addon_imported")


def test_the_digest_is_of_what_came_in_the_wheel(installed: Installed) -> None:
    before = read_plugin("add-on").pin
    installed.put(f"{installed.info.name}/INSTALLER", "another")
    installed.put(f"{installed.info.name}/direct_url.json", '{"url": "file:///elsewhere", "dir_info": {}}')
    assert read_plugin("add-on").pin == before
    installed.put("addon/data.txt", "other data")
    assert read_plugin("add-on").pin.digest != before.digest


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("Add_On-1.0.dist-info/direct_url.json", '{"dir_info": {"editable": true}}', "editable"),
        ("addon.pth", "import addon", "every process"),
        ("json/__init__.py", "", "the name json is taken"),
        ("verifiers/extra.py", "", "the name verifiers is taken"),
        ("Add_On-1.0.dist-info/entry_points.txt", "[assay.motors]\na = addon.rows:ROW\n", "unknown entry-point group"),
        ("Add_On-1.0.dist-info/entry_points.txt", "[assay.engines]\na = json:loads\n", "invalid entry point"),
        ("Add_On-1.0.dist-info/entry_points.txt", "[assay.engines]\nA/B = addon.rows:ROW\n", "invalid entry point"),
    ],
)
def test_what_cannot_be_vouched_for_is_refused(installed: Installed, name: str, text: str, said: str) -> None:
    installed.put(name, text)
    with pytest.raises(PluginError, match=said):
        read_plugin("add-on")


def test_a_changed_missing_or_unrecorded_file_is_refused(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    record = installed.info / "RECORD"
    (installed.site / "addon/data.txt").write_text("other")
    with pytest.raises(PluginError, match=r"addon/data.txt differs from its RECORD"):
        read_plugin("add-on")
    (installed.site / "addon/data.txt").unlink()
    with pytest.raises(PluginError, match="cannot be read"):
        read_plugin("add-on")
    installed.put("addon/data.txt", "data")
    record.write_text(record.read_text() + "addon/more.py,,\n")
    with pytest.raises(PluginError, match=r"no SHA-256 of addon/more\.py"):
        read_plugin("add-on")
    record.unlink()
    with pytest.raises(PluginError, match="no RECORD"):
        read_plugin("add-on")
    installed.put("addon/data.txt", "data")
    monkeypatch.setattr(sys, "prefix", str(installed.site / "addon"))
    with pytest.raises(PluginError, match="outside this Python's folder"):
        read_plugin("add-on")


def test_only_recorded_bytes_are_executed(installed: Installed) -> None:
    """Neither bytecode beside them, nor another module of the package, nor what was written after the admission."""
    rows = installed.site / "addon/rows.py"
    evil = compile("ROW = 'evil'", str(rows), "exec")
    cached = Path(importlib.util.cache_from_source(str(rows)))
    cached.parent.mkdir()
    stat = rows.stat()
    cached.write_bytes(importlib._bootstrap_external._code_to_timestamp_pyc(evil, int(stat.st_mtime), stat.st_size))
    (installed.site / "addon/more.py").write_text("sys = 1")
    allow([read_plugin("add-on").pin])
    assert engines()["add-on/own"] == "of the addon"
    with pytest.raises(ModuleNotFoundError, match="not in the RECORD"):
        importlib.import_module("addon.more")
    del sys.modules["addon.rows"]
    rows.write_text("ROW = 'evil'")
    with pytest.raises(PluginError, match="differs from the RECORD"):
        engines()["add-on/own"]


def test_nothing_from_outside_takes_a_built_in_name(installed: Installed) -> None:
    installed.points("[assay.engines]\ntorch = addon.rows:ROW\nother = addon.rows:NAMED\n")
    allow([read_plugin("add-on").pin])
    table = engines()
    assert (table["torch"], table["add-on/torch"]) == ("built in", "of the addon")
    with pytest.raises(PluginError, match="its object is named 'torch'"):
        table["add-on/other"]
    with pytest.raises(PluginError, match="add-on is a built-in row"):
        list(OpenTable("engines", {"add-on": "built in"}))
    unusable = engines(require=lambda name, made: f"{made} is wrong")
    with pytest.raises(PluginError, match="of the addon is wrong"):
        unusable["add-on/torch"]


def test_one_that_cannot_be_imported_names_itself(installed: Installed) -> None:
    installed.put("addon/rows.py", "1 / 0")
    allow([read_plugin("add-on").pin])
    with pytest.raises(PluginError, match=r"add-on/own: cannot be imported: ZeroDivisionError") as refused:
        engines()["add-on/own"]
    assert "[[plugins]]" in refused.value.hint


def test_none_is_loaded_as_root_for_another_user(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowed, "_rootless", False)
    allow([read_plugin("add-on").pin])
    allowed.refuse_as_root()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(PluginError, match="not loaded as root"):
        engines()["add-on/own"]
    assert not hasattr(sys, "addon_imported")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert engines()["add-on/own"] == "of the addon"

"""Files that anybody wrote around a distribution are refused in words, run nothing, and hide nothing."""

from __future__ import annotations

import base64
import hashlib
import importlib
import os
import sys
from pathlib import Path

import pytest
from plugin_kit.installed_plugin import FILES, POINTS, Installed
from plugin_kit.installed_plugin import installed as installed
from tables import table

from common.plugins.allowed import allow
from common.plugins.installed import PluginError, candidates, read_plugin
from common.plugins.table import OpenTable

INFO = "Add_On-1.0.dist-info"
NAMED = "Metadata-Version: 2.1\nName: Add.On\n"
MARK = "import sys\nsys.addon_imported = True\n"
PINNED = f"Version: 1@{'a' * 64} other==1.0\n"
FOLDED = 'Version: 1.0"\n [[plugins]]\n distribution = "other\n'
CANNOT = "cannot be read"


@table(
    "path, content, said",
    [
        (f"{INFO}/METADATA", b"\xff", CANNOT),
        (f"{INFO}/METADATA", b"", CANNOT),
        (f"{INFO}/METADATA", NAMED.encode(), CANNOT),
        (f"{INFO}/METADATA", (NAMED + PINNED).encode(), "invalid name or version"),
        (f"{INFO}/METADATA", (NAMED + FOLDED).encode(), "invalid name or version"),
        (f"{INFO}/METADATA", (NAMED + "Version: 1\x1b[2J\n").encode(), "invalid name or version"),
        (f"{INFO}/entry_points.txt", b"[assay.engines]\n\xff = addon.rows:ROW\n", CANNOT),
        (f"{INFO}/entry_points.txt", b"[assay.engines]\nnothing\n", CANNOT),
        (f"{INFO}/direct_url.json", b"[]", CANNOT),
        (f"{INFO}/direct_url.json", b"{", CANNOT),
        (f"{INFO}/direct_url.json", b"[" * 100_000, CANNOT),
        (f"{INFO}/direct_url.json", b'{"dir_info": null}', CANNOT),
    ],
)
def test_metadata_that_cannot_be_read_is_a_refusal(path: str, content: bytes, said: str, installed: Installed) -> None:
    installed.points(POINTS)
    for old in installed.info.glob("direct_url.json"):
        old.unlink()
    installed.put(f"{INFO}/METADATA", NAMED + "Version: 1.0\n")
    file = installed.site / path
    before = file.read_bytes() if file.exists() else b""
    file.write_bytes(content)
    record = installed.info / "RECORD"
    lines = [line for line in record.read_text().splitlines() if path not in line]
    record.write_text("\n".join([*lines, _row(path, content)]) + "\n")
    assert "add-on" in candidates(), "it is listed, with what is wrong"
    with pytest.raises(PluginError, match=said) as refused:
        read_plugin("add-on")
    assert refused.value.hint
    file.write_bytes(before)


def _row(path: str, content: bytes) -> str:

    return f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()},"


@table(
    "row, said",
    [
        ("addon/more.py,sha256=x", CANNOT),
        ("a" * 200_000 + ",,", CANNOT),
        ("addon/more.py,sha256=\u00e9,", CANNOT),
        ("addon/pipe,sha256=AAAA,", "not a regular file"),
        ("/dev/zero,sha256=AAAA,", "outside this Python's folder"),
        ("../" * 30 + "dev/zero,sha256=AAAA,", "outside this Python's folder"),
    ],
)
def test_a_record_can_name_nothing_but_its_own_files(row: str, said: str, installed: Installed) -> None:
    pipe = installed.site / "addon" / "pipe"
    if not pipe.exists():
        os.mkfifo(pipe)
    installed.points(POINTS)
    with (installed.info / "RECORD").open("a") as record:
        record.write(row + "\n")
    with pytest.raises(PluginError, match=said):
        read_plugin("add-on")


@table("name", ["", "a/b", "../add-on", "add on", "\x1b[2J"])
def test_a_name_of_no_distribution_is_a_refusal(name: str, installed: Installed) -> None:
    with pytest.raises(PluginError, match="not installed"):
        read_plugin(name)


def test_entry_points_that_the_record_leaves_out_are_refused(installed: Installed) -> None:
    record = installed.info / "RECORD"
    for own in ("entry_points.txt", "METADATA"):
        installed.points(POINTS)
        record.write_text("".join(line for line in record.read_text().splitlines(True) if own not in line))
        with pytest.raises(PluginError, match=f"no SHA-256 of {INFO}/{own}"):
            read_plugin("add-on")


def test_nobody_else_adds_the_init_of_a_package(installed: Installed) -> None:
    installed.put("addon/parts/rows.py", FILES["addon/rows.py"])
    allow([read_plugin("add-on").pin])
    (installed.site / "addon" / "parts" / "__init__.py").write_text(MARK)
    engines: OpenTable[object] = OpenTable("engines", {}, by_reference=True)
    assert "addon.parts.rows:ROW" not in engines
    with pytest.raises(ModuleNotFoundError, match=r"or lacks an __init__\.py"):
        importlib.import_module("addon.parts.rows")
    installed.put("shared/rows.py", MARK)
    with pytest.raises(PluginError, match=r"its package shared has no __init__\.py"):
        read_plugin("add-on")


@table(
    "code, said",
    [
        ("raise SystemExit(0)", "cannot be imported: SystemExit: 0"),
        ("ROW = 1", "its object is not of type str"),
        ("ROW = type('N', (), {'name': property(lambda self: 1 / 0)})()", "cannot be imported: ZeroDivisionError"),
    ],
)
def test_an_admitted_row_that_is_no_row_is_refused_in_words(code: str, said: str, installed: Installed) -> None:
    installed.put("addon/rows.py", code + "\n")
    sys.modules.pop("addon.rows", None)
    allow([read_plugin("add-on").pin])
    with pytest.raises(PluginError, match=said):
        OpenTable("engines", {"torch": "built in"})["add-on/own"]


def test_links_out_of_the_folder_do_not_change_what_is_hashed(installed: Installed, tmp_path: Path) -> None:
    pin = read_plugin("add-on").pin
    outside = tmp_path / "rows.py"
    outside.write_text(MARK)
    (installed.site / "addon" / "rows.py").unlink()
    (installed.site / "addon" / "rows.py").symlink_to(outside)
    allow([pin])
    with pytest.raises(PluginError, match=r"rows\.py differs from its RECORD"):
        OpenTable("engines", {})["add-on/own"]
    assert not hasattr(sys, "addon_imported")

"""The policy in force is shown, and written where one edits it."""

from __future__ import annotations

from pathlib import Path

from forked_commands import run_forked

from policies.policy import read_content


def test_it_is_shown_or_written_as_it_stands_and_no_file_is_replaced(tmp_path: Path) -> None:
    environ = {"ASSAY_DATA": str(tmp_path / "data"), "HOME": str(tmp_path)}
    packaged = read_content(None)[0]
    assert run_forked(("policy", "show"), environ).stdout == packaged
    made = tmp_path / "policy.toml"
    written = run_forked(("policy", "show", "--out", str(made)), environ)
    assert (written.returncode, made.read_bytes()) == (0, packaged)
    made.write_text("mine")
    refused = run_forked(("policy", "show", "--out", str(made)), environ)
    assert (refused.returncode, made.read_text()) == (2, "mine")
    assert b"cannot be written: File exists" in refused.stderr


def test_what_somebody_put_into_the_file_does_nothing_on_a_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "policy"
    folder.mkdir()
    (folder / "in-force.toml").write_bytes(b"# \x1b[2J\n" + read_content(None)[0])
    shown = run_forked(("policy", "show"), {"ASSAY_DATA": str(tmp_path), "HOME": str(tmp_path)}).stdout
    assert b"\x1b" not in shown
    assert b"\\x1b[2J" in shown

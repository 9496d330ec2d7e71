"""What `assay curriculum add` says of how a night comes to ask an owner's problems."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.cli.curriculum.add import AddedRows, _show_added, how_to_train
from appliance.config.configuration import Settings
from curriculum.own.columns import row_of

SEVEN = '["arithmetic", "divisors", "powers", "counting", "sequences", "digits", "linear", "own/mine"]'


def loaded(tmp_path: Path) -> Settings:
    return Settings.load({"data": str(tmp_path)}, environ={}, etc_dir=tmp_path / "etc", xdg_dir=tmp_path / "xdg")


def test_it_names_the_users_file_and_lines_that_keep_what_is_asked_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    lines = how_to_train(loaded(tmp_path), "own/mine")
    assert "`assay curriculum certify own/mine`" in lines[0]
    assert f"write into {tmp_path / 'assay' / 'config.toml'}, and restart the daemon" in lines[1]
    assert lines[2:4] == ["  [recipe]", f"  tasksets = {SEVEN}"]
    (tmp_path / "xdg").mkdir()
    (tmp_path / "xdg" / "config.toml").write_text("\n".join(lines[2:4]))
    assert loaded(tmp_path).recipe.tasksets[-1] == "own/mine"
    assert "replaces the present one" in lines[4]


def test_where_the_list_is_written_already_that_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "config.toml").write_text('[recipe]\ntasksets = ["linear", "own/mine"]')
    lines = how_to_train(loaded(tmp_path), "own/mine")
    assert str(tmp_path / "etc" / "config.toml") in lines[1]
    assert lines[3] == '  tasksets = ["linear", "own/mine"]'


def test_tasksets_added_one_after_another_end_in_one_list(tmp_path: Path) -> None:
    lines = how_to_train(loaded(tmp_path), "own/mine", ["own/jobs", "own/mine", "own/sums", "own/units"])
    assert "`assay curriculum certify own/sums own/units own/mine`" in lines[0]
    assert lines[3] == f'  tasksets = {SEVEN.replace("own/mine", "own/sums")[:-1]}, "own/units", "own/mine"]'
    assert "has all your tasksets" in lines[4]


def test_the_first_accepted_rows_are_shown_with_the_answers_read_from_them(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        row_of({"question": f"What is {number} + 1?", "answer": f"So.\n#### {number + 1}"}, "auto", "a:1")
        for number in range(5)
    ]
    rows.append(row_of({"question": "What?\x1b[2J" * 30, "answer": "x" * 99}, "exact", "a:2"))
    added = AddedRows(name="own/a", kept=False, accepted=6, kinds={}, splits={}, read_as={}, lacks="", refused=())
    _show_added(added, rows[:1] + rows[-1:] + rows[1:-1], (), dry_run=True)
    shown = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "What is 0 + 1? -> 1" in shown
    assert "and 3 more" in shown
    (long,) = (line for line in shown if line.startswith("What?"))
    assert "\x1b" not in long
    assert len(long) < 160

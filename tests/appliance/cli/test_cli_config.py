"""`assay config show --explain`, and the doctor's line about the configured model."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from pathlib import Path

import pytest
from broken_models import HARMS, sound
from forked_commands import run_forked

from appliance.cli.machine import doctor
from appliance.cli.machine.doctor_checks import CheckGrade
from appliance.config.configuration import Settings


def explain(folder: Path, key: str, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "PATH": "/usr/bin:/bin"}
    result = run_forked(("config", "show", "--explain", key, *options), home | environ)
    return subprocess.CompletedProcess(result.args, result.returncode, result.stdout.decode(), result.stderr.decode())


def test_a_key_is_explained_with_its_value_and_where_that_comes_from(tmp_path: Path) -> None:
    (tmp_path / "assay").mkdir()
    (tmp_path / "assay" / "config.toml").write_text("[sandbox]\ncall_seconds = 3\n")
    shown = explain(tmp_path, "sandbox.call_seconds")
    assert shown.returncode == 0, shown.stderr
    lines = dict(line.split(maxsplit=1) for line in shown.stdout.splitlines())
    assert lines == {
        "key": "sandbox.call_seconds",
        "purpose": "Wall-clock time of one call, measured on the host; the worker is killed at its end.",
        "type": "number, above 0, at most 1000000000",
        "unit": "seconds",
        "default": "2.0",
        "variable": "ASSAY_SANDBOX__CALL_SECONDS",
        "in": f"force  3.0, from {tmp_path / 'assay' / 'config.toml'}",
    }
    (fact,) = json.loads(explain(tmp_path, "sandbox.call_seconds", "--json", ASSAY_SANDBOX__CALL_SECONDS="4").stdout)
    assert (fact["value"], fact["origin"], fact["default"]) == (4.0, "ASSAY_SANDBOX__CALL_SECONDS", 2.0)


def test_an_unknown_key_ends_with_2_and_the_nearest_names(tmp_path: Path) -> None:
    shown = explain(tmp_path, "sandbox.call_second")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert "unknown key sandbox.call_second" in shown.stderr
    assert "did you mean sandbox.call_seconds" in shown.stderr


def settings(folder: Path, **flags: object) -> Settings:
    return Settings.load({"data": folder / "data", **flags}, {"HOME": str(folder)}, folder, folder)


def test_the_doctor_looks_at_the_configured_model(tmp_path: Path) -> None:
    assert doctor.model(settings(tmp_path)).grade is CheckGrade.OK
    (tmp_path / "data" / "bases" / "mine").mkdir(parents=True)
    assert "registered: mine; run `assay model use mine`" in doctor.model(settings(tmp_path)).advice
    folder = sound(tmp_path / "model")
    found = doctor.model(settings(tmp_path, **{"model.path": folder}))
    assert (found.grade, found.figure) == (CheckGrade.OK, f"0.7 million parameters, 512 tokens, in {folder}")
    small = doctor.model(settings(tmp_path, **{"model.path": folder}), memory=1 << 20)
    assert (small.grade, "takes at least" in small.figure, bool(small.advice)) == (CheckGrade.FAILED, True, True)
    name = doctor.model(settings(tmp_path, **{"model.path": "Qwen/Qwen2.5-0.5B"}))
    assert (name.grade, "Hugging Face hub" in name.figure) == (CheckGrade.FAILED, True)


@pytest.mark.parametrize("name", ["no folder", "no tokenizer.json", "a format that nobody has"])
def test_the_doctor_fails_for_a_model_that_no_night_can_begin_from(tmp_path: Path, name: str) -> None:
    harm, message = HARMS[name]
    folder = sound(tmp_path / "model")
    harm(folder)
    found = doctor.model(settings(tmp_path, **{"model.path": folder}))
    assert (found.grade, message in found.figure, bool(found.advice)) == (CheckGrade.FAILED, True, True)


def test_once_a_model_is_in_service_the_doctor_does_not_ask_for_the_configured_one(tmp_path: Path) -> None:
    used = settings(tmp_path, **{"model.path": "/nonexistent"})
    (tmp_path / "data").mkdir()
    with sqlite3.connect(tmp_path / "data" / "ledger.sqlite3") as sql:
        sql.execute("CREATE TABLE aliases (name TEXT, manifest TEXT)")
        sql.execute("INSERT INTO aliases VALUES ('champion', NULL)")
    assert doctor.model(used).grade is CheckGrade.FAILED
    with sqlite3.connect(tmp_path / "data" / "ledger.sqlite3") as sql:
        sql.execute("UPDATE aliases SET manifest = ?", ("ab" * 32,))
    assert (doctor.model(used).grade, doctor.model(used).figure) == (CheckGrade.OK, "abababababab is in service")

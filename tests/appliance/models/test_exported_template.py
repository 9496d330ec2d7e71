"""An exported model has a chat template that writes the format in which it was trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from broken_models import CHATML, chatml, edit, sound

from appliance.errors import AssayError
from appliance.models.export_model import export, recorded_aliases
from appliance.rendering import told


@pytest.mark.parametrize(("named", "begins"), [("", "{%- set told"), ("told", "{%- set told = namespace(system=''")])
def test_an_exported_folder_carries_the_template_of_its_format(tmp_path: Path, named: str, begins: str) -> None:
    source = sound(tmp_path / "model")
    chatml(source)
    edit("tokenizer_config.json", chat_template=CHATML)(source)
    if named:
        (source / "rendering.json").write_text(json.dumps({"format": named}))
    done = export(str(source), tmp_path / "out", tmp_path / "data", "")
    assert not done.template
    written = (tmp_path / "out" / "chat_template.jinja").read_text()
    assert written.startswith(begins)
    assert (written == told.CHATML) == (not named)
    assert not (tmp_path / "out" / "rendering.json").exists() or not named
    again = export(str(tmp_path / "out"), tmp_path / "again", tmp_path / "data", "")
    assert again.digest == done.digest


def test_a_format_without_a_template_is_exported_as_it_is(tmp_path: Path) -> None:
    source = sound(tmp_path / "model")
    done = export(str(source), tmp_path / "out", tmp_path / "data", "")
    assert not done.template
    assert not (tmp_path / "out" / "chat_template.jinja").exists()
    (source / "rendering.json").write_text('{"format": "nobody"}')
    assert "unknown format" in export(str(source), tmp_path / "other", tmp_path / "data", "").template


def test_a_ledger_whose_first_table_was_not_yet_written_names_no_model(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite3").touch()
    assert recorded_aliases(tmp_path / "ledger.sqlite3") == {}
    (tmp_path / "ledger.sqlite3").write_text("no database, but long enough to look like one")
    with pytest.raises(AssayError, match="cannot be read"):
        recorded_aliases(tmp_path / "ledger.sqlite3")

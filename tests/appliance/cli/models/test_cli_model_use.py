"""`assay model use`, as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

from broken_models import sound
from home_commands import assay

from appliance.ledger.lock import data_lock


def test_a_model_is_used_without_a_file_written_by_hand(tmp_path: Path) -> None:
    source = sound(tmp_path / "seedling")
    (source / "LICENSE").write_text("as is")
    base = json.loads(assay(tmp_path, "model", "import", f"mine@{source}", "--json").stdout)["folder"]
    first = assay(tmp_path, "plan", "mine")
    assert first.stdout.splitlines()[0].startswith("run `assay model use mine`: ")

    asked = assay(tmp_path, "model", "use", "mine")
    assert (asked.returncode, "add --yes" in asked.stderr) == (2, True)
    assert f'+path = "{base}"' in asked.stdout, "what would be written is shown first"
    file = tmp_path / "assay" / "config.toml"
    assert not file.exists()

    with data_lock(tmp_path / "data"):
        written = assay(tmp_path, "model", "use", "mine", "--yes")
    assert written.returncode == 0, written.stderr
    assert "restart the daemon" in written.stdout
    assert f'path = "{base}"' in file.read_text()
    again = assay(tmp_path, "model", "use", "mine", "--yes")
    assert (again.returncode, "nothing to do" in again.stdout) == (0, True)
    assert assay(tmp_path, "plan").stdout.startswith("it fits as configured: run `assay doctor`")

    file.write_text("# mine\n" + file.read_text().replace("packing = true", "watch_items = 7\npacking = false"))
    file.chmod(0o600)
    changed = json.loads(assay(tmp_path, "model", "use", "mine", "--yes", "--json").stdout)
    assert changed["changes"] == {"recipe.training.packing": True}
    text = file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert text.startswith("# mine\n")
    assert "watch_items = 7\n" in text

    elsewhere = assay(tmp_path, "model", "use", "mine", "--yes", ASSAY_MODEL__PATH=str(source))
    assert "ASSAY_MODEL__PATH sets one of these keys otherwise" in elsewhere.stderr
    before = file.read_text()
    for typed, code, word in (
        (("nobody",), 2, "registered: mine"),
        (("mine", "--format", "nobody"), 2, "unknown format"),
        ((str(tmp_path / "data"),), 2, "no config.json"),
        ((str(source), "--format", "told"), 2, "is not registered"),
    ):
        refused = assay(tmp_path, "model", "use", *typed, "--yes")
        assert (refused.returncode, word in refused.stderr) == (code, True), refused.stderr
    assert file.read_text() == before
    file.write_text("[model\n")
    broken = assay(tmp_path, "model", "use", "mine", "--yes")
    assert (broken.returncode, file.read_text()) == (2, "[model\n")

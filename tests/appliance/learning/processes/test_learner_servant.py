"""What a message to the learners of another host may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.placement.engine_servant import LearnerServant


@pytest.mark.parametrize("absolute", [True, False])
def test_a_folder_outside_of_the_servants_own_is_never_removed(tmp_path: Path, absolute: bool) -> None:
    (tmp_path / "precious").write_text("years of work")
    servant = LearnerServant()
    climbs = "/".join([".."] * len(servant.folder.parts))
    try:
        said = servant.answer({"ask": "taken", "folder": str(tmp_path) if absolute else f"{climbs}{tmp_path}"})
    finally:
        servant.close()
    assert said["kind"] == "BadRequestError"
    assert (tmp_path / "precious").exists()

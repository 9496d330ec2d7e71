"""The doctor shows the first prompt as the model reads it, and names a registered base."""

from __future__ import annotations

from pathlib import Path

from broken_models import chatml, sound

from appliance.cli.machine import doctor_model
from appliance.cli.machine.doctor_checks import CheckGrade
from appliance.config.configuration import Settings


def settings(folder: Path, **flags: object) -> Settings:
    return Settings.load({"data": folder / "data", **flags}, {"HOME": str(folder)}, folder, folder)


def test_the_first_prompt_is_shown_as_the_model_reads_it(tmp_path: Path) -> None:
    assert doctor_model.first_prompt(settings(tmp_path)) is None
    base = sound(tmp_path / "data" / "bases" / "mine")
    raised = settings(tmp_path, **{"model.path": base})
    assert "registered as mine" in doctor_model.model(raised).figure
    own = doctor_model.first_prompt(raised)
    assert own is not None
    assert own.whole.startswith("<|user|>")
    assert "\\boxed" not in own.whole, "the model that is raised here learns the answer form"
    chatml(base)
    told = doctor_model.first_prompt(settings(tmp_path, **{"model.path": base, "recipe.agent.max_tokens": 512}))
    assert told is not None
    assert told.whole.startswith("<|im_start|>user\nYou can run Python code in a sandbox")
    assert "End with the answer in one \\boxed{}" in told.whole
    assert told.whole.endswith("<|im_end|>\n<|im_start|>assistant\n")
    assert "\n" not in told.figure
    assert "\\n" in told.figure


def test_a_prompt_that_leaves_no_room_for_an_answer_fails(tmp_path: Path) -> None:
    base = sound(tmp_path / "model")
    chatml(base)
    found = doctor_model.first_prompt(settings(tmp_path, **{"model.path": base, "recipe.agent.max_tokens": 64}))
    assert found is not None
    assert (found.grade, "raise recipe.agent.max_tokens" in found.advice) == (CheckGrade.FAILED, True)
    (base / "tokenizer.json").unlink()
    harmed = doctor_model.first_prompt(settings(tmp_path, **{"model.path": base}))
    assert harmed is not None
    assert (harmed.grade, "no tokenizer.json" in harmed.figure) == (CheckGrade.FAILED, True)

"""The configuration file of an owner changes in the named keys only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from broken_models import CHATML, chatml, edit, sound

from appliance.inference.engine import ModelError
from appliance.learning.folders import verify
from appliance.models.use_model import difference, in_format, with_values
from appliance.settings.config_layers import ConfigError

VALUES = {"model.path": "/models/mine", "recipe.training.steps": 5, "recipe.training.packing": True}
OWNERS = """\
# written by hand
[recipe]            # what a night asks
tasksets = ["gcd"]  # few

[recipe.training]
steps = 60  # long
watch_items = 7

[model]
engine = "torch"
"""


def test_comments_order_and_other_keys_stay() -> None:
    changed, keys = with_values(OWNERS, VALUES)
    assert keys == VALUES
    assert changed == OWNERS.replace("steps = 60  # long", "steps = 5  # long").replace(
        "watch_items = 7\n", "watch_items = 7\npacking = true\n"
    ).replace('engine = "torch"\n', 'engine = "torch"\npath = "/models/mine"\n')
    assert with_values(changed, VALUES) == (changed, {})
    lines = difference(OWNERS, changed, Path("config.toml"))
    assert [line for line in lines if line.startswith(("+", "-")) and line[1] not in "+-"] == [
        "-steps = 60  # long",
        "+steps = 5  # long",
        "+packing = true",
        '+path = "/models/mine"',
    ]


@pytest.mark.parametrize(
    "text", ["", 'model.path = "/old"\n', 'model = {path = "/old"}\n', "[recipe.agent]\nmax_tokens = 3\n"]
)
def test_every_form_of_a_section_is_found_or_made(text: str) -> None:
    import tomllib

    found = tomllib.loads(with_values(text, VALUES)[0])
    assert found["model"]["path"] == "/models/mine"
    assert found["recipe"]["training"] == {"steps": 5, "packing": True}
    assert ("agent" in found["recipe"]) == ("agent" in text)


@pytest.mark.parametrize(("text", "word"), [("model = 3\n", "not a section"), ("[model\n", "not TOML")])
def test_a_file_that_cannot_have_the_keys_is_refused(text: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        with_values(text, VALUES)


def test_a_format_makes_a_copy_of_the_model_under_another_name_once(tmp_path: Path) -> None:
    base = sound(tmp_path / "bases" / "mine")
    chatml(base)
    edit("tokenizer_config.json", chat_template=CHATML)(base)
    (base / "base.json").write_text('{"name": "mine"}')
    made = in_format(base, tmp_path, "told")
    assert made == tmp_path / "bases" / "mine-told"
    assert json.loads((made / "rendering.json").read_text()) == {"format": "told"}
    assert json.loads((made / "base.json").read_text()) == {"name": "mine-told"}
    digest = verify(made)
    assert (in_format(base, tmp_path, "told"), verify(made)) == (made, digest)
    with pytest.raises(ModelError, match="unknown format"):
        in_format(base, tmp_path, "nobody")
    assert {one.name for one in (tmp_path / "bases").iterdir()} == {"mine", "mine-told"}

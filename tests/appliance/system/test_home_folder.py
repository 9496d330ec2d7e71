from pathlib import Path

import pytest

from appliance.learning.recipes.recipe import Recipe
from appliance.planning.training_recipes import read_recipe
from appliance.settings.config_layers import ConfigError
from appliance.system.durable_file import expanded


def test_a_tilde_is_the_home_folder_and_a_user_who_does_not_exist_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/srv/somebody")
    assert expanded("~/model") == Path("/srv/somebody/model")
    assert expanded(Path("~no-such-user/model")) == Path("~no-such-user/model")


def test_a_recipe_of_a_user_who_does_not_exist_is_not_there() -> None:
    with pytest.raises(ConfigError, match="unknown recipe ~no-such-user/recipe"):
        read_recipe("~no-such-user/recipe", Recipe())

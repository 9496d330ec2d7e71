"""Explains how a night comes to ask an owner's taskset: the configuration line, its file, and further steps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from appliance.settings.config_layers import user_file

if TYPE_CHECKING:
    from appliance.config.configuration import Settings

KEY = "recipe.tasksets"


def how_to_train(settings: Settings, name: str) -> list[str]:
    """Returns lines that tell a person how a night comes to ask an owner's taskset. `name` is the taskset's,
    own/NAME."""
    origin = settings.origins()[KEY]
    place = str(user_file()) if origin == "default" else origin
    wanted = json.dumps([*(one for one in settings.recipe.tasksets if one != name), name])
    return [
        f"no night asks it yet. First certify it: `assay curriculum certify {name}`",
        f"then write into {place}, and restart the daemon:",
        "  [recipe]",
        f"  tasksets = {wanted}",
        "the list replaces the present one: keep or remove the others",
        f"inspect it: `assay curriculum show {name}`",
    ]

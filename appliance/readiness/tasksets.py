"""Whether the tasksets that a recipe names are there at all, said before a night begins.

What always holds: nothing is changed and no file is read; whether a taskset is certified, and whether its tools can be
called, a night finds out and leaves it out where not. One that does not exist is a mistake in the configuration: what
was meant cannot be known, so no night begins without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from appliance.curriculum.own.files import names_in
from appliance.settings.config_layers import ConfigError
from curriculum.registry import BUILT_IN


def require_tasksets(data: Path, names: Iterable[str], where: str = "recipe.tasksets names") -> None:
    """Raises ConfigError for a name that neither the code has nor the owner, with the one that is most like it."""
    own = names_in(data)
    unknown = [name for name in dict.fromkeys(names) if name not in own and name not in BUILT_IN.tasksets]
    if not unknown:
        return
    near = get_close_matches(unknown[0], [*own, *BUILT_IN.tasksets], n=1)
    listed = ", ".join(map(repr, unknown))
    raise ConfigError(
        f"{where} {listed}, and there is no such taskset",
        hint=(f"did you mean {near[0]}? " if near else "") + "`assay curriculum ls` lists what there is",
    )


def named_in(plan: Mapping[str, Any]) -> list[str]:
    """Collects what a cycle's plan names as tasksets, in its recipe and in those of its stages."""
    recipes = [plan.get("recipe", {}), *(stage.get("recipe", {}) for stage in plan.get("stages", ()))]
    return [name for recipe in recipes for name in recipe.get("tasksets", ())]

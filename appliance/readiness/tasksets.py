"""Checks, before a night begins, that the tasksets named in a recipe exist.

Invariants: nothing is changed and no file is read. The night itself skips tasksets that are not certified or whose
tools are unavailable. An unknown name is a configuration error whose intent is unclear, so no night begins.
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
    """Raises ConfigError for a taskset name that is neither built in nor the owner's, with the nearest match."""
    own = names_in(data)
    unknown = [name for name in dict.fromkeys(names) if name not in own and name not in BUILT_IN.tasksets]
    if not unknown:
        return
    near = get_close_matches(unknown[0], [*own, *BUILT_IN.tasksets], n=1)
    listed = ", ".join(map(repr, unknown))
    raise ConfigError(
        f"{where} unknown tasksets: {listed}",
        hint=(f"did you mean {near[0]}? " if near else "") + "`assay curriculum ls` lists all",
    )


def named_in(plan: Mapping[str, Any]) -> list[str]:
    """Lists the tasksets named in a cycle's plan, in its recipe and its stages' recipes."""
    recipes = [plan.get("recipe", {}), *(stage.get("recipe", {}) for stage in plan.get("stages", ()))]
    return [name for recipe in recipes for name in recipe.get("tasksets", ())]

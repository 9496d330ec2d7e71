"""Reads the sampler's final state of each level from a cycle's plan. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from curriculum.difficulty import Difficulty, Place
from curriculum.registry import TASKSETS

KEY = re.compile(r"difficulty_([0-9]{1,9})")
"""Plan key of the difficulty estimates before the step of that number."""


def key_of_step(step: int) -> str:
    """Returns the key under which a cycle's plan has the difficulty estimates before a step."""
    return f"difficulty_{step}"


def newest_in(plan: Mapping[str, Any]) -> Difficulty | None:
    """Returns the latest difficulty estimates of a cycle's plan; None if levels were drawn uniformly. Raises
    ValidationError."""
    steps = [int(found[1]) for name in plan if (found := KEY.fullmatch(name))]
    return Difficulty.model_validate(plan[key_of_step(max(steps))]) if steps else None


def states_in(plan: Mapping[str, Any]) -> dict[tuple[str, int | None], str]:
    """Returns the state of each (taskset, level) that a cycle sampled: at the edge, solved or too hard; empty if
    unknown."""
    try:
        known = newest_in(plan)
    except ValidationError:  # another version: no state is better than a wrong one
        known = None
    if known is None:
        return {}
    levels: dict[str, int] = defaultdict(int)
    places = [Place(name, int(level)) for name, _, level in (key.rpartition("/") for key in known.counts)]
    for name, level in places:
        levels[name] = max(levels[name], level + 1, TASKSETS[name].level_count if name in TASKSETS else 0)
    return {(place.taskset, place.level): known.state(place, levels[place.taskset]).value for place in places}

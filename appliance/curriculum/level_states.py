"""Says of a cycle's levels what its sampler thought of them when its training ended. Pure: it reads the plan."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from curriculum.difficulty import Difficulty, Place
from curriculum.registry import TASKSETS

KEY = re.compile(r"difficulty_([0-9]{1,9})")
"""In a plan: what was known before the step of that number."""


def key_of_step(step: int) -> str:
    """The plan's key of what was known before a step."""
    return f"difficulty_{step}"


def newest_in(plan: Mapping[str, Any]) -> Difficulty | None:
    """What was known last, in a plan; None where levels came equally often. Raises ValidationError."""
    steps = [int(found[1]) for name in plan if (found := KEY.fullmatch(name))]
    return Difficulty.model_validate(plan[key_of_step(max(steps))]) if steps else None


def states_in(plan: Mapping[str, Any]) -> dict[tuple[str, int | None], str]:
    """The state of each (taskset, level) that was asked: at the edge, solved or too hard; none where none is known."""
    try:
        known = newest_in(plan)
    except ValidationError:  # of another version: nothing is said rather than something wrong
        known = None
    if known is None:
        return {}
    levels: dict[str, int] = defaultdict(int)
    places = [Place(name, int(level)) for name, _, level in (key.rpartition("/") for key in known.counts)]
    for name, level in places:
        levels[name] = max(levels[name], level + 1, TASKSETS[name].level_count if name in TASKSETS else 0)
    return {(place.taskset, place.level): known.state(place, levels[place.taskset]).value for place in places}

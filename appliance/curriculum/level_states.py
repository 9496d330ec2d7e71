"""Reads the sampler's final state of each level from a cycle's plan. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from curriculum.difficulty import Difficulty, place_of
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
    """Returns the state of each (taskset, level) that a cycle sampled, over its topics: at the edge, solved, too
    hard, or mixed; empty if unknown."""
    try:
        known = newest_in(plan)
    except ValidationError:  # another version: no state is better than a wrong one
        known = None
    if known is None:
        return {}
    levels: dict[str, int] = defaultdict(int)
    for name, level, _ in map(place_of, known.counts):
        levels[name] = max(levels[name], level + 1, TASKSETS[name].level_count if name in TASKSETS else 0)
    return {level: state.value for level, state in known.level_states(levels).items()}

"""Carries what is known of levels from step to step, from stage to stage and from night to night.

What always holds: what training begins with is in the cycle's plan before its first step, once and for good, so a night
that was killed asks again what it would have asked; what it ended with is there too, and the next night begins with
that, faded. All of it is a pure function of the plans.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from curriculum.difficulty import Difficulty, LevelState, Place
from curriculum.registry import TASKSETS

KEY = re.compile(r"difficulty_([0-9]{1,9})")
"""In a plan: what was known before the step of that number."""


def key_of_step(step: int) -> str:
    """The plan's key of what was known before a step."""
    return f"difficulty_{step}"


def known_at(step: int, plan: Mapping[str, Any], earlier: Iterable[Mapping[str, Any]]) -> Difficulty:
    """What training knows that begins with this step: as the plan says, otherwise as the newest of the earlier nights'
    plans, newest first, that says anything, faded."""
    if key_of_step(step) in plan:
        return Difficulty.model_validate(plan[key_of_step(step)])
    for other in earlier:
        steps = [int(found[1]) for name in other if (found := KEY.fullmatch(name))]
        if steps:
            return Difficulty.model_validate(other[key_of_step(max(steps))]).overnight()
    return Difficulty()


def in_words(known: Difficulty) -> str:
    """How many levels are thought to be what, for a person."""
    states: Counter[LevelState] = Counter()
    for key in known.counts:
        name, _, level = key.rpartition("/")
        if name in TASKSETS:
            states[known.state(Place(name, int(level)), TASKSETS[name].level_count)] += 1
    told = ", ".join(f"{states[state]} {state.value}" for state in LevelState if states[state])
    return f"levels: {told}" if told else "no level known yet"

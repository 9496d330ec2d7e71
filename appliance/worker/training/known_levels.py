"""Carries difficulty estimates from step to step, stage to stage and cycle to cycle.

Invariants: the estimates that training starts with are written to the cycle's plan once, before its first step, so a
killed cycle asks the same tasks again; the final estimates are written too, and the next cycle starts with them, faded.
All of it is a pure function of the plans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from appliance.curriculum.level_states import key_of_step, newest_in
from appliance.worker.setup.progress import CycleProgress
from curriculum.catalog import Catalog
from curriculum.contract.task import Split
from curriculum.difficulty import Difficulty, LevelState, place_of
from curriculum.registry import TASKSETS


def say_exhausted(progress: CycleProgress, catalog: Catalog, name: str, exclude: AbstractSet[str]) -> None:
    """Warns once per cycle that a taskset has too few new questions, with its training rows if finite. `exclude` are
    the keys not to ask."""
    finite = catalog.finite(name)
    rows = frozenset() if finite is None else finite.keys(Split.TRAIN)
    of = f" ({len(rows - exclude)} of its {len(rows)} training rows)" if rows else ""
    text = f"{name} has too few questions that recent cycles did not ask{of}: other tasksets get the rest of its share"
    progress.say_once("warning", text)


def known_at(step: int, plan: Mapping[str, Any], earlier: Iterable[Mapping[str, Any]]) -> Difficulty:
    """Returns the difficulty estimates of tasksets' levels for this step: from the plan, or faded from the newest
    earlier plan that has any."""
    if key_of_step(step) in plan:
        return Difficulty.model_validate(plan[key_of_step(step)])
    for other in earlier:
        if (known := newest_in(other)) is not None:
            return known.overnight()
    return Difficulty()


def in_words(known: Difficulty) -> str:
    """Describes the difficulty estimates in words: how many levels are in which state."""
    names = {place_of(key).taskset for key in known.counts}
    levels = {name: TASKSETS[name].level_count for name in names if name in TASKSETS}
    states = Counter(known.level_states(levels).values())
    told = ", ".join(f"{states[state]} {state.value}" for state in LevelState if states[state])
    return f"levels: {told}" if told else "no level known yet"

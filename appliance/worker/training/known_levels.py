"""Carries what is known of levels from step to step, from stage to stage and from night to night.

What always holds: what training begins with is in the cycle's plan before its first step, once and for good, so a night
that was killed asks again what it would have asked; what it ended with is there too, and the next night begins with
that, faded. All of it is a pure function of the plans.
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
from curriculum.difficulty import Difficulty, LevelState, Place
from curriculum.registry import TASKSETS


def say_exhausted(progress: CycleProgress, catalog: Catalog, name: str, exclude: AbstractSet[str]) -> None:
    """Warns once a night, with how many training rows a family of given ones has. `exclude` is what is not asked."""
    finite = catalog.finite(name)
    rows = frozenset() if finite is None else finite.keys(Split.TRAIN)
    of = f" ({len(rows - exclude)} of its {len(rows)} training rows)" if rows else ""
    text = f"{name} has too little that recent nights did not ask{of}: the rest of its share goes to other families"
    progress.say_once("warning", text)


def known_at(step: int, plan: Mapping[str, Any], earlier: Iterable[Mapping[str, Any]]) -> Difficulty:
    """What training knows that begins with this step: as the plan says, otherwise as the newest of the earlier nights'
    plans, newest first, that says anything, faded."""
    if key_of_step(step) in plan:
        return Difficulty.model_validate(plan[key_of_step(step)])
    for other in earlier:
        if (known := newest_in(other)) is not None:
            return known.overnight()
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

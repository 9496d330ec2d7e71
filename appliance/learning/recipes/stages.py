"""Stages of a training, in order: data, budgets and end condition of each.

Invariants: a stage has a complete recipe, independent of later configuration; budgets never shrink between stages, so
one engine serves all; an impossible stage is refused before training begins. SFT followed by RL with growing budgets
and harder tasks: 2508.20722; ending a stage on success as well as on steps is ours, after the turn budgets of
2509.08755.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from appliance.inference.http.local_api import EndpointError, require_local
from appliance.learning.recipes.recipe import Recipe
from appliance.records.record import FiniteRecord, Record
from runtime.model import UnitName

MOST = 16
"""Maximum stages of a training."""

_KEPT = 'optimizer = "keep" needs a stage of full training with the same optimizer directly before it'

MOST_TRACES = 64 << 20
"""Maximum bytes of a file of recorded conversations."""

StageKind = Literal["sft", "rl", "distil"]
OWN_KEYS = {
    "sft": frozenset({"data", "file", "teacher", "warm_start"}),
    "rl": frozenset({"tasks", "optimizer", "advance_at", "training"}),
    "distil": frozenset({"optimizer", "advance_at", "training", "scored_by"}),
}
"""Stage keys that only this kind has."""


class TeacherRecipe(FiniteRecord):
    """Teacher model behind an OpenAI-compatible API; its answers that pass are trained on."""

    base_url: str = Field("", max_length=500)
    """Base URL of the API, such as http://127.0.0.1:8000/v1. On this machine only."""
    model: str = Field("", max_length=200)
    """Model name in the API."""
    tasks: Annotated[int, UnitName("tasks")] = Field(64, ge=1, le=100_000)
    """Tasks sent to the teacher."""
    samples: Annotated[int, UnitName("answers")] = Field(4, ge=1, le=1024)
    """Attempts per task; at most one passing attempt is used."""
    temperature: Annotated[float, UnitName("temperature")] = Field(1.0, ge=0)
    """Sampling temperature of the teacher."""
    max_tokens: Annotated[int, UnitName("tokens")] = Field(1024, ge=1)
    """Maximum tokens per turn of the teacher."""


class Stage(Record):
    """One training stage with everything that decides its result."""

    name: str = Field(min_length=1, max_length=40, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._+-]*$")
    kind: StageKind
    recipe: Recipe
    tasks: Literal["fresh", "unsolved"] = "fresh"
    """`unsolved` takes tasks of earlier stages that some attempt failed, then fresh ones."""
    optimizer: Literal["reset", "keep"] = "reset"
    """`keep` continues the previous stage's optimizer moments."""
    advance_at: float | None = Field(default=None, gt=0, le=1)
    """Held-out success at which the stage ends early."""
    data: Literal["demonstrations", "file", "teacher"] = "demonstrations"
    """Source of SFT conversations: generated demonstrations, a recorded file, or a teacher."""
    file: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """SHA-256 of the recorded conversations."""
    teacher: TeacherRecipe = TeacherRecipe()
    scored_by: str = Field(default="", max_length=100)
    """Digest of the published model whose log-probabilities are the target."""

    @property
    def steps(self) -> int:
        """Maximum steps of the training stage."""
        return self.recipe.warm_start.steps if self.kind == "sft" else self.recipe.training.steps


def refusal(stages: Sequence[Stage]) -> str:
    """Returns the reason that these training stages cannot follow each other; empty if they can."""
    if not 1 <= len(stages) <= MOST:
        return f"{len(stages)} stages; use 1 to {MOST}"
    names = [stage.name for stage in stages]
    if len(set(names)) < len(names):
        return f"two stages are named {next(name for name in names if names.count(name) > 1)!r}"
    for number, stage in enumerate(stages, 1):
        if why := _own_refusal(stage):
            return f"stage {number} ({stage.name}): {why}"
    if stages[0].optimizer == "keep":
        return f"stage 1 ({stages[0].name}): {_KEPT}"
    for number, (before, after) in enumerate(pairwise(stages), 2):
        if why := _following(before, after):
            return f"stage {number} ({after.name}): {why}"
    return ""


def _own_refusal(stage: Stage) -> str:
    if stage.kind == "sft" and stage.data == "file" and not stage.file:
        return 'data = "file" needs the file of conversations'
    if stage.kind == "sft" and stage.data == "teacher" and not (stage.teacher.base_url and stage.teacher.model):
        return 'data = "teacher" needs teacher.base_url and teacher.model'
    if stage.kind == "sft" and stage.data == "teacher":
        try:
            require_local(stage.teacher.base_url)
        except EndpointError as error:
            return f"{error}: {error.hint}"
    if stage.kind == "sft" and stage.data != "file" and stage.file:
        return 'file needs data = "file"'
    if stage.kind == "distil" and not stage.scored_by:
        return "distil needs scored_by: the model whose log-probabilities are the target"
    if stage.kind == "distil" and "gspo" in stage.recipe.training.all_objectives:
        return "gspo weighs whole answers, but a teacher scores tokens: use dapo or another objective"
    if stage.kind == "distil" and stage.recipe.training.self_distillation.shown != "nothing":
        return 'distil has the teacher scored_by: set training.self_distillation.shown to "nothing"'
    return ""


def _following(before: Stage, after: Stage) -> str:
    smaller = [
        f"agent.{name} falls from {getattr(before.recipe.agent, name)} to {getattr(after.recipe.agent, name)}"
        for name in ("max_tokens", "max_calls")
        if getattr(after.recipe.agent, name) < getattr(before.recipe.agent, name)
    ]
    if smaller:
        return f"{smaller[0]}: budgets grow from stage to stage"
    if after.optimizer == "keep":
        same = ("method", "optimizer", "lora_rank")
        alike = all(getattr(before.recipe.training, name) == getattr(after.recipe.training, name) for name in same)
        if before.kind == "sft" or after.recipe.training.adapts or not alike:
            return _KEPT
    return ""

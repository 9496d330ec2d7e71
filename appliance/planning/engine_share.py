"""Says what share of a GPU vLLM is given where a learner trains on the same one and nobody has said it.

What always holds: a share that somebody set is left as it is. Where vLLM has its GPUs to itself it takes what it takes
by itself. What cannot be had is refused, before anything starts.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from appliance.config.configuration import Settings
from appliance.inference.engine import ModelError
from appliance.inference.gpu_numbers import VISIBLE
from appliance.learning.learner_devices import sampled_on
from appliance.learning.recipes.recipe import Recipe, TrainingRecipe
from appliance.learning.recipes.stages import Stage
from appliance.planning import (
    GIB,
    Gpu,
    Hardware,
    Layout,
    Shape,
    Vllm,
    least_of_engine,
    left_for_engines,
    sft_way,
    share_of,
)


@dataclass(frozen=True)
class Way:
    """One way of training that a night takes."""

    recipe: TrainingRecipe
    max_tokens: int
    scored: bool = False
    """Whether a teacher scores, in an engine of its own that does not sleep."""


def ways_of(recipe: Recipe, stages: Sequence[Stage] = ()) -> list[Way]:
    """Lists those of a night: of its stages where it has any."""
    if not stages:
        return [Way(recipe.training, recipe.agent.max_tokens)]
    return [way_of(stage) for stage in stages]


def way_of(stage: Stage) -> Way:
    """Gives the one that a stage takes."""
    trained, tokens = stage.recipe.training, stage.recipe.agent.max_tokens
    if stage.kind == "sft":
        trained = sft_way(stage.recipe.warm_start, trained, tokens)
    return Way(trained, tokens, scored=stage.kind == "distil")


def engine_share(settings: Settings, shape: Shape, machine: Hardware, ways: Sequence[Way]) -> float | None:
    """Gives the share of each GPU that an engine gets beside a learner, for all of these ways, in hundredths; None
    where there is nothing to say. Raises ModelError where it is less than an engine needs at the least."""
    model, vllm, placement = settings.model, settings.vllm, settings.placement
    here = placement.engines == placement.learners == "here"
    learns = bool(machine.gpus) and model.device != "cpu"
    if model.engine != "vllm" or vllm.memory_share is not None or not here or not learns:
        return None
    taken = len(sampled_on("vllm", vllm, os.environ.get(VISIBLE), here=True))
    layout = Layout(model.learners, model.engines, vllm.tensor_parallel, taken, Vllm(sleep=vllm.sleep))
    if layout.apart(len(machine.gpus)):
        return None
    gpu, room, least = _room(layout, shape, machine, ways)
    if room < least:
        also = "" if vllm.sleep else "set vllm.sleep to 2, "
        raise ModelError(
            f"vLLM samples on a GPU that a learner trains on, where {max(0, room) / GIB:.1f} of {gpu.total / GIB:.1f} "
            f"GiB are left for it, and it takes {least / GIB:.1f} at the least",
            hint=f"{also}lower what the learner takes (`assay plan` says what fits), or take a smaller model",
        )
    return share_of(gpu, room, least)


def shared_out(layout: Layout, shape: Shape, machine: Hardware, ways: Sequence[Way]) -> Layout:
    """Gives the layout in which vLLM has the share that a worker gives it, for all of these ways; 0 where that is
    refused."""
    vllm = layout.vllm
    if vllm is None or vllm.given is not None or not machine.gpus or layout.apart(len(machine.gpus)):
        return layout
    return replace(layout, vllm=replace(vllm, given=share_of(*_room(layout, shape, machine, ways))))


def _room(layout: Layout, shape: Shape, machine: Hardware, ways: Sequence[Way]) -> tuple[Gpu, int, int]:
    """The GPU that has least free, the bytes that each engine may take of it, and those that it takes at the least."""
    gpu = min(machine.gpus, key=lambda one: one.free)
    left = []
    for way in ways:
        held_by = replace(layout, engines=layout.engines + way.scored)
        sleeps = layout.vllm is not None and layout.vllm.sleep > 0 and not way.scored
        left.append(left_for_engines(shape, gpu, way.recipe, way.max_tokens, held_by, sleeps=sleeps))
    return gpu, min(left), least_of_engine(shape, gpu, max(way.max_tokens for way in ways), layout)

"""Share of a GPU for vLLM beside a learner, unless configured.

Invariants: a configured share is kept. On GPUs of its own, vLLM uses its default. An impossible share is refused before
anything starts.
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
    """One kind of training in a cycle, whose memory is planned."""

    recipe: TrainingRecipe
    max_tokens: int
    scored: bool = False
    """True if a teacher scores, in an engine of its own that never sleeps."""


def ways_of(recipe: Recipe, stages: Sequence[Stage] = ()) -> list[Way]:
    """Lists the kinds of training of a cycle, or of its stages if any."""
    if not stages:
        return [Way(recipe.training, recipe.agent.max_tokens)]
    return [way_of(stage) for stage in stages]


def way_of(stage: Stage) -> Way:
    """Returns the kind of training of a stage, as memory planning takes it."""
    trained, tokens = stage.recipe.training, stage.recipe.agent.max_tokens
    if stage.kind == "sft":
        trained = sft_way(stage.recipe.warm_start, trained, tokens)
    return Way(trained, tokens, scored=stage.kind == "distil")


def engine_share(settings: Settings, shape: Shape, machine: Hardware, ways: Sequence[Way]) -> float | None:
    """Returns an engine's share of each GPU's memory beside a learner, for all of these kinds of training. It is in
    hundredths; None if none is needed. Raises ModelError if it is below an engine's minimum."""
    model, vllm, placement = settings.model, settings.vllm, settings.placement
    here = placement.engines == placement.learners == "here"
    learns = bool(machine.gpus) and model.device != "cpu"
    if model.engine != "vllm" or vllm.memory_share is not None or not here or not learns:
        return None
    taken = len(sampled_on("vllm", vllm, os.environ.get(VISIBLE), here=True))
    layout = Layout(
        model.learners, model.engines, vllm.tensor_parallel, taken, Vllm(sleep=vllm.sleep, fp8=vllm.fp8), model.dtype
    )
    if layout.apart(len(machine.gpus)):
        return None
    gpu, room, least = _room(layout, shape, machine, ways)
    if room < least:
        also = "" if vllm.sleep else "set vllm.sleep to 2, "
        raise ModelError(
            f"vLLM shares a GPU with a learner, which leaves {max(0, room) / GIB:.1f} of {gpu.total / GIB:.1f} "
            f"GiB, but vLLM needs at least {least / GIB:.1f}",
            hint=f"{also}reduce the learner's memory (see `assay plan`), or use a smaller model",
        )
    return share_of(gpu, room, least)


def shared_out(layout: Layout, shape: Shape, machine: Hardware, ways: Sequence[Way]) -> Layout:
    """Returns the GPU layout with the memory share that a worker would give vLLM for these kinds of training; 0 if
    refused."""
    vllm = layout.vllm
    if vllm is None or vllm.given is not None or not machine.gpus or layout.apart(len(machine.gpus)):
        return layout
    return replace(layout, vllm=replace(vllm, given=share_of(*_room(layout, shape, machine, ways))))


def _room(layout: Layout, shape: Shape, machine: Hardware, ways: Sequence[Way]) -> tuple[Gpu, int, int]:
    """Returns the GPU with the least free memory, the bytes there available to each engine, and an engine's minimum."""
    gpu = min(machine.gpus, key=lambda one: one.free)
    left = []
    for way in ways:
        held_by = replace(layout, engines=layout.engines + way.scored)
        sleeps = layout.vllm is not None and layout.vllm.sleep > 0 and not way.scored
        left.append(left_for_engines(shape, gpu, way.recipe, way.max_tokens, held_by, sleeps=sleeps))
    return gpu, min(left), least_of_engine(shape, gpu, max(way.max_tokens for way in ways), layout)

"""The most that each phase of a night holds at once: on a processor, on a GPU, and in the machine's memory beside one.

What always holds: memory is what is held at once, and the largest phase is what has to fit. Files are read into the
machine's own memory and adapters are merged there, so that has phases beside a GPU, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.planning.shapes import Layout, Shape
from appliance.planning.sizes import (
    GPU_USABLE,
    PROCESS,
    SLACK,
    bytes_again,
    checkpoint_bytes,
    engine_weight_bytes,
    pushed_copy_bytes,
    trained_parameters,
)


def phases_of_processor(
    shape: Shape, recipe: TrainingRecipe, parts: Mapping[str, int], layout: Layout
) -> dict[str, int]:
    """On a processor, where one process holds all but vLLM. Opening a model holds its files beside the weights; going
    on from a checkpoint what was kept, twice; publishing an adapter the base's files and a model in float32 beside the
    engine's copy. The engine holds its old weights while it takes new ones; vLLM does not, but its old offer stays."""
    files, held = shape.file_bytes, parts["process"] + parts["weights"]
    engines = parts["engine"] + parts.get("teacher", 0) + parts.get("offered", 0)
    new = bytes_again(shape, recipe, layout) if layout.vllm else engine_weight_bytes(shape, gpu=False)
    found = {
        "loading": held + 2 * files,
        "training": sum(parts.values()),
        "resuming": held + 2 * checkpoint_bytes(shape, recipe, parts) + engines,
        "pushing": held + parts["moments"] + engines + new + pushed_copy_bytes(shape, recipe),
    }
    if recipe.method == "lora":
        offered = parts.get("offered", 0)
        found["publishing"] = parts["process"] + parts["engine"] + offered + 2 * files + shape.parameters * 4
    return {name: int(value * SLACK) for name, value in found.items()}


def phases_of_gpu(
    parts: Mapping[str, int], engine: int, opened: int, resting: int, *, alone: bool, asleep: bool, exact: bool
) -> dict[str, int]:
    """On a GPU: the learner's weights come to it as they are and its moments as they were kept, so a step takes most.
    Each of several has the whole weights once, the bytes `opened`, before they are split. `engine` is what engines
    hold while they sample, on GPUs of their own where they are `alone`; torch's gave its old weights up before the
    step. One that is `asleep` in a step is beside weights and moments else, the bytes `resting`. `exact` is one that
    takes what it was given and no more, as vLLM does: it needs no slack, nor the pages that are not planned with, so it
    counts as much less as what there is does; alone it is a limit and no phase."""

    def taken(held: int, engines: int) -> int:
        return int(held * SLACK + engines * GPU_USABLE) if exact else int((held + engines) * SLACK)

    beside = parts["engine"] + parts.get("teacher", 0)
    found = {"training": taken(sum(parts.values()) - beside, beside)}
    if opened:
        found["loading"] = taken(parts["process"] + opened, 0 if alone else engine)
    if asleep:
        found["sampling"] = taken(parts["process"] + resting, engine)
    elif alone and not exact:
        found["sampling"] = taken(parts["process"], engine)
    return found


def phases_beside(
    shape: Shape, recipe: TrainingRecipe, parts: Mapping[str, int], layout: Layout, offers: int
) -> dict[str, int]:
    """The machine's memory beside a GPU: a worker keeps the model and its files there, and each learner, a process of
    its own, reads both before they go to the GPU; so does one that goes on with what a checkpoint kept. What was
    trained comes back after each step: a file in memory, what is read of it, and its tensors. Then it is pushed. The
    worker merges an adapter into a model in float32. vLLM's processes are there, what is offered to them, and the
    weights of those that sleep with them."""
    files, learners = shape.file_bytes, layout.learners
    worker = PROCESS + parts["weights"] + files
    if layout.vllm:
        kept = engine_weight_bytes(shape, gpu=True) if layout.vllm.sleep == 1 else 0
        worker += offers + layout.engines * (PROCESS + kept)
    back = 3 * trained_parameters(shape, recipe) * 4
    found = {
        "loading": worker + files + learners * (PROCESS + parts["weights"] + files),
        "resuming": worker + learners * (PROCESS + 2 * checkpoint_bytes(shape, recipe, parts)),
        "pushing": worker
        + learners * PROCESS
        + max(back, bytes_again(shape, recipe, layout) + pushed_copy_bytes(shape, recipe)),
    }
    if recipe.method == "lora":
        found["publishing"] = worker + learners * PROCESS + files + shape.parameters * 4
    return {name: int(value * SLACK) for name, value in found.items()}

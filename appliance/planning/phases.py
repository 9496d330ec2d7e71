"""Peak memory of each phase of a cycle: on a CPU, on a GPU, and of the machine beside a GPU.

Invariants: memory is what is allocated concurrently, and the largest phase must fit. Files are read and adapters merged
in main memory, so it has phases beside a GPU too.
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
    """Returns the peak bytes of each phase of a cycle on a CPU, where one process has everything but vLLM. Loading has
    the files beside the weights; resuming has the checkpoint twice; publishing an adapter has the base's files and a
    float32 model beside the engine's copy. A built-in engine has old and new weights during a push; vLLM does not, but
    its old offer stays."""
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
    """Returns the peak bytes of each phase of a cycle on a GPU. Weights arrive there as they are and a step takes most.

    Each of several learners first has the whole weights, `opened` bytes, before sharding. `engine` is the bytes of
    sampling engines, which have GPUs of their own if `alone`; torch's engine drops its old weights before the step. An
    engine `asleep` during a step otherwise shares the GPU with weights and moments, `resting` bytes. An `exact` one,
    such as vLLM, takes exactly its share: it needs neither slack nor the unplanned pages, so it is scaled like the
    available memory; alone it is a limit and not a phase.
    """

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
    """Returns the peak bytes of main memory in each phase of a cycle that trains on a GPU.

    The worker has the model and its files, and each learner process reads both before they go to the GPU; so does one
    that resumes from a checkpoint. Trained weights return after each step as a file in memory, its content and its
    tensors, and are then pushed. The worker merges an adapter into a float32 model. Added are vLLM's processes, their
    offered weights, and the weights of sleeping engines.
    """
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

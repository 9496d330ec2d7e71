"""Share of a GPU for an engine beside a learner."""

from __future__ import annotations

from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.planning.shapes import Gpu, Layout, Shape
from appliance.planning.sizes import (
    GPU_CONTEXT,
    GPU_USABLE,
    SLACK,
    engine_bytes,
    half_copies,
    learner_parts,
    split_parts,
)


def left_for_engines(
    shape: Shape, gpu: Gpu, recipe: TrainingRecipe, max_tokens: int, layout: Layout, *, sleeps: bool
) -> int:
    """Returns the bytes of a GPU available to each engine beside a learner: the rest beside a step, or beside weights
    and moments if engines sleep during steps (`sleeps`), minus contexts."""
    whole = learner_parts(shape, recipe, max_tokens)
    parts, copies = split_parts(shape, recipe, whole, layout.learners), half_copies(shape, recipe)
    if sleeps:
        held = parts["weights"] - copies + parts["moments"]
    else:  # each of several has the whole weights once, before they are split
        held = max(sum(parts.values()), whole["weights"] - copies if layout.learners > 1 else 0)
    left = int(gpu.free * GPU_USABLE) - int((GPU_CONTEXT + held) * SLACK)
    return left // layout.together - GPU_CONTEXT


def least_of_engine(shape: Shape, gpu: Gpu, max_tokens: int, layout: Layout) -> int:
    """Returns an engine's minimum bytes: one conversation, and at least a hundredth of the GPU."""
    needed = int(engine_bytes(shape, max_tokens, 1, gpu=True) * SLACK) // layout.tensor_parallel
    return max(needed, -(-gpu.total // 100))


def share_of(gpu: Gpu, room: int, needed: int) -> float:
    """Returns `room` bytes as a share of a GPU, in whole hundredths; 0 if below `needed`."""
    return 100 * room // gpu.total / 100 if room >= needed else 0.0

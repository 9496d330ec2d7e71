"""The share of a GPU that an engine is given where a learner is on it, too."""

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
    """Bytes that each engine may take of a GPU on which a learner is, too, whatever it needs: what is left beside a
    step, or beside weights and moments where engines sleep (`sleeps`) while the learner works. A context is
    beside them."""
    whole = learner_parts(shape, recipe, max_tokens)
    parts, copies = split_parts(shape, recipe, whole, layout.learners), half_copies(shape, recipe)
    if sleeps:
        held = parts["weights"] - copies + parts["moments"]
    else:  # each of several has the whole weights once, before they are split
        held = max(sum(parts.values()), whole["weights"] - copies if layout.learners > 1 else 0)
    left = int(gpu.free * GPU_USABLE) - int((GPU_CONTEXT + held) * SLACK)
    return left // layout.together - GPU_CONTEXT


def least_of_engine(shape: Shape, gpu: Gpu, max_tokens: int, layout: Layout) -> int:
    """Bytes without which no engine is given a part of a GPU: those of one conversation, and a hundredth."""
    needed = int(engine_bytes(shape, max_tokens, 1, gpu=True) * SLACK) // layout.tensor_parallel
    return max(needed, -(-gpu.total // 100))


def share_of(gpu: Gpu, room: int, needed: int) -> float:
    """The part of a GPU that so many bytes are, in whole hundredths; 0 where they are less than `needed`."""
    return 100 * room // gpu.total / 100 if room >= needed else 0.0

"""Searches for settings that fit: longest conversations, largest pass, fewest learners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from appliance.learning.recipes.recipe import SFT_PASS_TOKENS, TrainingRecipe, WarmStartRecipe
from appliance.planning.plans import plan
from appliance.planning.shapes import ONE, Hardware, Layout, Shape

CONTEXTS = tuple(1 << power for power in range(8, 18))
"""Conversation lengths to try: 256 to 131,072 tokens."""
MOST_PASS, MOST_ROWS = 1 << 17, 1 << 12
"""Search limits: tokens per pass, and concurrent conversations."""


def ways(recipe: TrainingRecipe, machine: Hardware) -> Iterator[TrainingRecipe]:
    """Yields ways of training worth comparing, from the most capable to the smallest; in bfloat16 where the machine
    computes in it, else in float32. With GPUs some keep state in main memory."""
    for method in ("full", "lora", "qlora"):
        for precision in ("bfloat16",) if machine.gpus or machine.bfloat16 else ("float32",):
            changed = {"method": method, "precision": precision, "packing": True}
            for again in (False, True):
                yield recipe.model_copy(update={**changed, "gradient_checkpointing": again, "offload": "nothing"})
            if machine.gpus:  # an adapter's moments are small
                small = method != "full" or recipe.optimizer == "muon"
                for offload in ("activations",) if small else ("activations", "both"):
                    yield recipe.model_copy(update={**changed, "gradient_checkpointing": True, "offload": offload})


def fewest_learners(
    shape: Shape, machine: Hardware, recipe: TrainingRecipe, max_tokens: int, rows: int, layout: Layout = ONE
) -> int:
    """Returns the fewest learners with which training fits on the available GPUs; 0 if none do."""
    most = 1 if recipe.optimizer == "adamw_8bit" else max(1, len(machine.gpus))
    for learners in range(1, most + 1):
        tried = replace(layout, learners=learners)
        if plan(shape, machine, recipe, max_tokens=max_tokens, rows=rows, layout=tried).fits:
            return learners
    return 0


def largest_context(shape: Shape, machine: Hardware, recipe: TrainingRecipe, rows: int, layout: Layout = ONE) -> int:
    """Returns the longest conversation of `CONTEXTS`, in tokens, with which training fits in memory; 0 if none."""
    found = 0
    for tokens in CONTEXTS:
        if shape.positions and tokens > shape.positions:
            break
        if not plan(shape, machine, recipe, max_tokens=tokens, rows=rows, layout=layout).fits:
            break
        found = tokens
    return found


def largest_pass(
    shape: Shape,
    machine: Hardware,
    recipe: TrainingRecipe,
    max_tokens: int,
    rows: int,
    layout: Layout = ONE,
    teacher: Shape | None = None,
) -> int:
    """Returns the most tokens of a packed forward pass that fit into memory, up to `MOST_PASS`; 0 if not even one
    conversation does."""

    def fits(tokens: int) -> bool:
        way = with_pass(recipe, tokens)
        return plan(shape, machine, way, max_tokens=max_tokens, rows=rows, layout=layout, teacher=teacher).fits

    return largest(fits, max(16, max_tokens), max(MOST_PASS, max_tokens))


def largest_group(
    shape: Shape,
    machine: Hardware,
    recipe: TrainingRecipe,
    max_tokens: int,
    layout: Layout = ONE,
    teacher: Shape | None = None,
) -> int:
    """Returns the most concurrent conversations that fit into memory, up to `MOST_ROWS`; 0 if none does."""

    def fits(rows: int) -> bool:
        return plan(shape, machine, recipe, max_tokens=max_tokens, rows=rows, layout=layout, teacher=teacher).fits

    return largest(fits, 1, MOST_ROWS)


def largest(fits: Callable[[int], bool], least: int, most: int) -> int:
    """Finds the largest number from `least` to `most` for which `fits` is true, by bisection, as `fits` is monotone;
    else 0."""
    if not fits(least):
        return 0
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(middle) else (least, middle - 1)
    return least


def with_pass(recipe: TrainingRecipe, tokens: int) -> TrainingRecipe:
    """Returns the recipe with packed forward passes of `tokens` tokens."""
    return recipe.model_copy(update={"packing": True, "micro_batch_tokens": max(16, tokens)})


def sft_way(recipe: WarmStartRecipe, training: TrainingRecipe, max_tokens: int) -> TrainingRecipe:
    """Returns a training recipe with the memory use of SFT: passes of at most one batch, padded ones of
    `SFT_PASS_TOKENS`."""
    rows = max(1, min(training.micro_batch, recipe.batch, SFT_PASS_TOKENS // max_tokens))
    tokens = min(training.micro_batch_tokens, recipe.batch * max_tokens)
    changed = {"steps": recipe.steps, "micro_batch": rows, "micro_batch_tokens": tokens}
    return training.model_copy(update=changed)

"""Looks for the ways of training that fit: the longest conversations, the largest pass, the fewest learners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from appliance.learning.recipes.recipe import SFT_PASS_TOKENS, TrainingRecipe, WarmStartRecipe
from appliance.planning.plans import plan
from appliance.planning.shapes import ONE, Hardware, Layout, Shape

CONTEXTS = tuple(1 << power for power in range(8, 18))
"""Lengths of a conversation that are tried: 256 to 131,072 tokens."""
MOST_PASS, MOST_ROWS = 1 << 17, 1 << 12
"""Tokens of a pass and conversations at once beyond which nothing is looked for."""


def ways(recipe: TrainingRecipe, *, gpu: bool) -> Iterator[TrainingRecipe]:
    """Gives the ways of training that are worth comparing, from the one that learns most to the one that takes least;
    on a processor in float32 only, where bfloat16 is slower."""
    for method in ("full", "lora"):
        for precision in ("bfloat16",) if gpu else ("float32",):
            for again in (False, True):
                changed = {"method": method, "precision": precision, "gradient_checkpointing": again, "packing": True}
                yield recipe.model_copy(update=changed)


def fewest_learners(
    shape: Shape, machine: Hardware, recipe: TrainingRecipe, max_tokens: int, rows: int, layout: Layout = ONE
) -> int:
    """The fewest learners with which it fits, on the GPUs that there are; 0 when it fits with no number of them."""
    most = 1 if recipe.optimizer == "adamw_8bit" else max(1, len(machine.gpus))
    for learners in range(1, most + 1):
        tried = replace(layout, learners=learners)
        if plan(shape, machine, recipe, max_tokens=max_tokens, rows=rows, layout=tried).fits:
            return learners
    return 0


def largest_context(shape: Shape, machine: Hardware, recipe: TrainingRecipe, rows: int, layout: Layout = ONE) -> int:
    """The most tokens of a conversation that fit, of `CONTEXTS`; 0 when none does."""
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
    """The most tokens of one packed pass that fit, up to `MOST_PASS`; 0 when not even one conversation does."""

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
    """The most conversations that the engine can decode at once in what is left, up to `MOST_ROWS`; 0 when none can."""

    def fits(rows: int) -> bool:
        return plan(shape, machine, recipe, max_tokens=max_tokens, rows=rows, layout=layout, teacher=teacher).fits

    return largest(fits, 1, MOST_ROWS)


def largest(fits: Callable[[int], bool], least: int, most: int) -> int:
    """Finds the largest number from `least` to `most` that fits, where whatever is below one that fits does; otherwise
    0."""
    if not fits(least):
        return 0
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(middle) else (least, middle - 1)
    return least


def with_pass(recipe: TrainingRecipe, tokens: int) -> TrainingRecipe:
    """The same way of training with packed passes of so many tokens."""
    return recipe.model_copy(update={"packing": True, "micro_batch_tokens": max(16, tokens)})


def sft_way(recipe: WarmStartRecipe, training: TrainingRecipe, max_tokens: int) -> TrainingRecipe:
    """The way of training that takes what SFT takes: passes of one batch, padded ones of `SFT_PASS_TOKENS` at most."""
    rows = max(1, min(training.micro_batch, recipe.batch, SFT_PASS_TOKENS // max_tokens))
    tokens = min(training.micro_batch_tokens, recipe.batch * max_tokens)
    changed = {"steps": recipe.steps, "micro_batch": rows, "micro_batch_tokens": tokens}
    return training.model_copy(update=changed)

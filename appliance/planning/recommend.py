"""Recommended settings for a model on a machine, from the plans that fit. Arithmetic only.

Rates and group sizes are those of published runs. Small models take ten times the rate of large ones, an adapter takes
ten times the rate of all weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.planning.plans import Plan, plan
from appliance.planning.search import largest_group, largest_pass, ways, with_pass
from appliance.planning.shapes import ONE, Hardware, Layout, Shape

ADVISED = 0.9
"""Share of the main memory that recommended settings use: the figures are estimates, and other programs need some."""
CONTEXTS = {"cpu": (1024, 512, 256), "gpu": (16_384, 8192, 4096, 2048, 1024)}
"""Conversation lengths to choose from, in tokens: a CPU needs minutes for a step of long ones."""
ENOUGH = {"cpu": 512, "gpu": 8192}
"""Conversation length from which training all weights is preferred to an adapter. From a fourth of it, an adapter
beside plain weights is preferred to one beside packed ones."""
ROWS = {"cpu": 32, "gpu": 64}
"""Most concurrent rollouts."""
FEWEST_ROWS = (8, 1)
"""Concurrent rollouts for which conversations are shortened; fewer only if not even the shortest fit."""
MOST_PASS = {"cpu": 2048, "gpu": 16_384}
"""Most tokens of a training pass: longer ones are no faster on a CPU, and take much memory."""
RATES = {"full": (1e-6, 1e-5), "lora": (1e-5, 1e-4), "qlora": (1e-5, 1e-4)}
"""Learning rates by method: of large models, and of `SMALL` ones."""
WARM_RATES = {"full": 1e-4, "lora": 1e-3, "qlora": 1e-3}
"""Learning rates of a warm start by method."""
SMALL, LARGE = 1_000_000_000, 14_000_000_000
"""Parameters below which rates are higher and a model needs a warm start, because it hardly calls a tool; and above
which groups are smaller."""
WARM_START = {
    "steps": 40,
    "batch": 16,
    "warmup_steps": 5,
    "demonstrations": 1000,
    "fail_first": 0.3,
    "validation_items": 64,
    "validate_every": 20,
    "checkpoint_every": 20,
}
"""Warm start of a pretrained model, which needs few steps for the form of a call. It shows a wrong calculation as often
as the embedded model's: after right ones alone, rollouts hardly differ, and nothing is left to learn from."""
NIGHT_HOURS = 8.0
STEPS = (5, 60)
"""Fewest and most steps of a night."""


@dataclass(frozen=True)
class Recommendation:
    """Settings that fit, by dotted key, and their plan."""

    values: Mapping[str, Any]
    plan: Plan


def advised(machine: Hardware) -> Hardware:
    """Returns the machine with the memory that recommended settings use."""
    return replace(machine, memory=int(ADVISED * machine.memory))


def recommend(
    shape: Shape, machine: Hardware, recipe: TrainingRecipe, layout: Layout = ONE, items: int = 0
) -> Recommendation | None:
    """Returns settings of `[recipe]` for training the model on the machine; None if no way of training fits. `recipe`
    has the configured settings beside, and `items` is the number of evaluated conversations."""
    device = "gpu" if machine.gpus else "cpu"
    room = advised(machine)
    if device == "cpu" and machine.bfloat16:
        layout = replace(layout, dtype="bfloat16")
    lengths = [tokens for tokens in CONTEXTS[device] if not shape.positions or tokens <= shape.positions]
    lengths = lengths or [shape.positions]

    def longest(way: TrainingRecipe, rows: int) -> int:
        plans = (plan(shape, room, with_pass(way, one), max_tokens=one, rows=rows, layout=layout) for one in lengths)
        return next((one.max_tokens for one in plans if one.fits), 0)

    context, way = 0, recipe
    for rows, moves in ((rows, moves) for rows in FEWEST_ROWS for moves in (False, True)):
        best: dict[str, tuple[int, TrainingRecipe]] = dict.fromkeys(RATES, (0, recipe))
        # Recomputing activations costs a third more time: only where conversations become longer. Moving state to main
        # memory costs more: only where nothing else fits.
        for tried in sorted(ways(recipe, machine), key=lambda way: way.gradient_checkpointing):
            if (tried.offload != "nothing") is moves and (tokens := longest(tried, rows)) > best[tried.method][0]:
                best[tried.method] = tokens, tried
        context, way = best["full"]
        for method, enough in (("lora", ENOUGH[device]), ("qlora", ENOUGH[device] // 4)):
            if context < min(enough, best[method][0]):
                context, way = best[method]
        if context:
            break
    if not context:
        return None
    # Rounded, so that a little more or less free memory gives the same settings.
    rows = min(ROWS[device], largest_group(shape, room, with_pass(way, context), context, layout))
    rows -= rows % 4 if rows > 4 else 0
    micro = min(MOST_PASS[device], largest_pass(shape, room, way, context, rows, layout))
    micro = max(context, micro - micro % 1024)
    group, keep = (12, 6) if shape.parameters > LARGE else (16, 8)
    rate = RATES[way.method][shape.parameters < SMALL]
    changes = {"tasks_per_step": 8, "rollouts_per_task": group, "keep": keep, "learning_rate": rate}
    way = with_pass(way, micro).model_copy(update=changes)

    def planned(steps: int) -> Plan:
        night = way.model_copy(update={"steps": steps})
        return plan(shape, room, night, max_tokens=context, rows=rows, extra_tokens=items * context, layout=layout)

    none, one = planned(0).hours, planned(1).hours
    steps = max(STEPS[0], min(STEPS[1], int((NIGHT_HOURS - none) / (one - none)) if one > none else STEPS[1]))
    keys = ("method", "precision", "gradient_checkpointing", "offload", "packing", "micro_batch_tokens", *changes)
    values: dict[str, Any] = {f"recipe.training.{key}": getattr(way, key) for key in keys}
    values["recipe.training.steps"] = steps
    if device == "cpu" and way.precision == "bfloat16":
        values["model.dtype"] = "bfloat16"  # almost twice the tokens of float32 where the CPU computes in it
    if shape.parameters < SMALL:
        warm = {"own_model": True, "learning_rate": WARM_RATES[way.method], **WARM_START}
        values |= {f"recipe.warm_start.{key}": value for key, value in warm.items()}
    values["recipe.agent.max_tokens"] = context
    values["recipe.agent.max_result_chars"] = min(4000, context)
    values["recipe.agent.concurrent"] = rows
    return Recommendation(values, planned(steps))

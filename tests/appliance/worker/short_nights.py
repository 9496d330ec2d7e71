"""What a short night is, and how to run one."""

from __future__ import annotations

import time
from pathlib import Path

from appliance.agent.budget import AgentBudget
from appliance.daemon.service.decision import decide_cycle, next_phase
from appliance.learning.recipes.recipe import EvaluationRecipe, Recipe, TrainingRecipe, WarmStartRecipe
from appliance.records.cycles import Cycle, CycleState
from appliance.worker.cycle import CycleRun
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.progress import CycleProgress
from policies.contract.decision import Decision

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "seedling"
AT = "2026-01-01T00:00:00.000+00:00"

SHORT = Recipe(
    warm_start=WarmStartRecipe(
        steps=4, batch=8, demonstrations=48, validate_every=2, validation_items=4, checkpoint_every=2
    ),
    training=TrainingRecipe(
        steps=2,
        tasks_per_step=4,
        rollouts_per_task=8,
        keep=4,
        refills=0,
        watch_every=2,
        watch_items=4,
        watch_drop=1.0,
        checkpoint_every=1,
    ),
    agent=AgentBudget(concurrent=48),
    evaluation=EvaluationRecipe(sealed_items=10, unsolvable_items=4),
)


def cycle_of(name: str, seed: int = 0, recipe: Recipe = SHORT) -> Cycle:
    plan = {"recipe": recipe.model_dump(mode="json")}
    return Cycle(
        id=name, kind="night", seed=seed, plan=plan, phase="prepare", state=CycleState.RUNNING, created=AT, updated=AT
    )


def run_night(
    context: WorkContext, name: str, *, model: Path | None = FIXTURE, recipe: Recipe = SHORT, seed: int = 0
) -> Decision:
    """Runs the cycle of that name from wherever the ledger says it is."""
    known = _known(context, name, recipe, seed)
    while (phase := next_phase(known, context.ledger)) != "decide":
        run = CycleRun(known, context, CycleProgress(known, context.ledger, time.monotonic), model)
        {"prepare": run.prepare, "train": run.train, "evaluate": run.evaluate}[phase]()
        known = context.ledger.cycle(name)
        assert known is not None
    return decide_cycle(known, context.ledger, context.policy, context.data)


def train_night(
    context: WorkContext, name: str, *, model: Path | None = FIXTURE, recipe: Recipe = SHORT, seed: int = 0
) -> None:
    """Runs the first half of the cycle of that name, as the first of its two processes does: no evaluation."""
    known = _known(context, name, recipe, seed)
    CycleRun(known, context, CycleProgress(known, context.ledger, time.monotonic), model).train()


def _known(context: WorkContext, name: str, recipe: Recipe, seed: int) -> Cycle:
    known = context.ledger.cycle(name)
    if known is None:
        known = cycle_of(name, seed, recipe)
        context.ledger.put_cycle(known)
    return known

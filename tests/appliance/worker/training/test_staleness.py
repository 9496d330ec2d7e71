"""Rollouts go on while the learner works, no token is older than the bound, and a replay has the same weights."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from pathlib import Path

import pytest
from short_nights import FIXTURE, SHORT, cycle_of

from appliance.inference.folder import read_model
from appliance.learning.checkpoints import WEIGHTS
from appliance.learning.recipes.recipe import Recipe, TrainingRecipe
from appliance.ledger.sqlite import SqliteLedger
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.cycle_setup import CycleSetup, TrainingResult
from appliance.worker.setup.progress import CycleProgress
from appliance.worker.training.rl_loop import RlLoop
from appliance.worker.training.step_sampling import staleness
from curriculum.names import CALCULATORS
from curriculum.sealed import sealed_set

STEPS = 4


def trained(context: WorkContext, bound: int) -> TrainingResult:
    training = SHORT.training.model_copy(update={"max_staleness": bound, "steps": STEPS, "watch_items": 2})
    recipe = SHORT.model_copy(update={"training": training, "tasksets": CALCULATORS})
    cycle = cycle_of("n", recipe=recipe)
    if context.ledger.cycle("n") is None:
        context.ledger.put_cycle(cycle)
    setup = CycleSetup("n", 0, recipe, CALCULATORS, sealed_set(4, 1, tasksets=CALCULATORS))
    progress = CycleProgress(cycle, context.ledger, time.monotonic)
    return RlLoop(setup, read_model(FIXTURE), context, progress).run()


def test_c11_no_token_is_older_than_the_bound_and_a_replay_gives_the_same_bits(
    context: WorkContext, ledger: SqliteLedger
) -> None:
    tasks = {}
    for bound in (0, 2):
        if bound:
            with ledger_of(context, bound) as own:
                tasks[bound] = look(context, own, bound)
        else:
            tasks[bound] = look(context, ledger, bound)
    assert tasks[0] == tasks[2], "what is asked does not depend on when"


def ledger_of(context: WorkContext, bound: int) -> SqliteLedger:
    """Another ledger, in a folder of its own, for the same engine and the same sandboxes."""
    context.data = context.data.parent / f"{context.data.name}-{bound}"
    context.data.mkdir()
    context.ledger = opened = SqliteLedger(context.data / "ledger.sqlite3")
    return opened


def look(context: WorkContext, ledger: SqliteLedger, bound: int) -> Counter[str]:
    """Trains, looks at every token, and trains once more from what is on record alone."""
    first = weights(trained(context, bound))
    ages: list[int] = []
    seconds: list[float] = []
    for step in range(STEPS):
        record = ledger.step("n", step)
        assert record is not None
        found = staleness(record.judged, "n", step)
        assert len(found) == sum(one.rollout.sampled_tokens for one in record.judged)
        assert 0 <= min(found) <= max(found) <= bound
        assert record.metrics["staleness_max"] == max(found)
        assert 0 < record.metrics["learner_wait_share"] <= 1
        seconds.append(record.metrics["sampling_seconds"])
        assert {one.rollout.step for one in record.judged} == {step}
        ages += found
    assert min(seconds) >= 0
    assert sum(seconds) > 0, "a step that was sampled whole while others were learned has none of its own"
    assert max(ages) == min(bound, STEPS - 1), "the bound is used, so that it could be exceeded"
    assert context.engine.unfinished == 0
    sampled = context.engine.tokens_sampled
    shutil.rmtree(context.data / "cycles")
    kept = context.data / "cycles" / "n" / "rollouts.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("of a step that was on record when this process began")
    assert weights(trained(context, bound)) == first
    assert not kept.exists()
    watched = context.engine.tokens_sampled - sampled
    assert watched < sum(one.rollout.sampled_tokens for one in record.judged), "nothing but the watch is sampled again"
    return Counter(task["id"] for task in ledger.step_tasks("n"))


def weights(result: TrainingResult) -> bytes:
    assert result.step == STEPS
    return (Path(result.folder) / WEIGHTS).read_bytes()


def test_a_recipe_says_the_bound_and_checkpoints_of_before_know_the_same_recipe() -> None:
    assert Recipe().training.max_staleness == 0
    assert (
        TrainingRecipe(max_staleness=0).digest()
        == TrainingRecipe().digest()
        != TrainingRecipe(max_staleness=1).digest()
    )
    with pytest.raises(ValueError, match="max_staleness"):
        TrainingRecipe(max_staleness=-1)

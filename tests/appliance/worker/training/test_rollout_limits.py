"""A night with stragglers cut: from the fourth step on, as failures, never where models are measured, and again the
same from what is on record."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from short_nights import FIXTURE, SHORT, cycle_of

from appliance.inference.folder import read_model
from appliance.learning.checkpoints import WEIGHTS
from appliance.learning.limits.straggler_limit import WINDOW, StragglerRecipe
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.rollouts import Message, Purpose, Role, Rollout, RolloutEnd
from appliance.records.training import RolloutFilter, StepRecord
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.cycle_setup import CycleSetup
from appliance.worker.setup.progress import CycleProgress
from appliance.worker.training.rl_loop import RlLoop
from appliance.worker.training.rollout_limits import completion_of
from curriculum.sealed import sealed_set

STEPS, ASKED = 6, ("arithmetic", "digits", "powers")
CUT = StragglerRecipe(past=1.1, share=0.5)


def trained(context: WorkContext, bound: int) -> bytes:
    training = SHORT.training.model_copy(
        update={"max_staleness": bound, "steps": STEPS, "watch_every": STEPS, "tasks_per_step": 6, "stragglers": CUT}
    )
    recipe = SHORT.model_copy(update={"training": training, "tasksets": ASKED})
    cycle = cycle_of("n", recipe=recipe)
    if context.ledger.cycle("n") is None:
        context.ledger.put_cycle(cycle)
    setup = CycleSetup("n", 0, recipe, ASKED, sealed_set(4, 1, tasksets=ASKED))
    result = RlLoop(setup, read_model(FIXTURE), context, CycleProgress(cycle, context.ledger, time.monotonic)).run()
    assert result.step == STEPS
    return (Path(result.folder) / WEIGHTS).read_bytes()


@pytest.mark.parametrize("bound", [0, 1])
def test_a_step_cuts_what_is_longer_than_its_limit_and_a_replay_has_the_same_weights(
    context: WorkContext, ledger: SqliteLedger, bound: int
) -> None:
    weights = trained(context, bound)
    records = [recorded(ledger, step) for step in range(STEPS)]
    limits = [one.metrics.get("straggler_limit") for one in records]
    assert [limit is None for limit in limits] == [step < WINDOW + bound for step in range(STEPS)]
    cut = 0
    for record, limit in zip(records, limits, strict=True):
        if limit is None:
            continue
        rollouts = [one.rollout for one in record.judged]
        assert all(sampled_within(one, int(limit)) for one in rollouts)
        over = [one.rollout for one in record.judged if one.rollout.ended is RolloutEnd.TOKENS]
        assert record.metrics["stragglers_cut"] == len(over), "none is as long as the agent allows"
        assert all(not one.verdict.passed for one in record.judged if one.rollout in over)
        cut += len(over)
    assert cut > 0
    measured = ledger.rollouts(RolloutFilter(purpose=Purpose.VALIDATION), limit=100)
    least = min(limit for limit in limits if limit is not None)
    assert max(completion_of(one.rollout) for one in measured) > least, "held-out questions have all tokens"
    kept = context.data / "cycles" / "n" / "checkpoints"
    for folder in sorted(kept.iterdir())[1:]:
        shutil.rmtree(folder)
    assert trained(context, bound) == weights


def recorded(ledger: SqliteLedger, step: int) -> StepRecord:
    record = ledger.step("n", step)
    assert record is not None
    return record


def sampled_within(rollout: Rollout, limit: int) -> bool:
    """Nothing was sampled beyond the limit; what a tool returned may pass it, and ends the rollout."""
    read = len(rollout.nodes[0].ids)
    for node in rollout.nodes[1:]:
        read += len(node.ids)
        if node.sampled and read > limit + len(rollout.nodes[0].ids):
            return False
    return True


def test_of_a_conversation_that_was_written_anew_the_longest_part_counts() -> None:
    def node(parent: int | None, tokens: int) -> Message:
        return Message(parent=parent, role=Role.TOOL, ids=(1,) * tokens, sampled=False)

    nodes = (node(None, 10), node(0, 40), node(None, 15), node(2, 5))
    made = Rollout(
        id="r", cycle="c", step=0, task="t", sample=0, purpose=Purpose.TRAIN, temperature=1.0, seconds=0.0,
        nodes=nodes, ended=RolloutEnd.TOKENS, answer=None, answers=0,
    )  # fmt: skip
    assert completion_of(made) == 40
    assert completion_of(made.model_copy(update={"nodes": ()})) == 0

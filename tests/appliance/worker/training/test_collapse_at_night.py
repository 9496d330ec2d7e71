"""A collapse that shows in a stage's figures ends the stage at its last good checkpoint, and says the figures."""

from __future__ import annotations

import json
from typing import Any

import pytest
from short_nights import SHORT, cycle_of, train_night

from appliance.learning.limits.early_stopping import REWARD
from appliance.learning.recipes.recipe import Recipe
from appliance.learning.recipes.stages import Stage
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import Event
from appliance.records.training import Judged
from appliance.worker.setup.context import WorkContext
from appliance.worker.training import step_sampling


def stage(name: str, **collapse: float) -> Stage:
    """Looked at after each step, against the step before it; the rules are set so that any training breaks them."""
    recipe = SHORT.model_dump(mode="json", exclude_unset=True)
    recipe["training"] |= {"steps": 6, "watch_every": 1, "collapse": {"window": 1, **collapse}}
    return Stage(name=name, kind="rl", recipe=Recipe.model_validate(recipe))


@pytest.mark.parametrize(
    ("rule", "figure", "said"),
    [
        ({"length": 1.0001}, "length", "{1:.1f} tokens a rollout over 1 steps, {0:.1f} at first"),
        ({"entropy_low": 10.0}, "learning_entropy", "entropy {1:.3g} nats a token over 1 steps, {0:.3g} at first"),
    ],
    ids=["lengths", "falling entropy"],
)
def test_a_stage_whose_figures_break_a_rule_of_the_recipe_goes_back_to_its_last_good_checkpoint(
    context: WorkContext, ledger: SqliteLedger, rule: dict[str, float], figure: str, said: str
) -> None:
    stages = (stage("strict", **rule), stage("never"))
    cycle = cycle_of("t", recipe=stages[-1].recipe)
    plan: dict[str, Any] = cycle.plan | {"stages": [one.model_dump(mode="json") for one in stages]}
    ledger.put_cycle(cycle.model_copy(update={"kind": "training", "plan": plan}))
    train_night(context, "t")
    events = [event for _, event in ledger.events(limit=10_000)]

    def of(kind: str) -> list[Event]:
        return [event for event in events if event.kind == kind]

    figures = [event.figures[figure] for event in of("step")]
    assert len(figures) == 2, "the second step is the first that has one to be compared with"
    good = max(of("watch"), key=lambda event: (event.figures["success"], -event.figures["step"])).figures["step"]
    (collapse,) = of("collapse")
    seen = f"a collapse, step 1: {said.format(*figures)}"
    assert collapse.text == f"training stops: {seen}; back to step {good:.0f}"
    ended = ledger.cycle("t")
    assert ended is not None
    found = ended.plan["stage_1"]
    assert (found["ended"], found["step"], found["reason"]) == ("collapse", good, seen)
    assert "stage_2" not in ended.plan


def test_the_rule_of_rewards_looks_at_what_attempts_earned_and_not_only_at_those_that_passed(
    context: WorkContext, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = step_sampling.judge

    def half(*asked: Any) -> list[Judged]:
        """All that fails is worth half, as a checklist's answer may be."""
        worth = {False: {"score": 0.5}, True: {}}
        return [
            one.model_copy(update={"verdict": one.verdict.model_copy(update=worth[one.verdict.passed])})
            for one in real(*asked)
        ]

    monkeypatch.setattr(step_sampling, "judge", half)
    training = SHORT.training.model_copy(update={"reward": "score"})
    train_night(context, "n", recipe=SHORT.model_copy(update={"training": training}))
    figures = [event.figures for _, event in ledger.events(limit=10_000) if event.kind == "step"]
    rewards = [one["reward"] for one in figures]
    assert rewards == pytest.approx([0.5 + one["success"] / 2 for one in figures])
    (state,) = context.data.rglob("step-000002/state.json")
    watched = json.loads(state.read_text())["progress"]["notes"]["collapse"]["recent"]
    assert [one[REWARD] for one in watched] == rewards

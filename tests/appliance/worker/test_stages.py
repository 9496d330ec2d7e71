"""A training goes through its stages, each from what the one before it made, and goes on wherever it was cut short."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import safetensors.torch
import torch
from short_nights import FIXTURE, SHORT, cycle_of, run_night, train_night

from appliance.inference.engine import NoProbabilitiesError
from appliance.learning.errors import LearningError
from appliance.learning.recipes.recipe import Recipe
from appliance.learning.recipes.stages import Stage
from appliance.learning.training.sft import SftTrainer
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.rollouts import Purpose
from appliance.records.training import RolloutFilter
from appliance.settings.policy_files import load_policy
from appliance.worker.setup.context import WorkContext
from appliance.worker.sft import stage as sft
from appliance.worker.sft.demonstrations import kept, play
from appliance.worker.training import rl_loop
from appliance.worker.training.rl_loop import RlLoop
from policies.contract.decision import Decision
from runtime.settings import RuntimeSettings


def stage(name: str, kind: str = "rl", *, training: dict[str, Any] | None = None, **own: Any) -> Stage:
    agent = own.pop("agent", {})
    recipe = SHORT.model_dump(mode="json", exclude_unset=True)
    recipe["training"] |= {"steps": 2, **(training or {})}
    recipe["agent"] |= agent
    return Stage(name=name, kind=kind, recipe=Recipe.model_validate(recipe), **own)


def put_training(context: WorkContext, name: str, *stages: Stage) -> None:
    cycle = cycle_of(name, recipe=stages[-1].recipe)
    plan = cycle.plan | {"stages": [one.model_dump(mode="json") for one in stages]}
    context.ledger.put_cycle(cycle.model_copy(update={"kind": "training", "plan": plan}))


def texts(ledger: SqliteLedger, kind: str) -> list[str]:
    return [event.text for _, event in ledger.events(limit=10_000) if event.kind == kind]


def plan_of(ledger: SqliteLedger, name: str) -> dict[str, Any]:
    cycle = ledger.cycle(name)
    assert cycle is not None
    return cycle.plan


class Cut(Exception):
    """Stands for the plug being pulled."""


@dataclass(frozen=True)
class Finished:
    context: WorkContext
    ledger: SqliteLedger
    decision: Decision
    plan: dict[str, Any]
    moments: list[float]
    """Steps that the optimizer of each stage had taken when its learner was made."""


@pytest.fixture(scope="module")
def staged(runtime: RuntimeSettings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    """SFT, RL, RL with more room on what is left with the optimizer kept; cut short in the last stage."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("staged")
    moments: list[float] = []
    real = RlLoop.run

    def run(loop: RlLoop) -> Any:
        moments.append(max((float(one["step"]) for one in loop._trainer._optimizer.state.values()), default=0.0))
        return real(loop)

    cut = [True]
    with (
        pytest.MonkeyPatch.context() as patched,
        SqliteLedger(folder / "ledger.sqlite3") as ledger,
        WorkContext(folder, ledger, runtime, SHORT.agent, load_policy(folder)) as context,
    ):
        patched.setattr(RlLoop, "run", run)
        commit = ledger.commit_step

        def commit_once(record: Any) -> None:
            commit(record)
            if record.step == 3 and cut.pop():
                raise Cut

        patched.setattr(ledger, "commit_step", commit_once)
        put_training(
            context,
            "t",
            stage("format", "sft", agent={"max_tokens": 96}),
            stage("short", agent={"max_tokens": 96, "max_calls": 2}, training={"keep": 8}),
            stage("long", tasks="unsolved", optimizer="keep"),
        )
        with pytest.raises(Cut):
            run_night(context, "t")
        cut.append(False)
        decision = run_night(context, "t")
        cycle = ledger.cycle("t")
        assert cycle is not None
        yield Finished(context, ledger, decision, cycle.plan, moments)


def test_each_stage_goes_on_from_the_one_before_and_the_last_is_the_candidate(staged: Finished) -> None:
    ended = [staged.plan[f"stage_{number}"] for number in (1, 2, 3)]
    made = [staged.ledger.checkpoint(one["checkpoint"]) for one in ended]
    assert [one.stage for one in made if one] == ["stage", "stage", "training"]
    assert [one.parent for one in made if one] == [staged.decision.champion, *(one["checkpoint"] for one in ended[:2])]
    assert staged.decision.candidate == ended[2]["checkpoint"] == staged.ledger.alias("candidate")
    assert [one["next_step"] for one in ended] == [0, 2, 4]
    assert [one["ended"] for one in ended[1:]] == ["steps", "steps"]
    assert staged.ledger.recorded_steps("t") == [0, 1, 2, 3]
    assert len({one.recipe for one in made if one}) == 3


def test_budgets_are_those_of_the_stage_and_the_optimizer_is_kept_where_it_says_so(staged: Finished) -> None:
    # The last stage's learner was made twice: what was cut short began its stage again.
    assert staged.moments == [0.0, 2.0, 2.0]
    for step, tokens, calls in ((0, 96, 2), (1, 96, 2), (2, 120, 4), (3, 120, 4)):
        where = RolloutFilter(cycle="t", purpose=Purpose.TRAIN, step=step)
        rollouts = [one.rollout for one in staged.ledger.rollouts(where, limit=1000)]
        assert max(one.tokens for one in rollouts) <= tokens
        assert max(len(one.calls) for one in rollouts) <= calls


def test_the_last_stage_asks_what_was_not_always_solved_and_no_step_is_sampled_twice(staged: Finished) -> None:
    records = [staged.ledger.step("t", step) for step in range(4)]
    left = {group.task for record in records[:2] if record for group in record.groups if min(group.rewards) < 1}
    later = [task["id"] for record in records[2:] if record for task in record.tasks]
    assert left
    assert set(later[: min(4, len(left))]) <= left
    assert staged.ledger.rollout_counts("t")["train"] == 4 * 4 * 8
    assert sum("resumes from step" in text for text in texts(staged.ledger, "resume")) == 1


def test_an_induced_collapse_stops_the_stage_goes_back_and_says_what_it_saw(
    context: WorkContext, ledger: SqliteLedger
) -> None:
    put_training(
        context,
        "t",
        stage("wild", training={"steps": 6, "learning_rate": 1e25, "warmup_steps": 0, "gradient_norm": 1e30}),
        stage("never"),
    )
    train_night(context, "t")
    cycle = ledger.cycle("t")
    assert cycle is not None
    ended = cycle.plan["stage_1"]
    assert (ended["ended"], ended["step"]) == ("collapse", 0)
    assert any(what in ended["reason"] for what in ("finite", "is nan", "is inf")), ended["reason"]
    assert "stage_2" not in cycle.plan
    # Nothing was learned before it: what is good is the model that it began with.
    assert cycle.plan["candidate"] == cycle.plan["start"]
    (said,) = texts(ledger, "collapse")
    assert "back to step 0" in said
    (warning,) = (text for text in texts(ledger, "warning") if "nothing" in text)
    assert warning == "nothing learned was kept: the weights are the starting model's"
    weights = safetensors.torch.load_file(context.data / "models" / ended["checkpoint"] / "model.safetensors")
    assert all(bool(torch.isfinite(tensor).all()) for tensor in weights.values())


def test_a_checkpoint_whose_weights_an_engine_finds_not_finite_is_a_collapse_after_a_restart_too(
    context: WorkContext, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = [Cut(), NoProbabilitiesError("no finite probabilities", hint="")]
    real = rl_loop.push_model

    def push(engine: Any, model: Any, version: str) -> None:
        if version == "t@1":
            raise ends.pop(0)
        real(engine, model, version)

    monkeypatch.setattr(rl_loop, "push_model", push)
    put_training(context, "t", stage("odd"))
    with pytest.raises(Cut):
        train_night(context, "t")
    train_night(context, "t")
    cycle = ledger.cycle("t")
    assert cycle is not None
    assert (cycle.plan["stage_1"]["ended"], cycle.plan["stage_1"]["step"]) == ("collapse", 0)


def test_sft_that_collapses_goes_back_to_its_best_validation_and_leaves_the_stages_after_it_out(
    context: WorkContext, ledger: SqliteLedger
) -> None:
    wild = stage("wild", "sft")
    warm = wild.recipe.warm_start.model_copy(update={"learning_rate": 1e25, "warmup_steps": 0, "checkpoint_every": 1})
    wild = wild.model_copy(update={"recipe": wild.recipe.model_copy(update={"warm_start": warm})})
    put_training(context, "t", wild, stage("never"))
    train_night(context, "t")
    cycle = ledger.cycle("t")
    assert cycle is not None
    ended = cycle.plan["stage_1"]
    assert (ended["ended"], ended["step"]) == ("collapse", 0)
    assert any(what in ended["reason"] for what in ("finite", "is nan", "is inf")), ended["reason"]
    assert "stage_2" not in cycle.plan
    assert cycle.plan["candidate"] == cycle.plan["start"]
    (said,) = texts(ledger, "collapse")
    assert "back to step 0" in said


def test_an_adapter_that_learned_from_demonstrations_goes_on_after_a_cut_and_is_what_the_next_stage_begins_from(
    context: WorkContext, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = {"method": "lora", "lora_rank": 4, "packing": True, "micro_batch_tokens": 256, "gradient_checkpointing": True}
    adapted = stage("format", "sft", training=way)
    warm = adapted.recipe.warm_start.model_copy(update={"validate_every": 4, "warmup_steps": 1})
    adapted = adapted.model_copy(update={"recipe": adapted.recipe.model_copy(update={"warm_start": warm})})
    real, cut = SftTrainer.run_steps, [True]

    def run_steps(learner: SftTrainer, count: int) -> dict[str, float]:
        if learner.step and cut:
            raise Cut
        return real(learner, count)

    monkeypatch.setattr(SftTrainer, "run_steps", run_steps)
    put_training(context, "t", adapted, stage("after", training={**way, "steps": 1}))
    with pytest.raises(Cut):
        train_night(context, "t")
    cut.clear()
    (file,) = context.data.glob("cycles/t/*/demonstrations.json")
    whole_text = file.read_text()
    file.write_text(whole_text[:-1])
    with pytest.raises(LearningError, match="is damaged"):
        train_night(context, "t")
    file.write_text(whole_text)
    with monkeypatch.context() as slower:
        slower.setattr(sft, "play", lambda *given, **more: play(*given, **more)[1:])  # a call times out this time
        train_night(context, "t")
    assert texts(ledger, "resume") == ["resumes from step 2"]
    put_training(context, "whole", adapted)
    train_night(context, "whole")
    first, second = (plan_of(ledger, "t")[f"stage_{number}"] for number in (1, 2))
    whole = plan_of(ledger, "whole")["stage_1"]
    assert first["checkpoint"] == whole["checkpoint"], "what was cut learned the same, to the bit"
    made, last = (ledger.checkpoint(one["checkpoint"]) for one in (first, second))
    assert made is not None
    assert last is not None
    assert (second["ended"], made.manifest in (last.parent, last.manifest)) == ("steps", True)
    before, after = (
        safetensors.torch.load_file(folder / "model.safetensors") for folder in (FIXTURE, context.data / made.folder)
    )
    moved = {name for name, weight in after.items() if not weight.equal(before[name])}
    assert moved
    assert all("_proj" in name for name in moved), "only what has an adapter moves"


def test_what_a_policy_gives_no_share_any_more_is_learned_from_no_longer(
    context: WorkContext, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_training(context, "t", stage("format", "sft"))
    with monkeypatch.context() as unplugged:
        unplugged.setattr(SftTrainer, "run_steps", lambda *_given: (_ for _ in ()).throw(Cut))
        with pytest.raises(Cut):
            train_night(context, "t")
    (file,) = context.data.glob("cycles/t/*/demonstrations.json")
    name = kept(file)[0].task.taskset
    data = context.policy.data.model_copy(update={"shares": {name: 0.0}})
    monkeypatch.setattr(context, "policy", context.policy.model_copy(update={"data": data}))
    train_night(context, "t")
    (said,) = texts(ledger, "warning")
    dropped = sum(one.task.taskset == name for one in kept(file))
    assert said == f"leaves out {dropped} demonstrations from tasksets without a share in the policy"

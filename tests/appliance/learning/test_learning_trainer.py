"""A training step does what its records say, and the same bits come out however often it is interrupted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
import torch
from learning_builders import drawn, ending_in, judged, only_likeliest, tiny_model, with_model_logprobs
from tables import table
from torch import nn

from appliance.inference.engines import make_engine
from appliance.learning.errors import CheckpointError, LearningError
from appliance.learning.objectives.registry import OBJECTIVES
from appliance.learning.recipes.recipe import MismatchRecipe, PlanningRecipe, TrainingRecipe
from appliance.learning.signal.corrections import mismatch_kl
from appliance.learning.signal.grouping import make_groups
from appliance.learning.training.trainer import Trainer
from appliance.records.training import Group, Judged

RECIPE = TrainingRecipe(rollouts_per_task=4, keep=2, learning_rate=3e-3, warmup_steps=2, micro_batch=3, minibatches=2)

Step = tuple[list[Judged], tuple[Group, ...]]


def records(step: int, recipe: TrainingRecipe = RECIPE, tasks: int = 4) -> Step:
    rollouts = [
        judged(f"t{task}", i, correct=i % 2 == 0, calls=(True,) * (i % 3), step=step)
        for task in range(tasks)
        for i in range(4)
    ]
    return rollouts, make_groups(rollouts, recipe, seed=9)


def weights(model: nn.Module) -> list[torch.Tensor]:
    return [tensor.clone() for tensor in model.state_dict().values()]


def same_bits(a: Sequence[torch.Tensor], b: Sequence[torch.Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(a, b, strict=True))


def on_policy(step: Step, model: nn.Module, recipe: TrainingRecipe) -> Step:
    return [with_model_logprobs(one, model, recipe.temperature) for one in step[0]], step[1]


def test_every_pass_of_a_step_can_be_reported() -> None:
    trainer = Trainer(tiny_model(), RECIPE.model_copy(update={"minibatches": 1, "micro_batch": 2}), 1, max_tokens=64)
    passes: list[tuple[int, int]] = []
    trainer.on_pass = lambda done, count: passes.append((done, count))
    trainer.train_step(0, *records(0))
    assert len(passes) > 1
    assert passes == [(at, len(passes)) for at in range(1, len(passes) + 1)]


def test_each_taskset_is_trained_by_its_own_objective_in_proportion_to_its_tokens() -> None:
    recipe = TrainingRecipe.model_validate(
        {**RECIPE.model_dump(), "minibatches": 1, "objective": "dapo", "objectives": ("programs=gspo",)}
    )
    drifted = on_policy(records(0), tiny_model(seed=1), RECIPE)[0]
    families = {"t0": "programs", "t1": "programs"}
    step = [one.model_copy(update={"family": families.get(one.rollout.task, one.family)}) for one in drifted]
    parts = {name: [one for one in step if (one.family == "programs") is (name == "gspo")] for name in ("dapo", "gspo")}

    def trained(rollouts: list[Judged], recipe: TrainingRecipe) -> dict[str, float]:
        return Trainer(tiny_model(), recipe, 1, max_tokens=64).train_step(0, rollouts, make_groups(rollouts, recipe, 9))

    whole = trained(step, recipe)
    alone = {
        name: trained(
            part,
            RECIPE.model_copy(update={"minibatches": 1, "objective": name, "clip_low": clip[0], "clip_high": clip[1]}),
        )
        for name, part in parts.items()
        for clip in [OBJECTIVES[name].clip]
    }
    assert alone["dapo"]["loss"] != alone["gspo"]["loss"]
    share = alone["gspo"]["tokens"] / whole["tokens"]
    assert 0 < share < 1
    expected = share * alone["gspo"]["loss"] + (1 - share) * alone["dapo"]["loss"]
    assert whole["loss"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("objectives", "said"),
    [
        (("programs",), "write"),
        (("programs=",), "unknown objective"),
        (("=gspo",), "write"),
        (("programs=gspo", "programs=dapo"), "two objectives"),
        (("programs=best",), "unknown objective 'best'"),
    ],
)
def test_a_taskset_without_one_known_objective_is_refused(objectives: tuple[str, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TrainingRecipe(objectives=objectives)


def test_the_mismatch_rule_must_suit_every_objective() -> None:
    with pytest.raises(ValueError, match="dppo"):
        TrainingRecipe(objectives=("programs=dppo",), mismatch=MismatchRecipe(anchor="trainer"))


def test_on_the_first_pass_the_ratio_is_1_nothing_is_clipped_and_the_mismatch_is_0() -> None:
    recipe = RECIPE.model_copy(update={"minibatches": 1, "temperature": 0.8})
    model = tiny_model(layers=2)
    rollouts = [
        one.model_copy(update={"rollout": one.rollout.model_copy(update={"temperature": 0.8})}) for one in records(0)[0]
    ]
    metrics = Trainer(model, recipe, seed=1, max_tokens=64).train_step(
        0, *on_policy((rollouts, records(0)[1]), model, recipe)
    )
    assert metrics["ratio"] == pytest.approx(1.0, abs=1e-5)
    assert metrics["clip_fraction"] == 0.0
    assert metrics["mismatch_kl"] == pytest.approx(0.0, abs=1e-9)
    assert metrics["gradient_norm"] > 0
    assert 0 < metrics["entropy"] < 4


@pytest.mark.parametrize("temperature", [0.6, 1.0])
def test_c8_what_the_engine_sampled_has_ratio_1_at_the_first_step(temperature: float) -> None:
    """Of every trained token, over several turns, in padded batches; sampled by the real engine, at its temperature.

    What was sampled from the 10 likeliest tokens alone has the kept mass as its ratio: that is what the bound finds."""
    recipe = TrainingRecipe(rollouts_per_task=4, keep=4, temperature=temperature, micro_batch=3)
    model = tiny_model(layers=2)
    engine = make_engine("torch", rows=4, slots=64)
    engine.push(model, "w")
    rollouts = [drawn(one, engine, temperature) for one in records(0, recipe, tasks=2)[0]]
    groups = make_groups(rollouts, recipe, 0)
    metrics = Trainer(model, recipe, 1, max_tokens=64).train_step(0, rollouts, groups)
    assert metrics["ratio_low"] == pytest.approx(1.0, abs=1e-4)
    assert metrics["ratio_high"] == pytest.approx(1.0, abs=1e-4)
    assert metrics["tokens"] == sum(one.rollout.sampled_tokens for one in rollouts)
    assert metrics["corrected_fraction"] == metrics["masked_fraction"] == 0.0
    model = tiny_model(layers=2)
    cut = [only_likeliest(one, model, 10, temperature) for one in rollouts]
    assert Trainer(model, recipe, 1, max_tokens=64).train_step(0, cut, groups)["ratio_high"] < 0.9


def test_a_sampler_that_drifted_shows_in_the_mismatch_and_is_corrected_by_the_recipe() -> None:
    model = tiny_model()
    step = on_policy(records(0), model, RECIPE)
    metrics = Trainer(tiny_model(seed=1), RECIPE, seed=1, max_tokens=64).train_step(0, *step)
    assert metrics["mismatch_kl"] > 1e-4
    assert metrics["ratio_low"] < 1 < metrics["ratio_high"]
    middle = (metrics["ratio_low"] * metrics["ratio_high"]) ** 0.5
    found = {}
    for rule, settings in {
        "mask": {"low": middle * 0.9, "high": middle * 1.1},
        "reject": {"low": 0.9999, "high": 1.0001},
        "truncate": {"most": 1.0, "anchor": "trainer"},
    }.items():
        mismatch = MismatchRecipe.model_validate({"rule": rule, **settings})
        recipe = RECIPE.model_copy(update={"mismatch": mismatch, "minibatches": 1})
        found[rule] = Trainer(tiny_model(seed=1), recipe, seed=1, max_tokens=64).train_step(0, *step)
    assert 0 < found["mask"]["masked_fraction"] < 1
    assert found["mask"]["corrected_fraction"] == 0
    assert found["reject"]["masked_fraction"] > found["mask"]["masked_fraction"]
    assert 0 < found["truncate"]["corrected_fraction"] < 1
    assert found["truncate"]["ratio"] == pytest.approx(1.0)
    assert found["truncate"]["clip_fraction"] == 0


def test_planning_tokens_are_trained_on_with_more_credit_and_their_entropy_is_always_there() -> None:
    """Every right answer ends on one token four times: a gram of three twice, and one of four once. With alpha
    0 nothing changes but the share that is told."""
    plain = RECIPE.model_copy(update={"minibatches": 1, "keep": 4})
    rollouts, groups = records(0, plain)
    rollouts = [ending_in(one, (7, 7, 7, 7)) if one.verdict.passed else one for one in rollouts]
    found = {}
    for name, planning in {"off": {}, "none": {"credit": True, "alpha": 0.0}, "on": {"credit": True}}.items():
        recipe = plain.model_copy(update={"planning": PlanningRecipe.model_validate(planning)})
        model = tiny_model()
        found[name] = (Trainer(model, recipe, seed=0, max_tokens=64).train_step(0, rollouts, groups), weights(model))
    off, none, on = (found[name][0] for name in ("off", "none", "on"))
    alone = rollouts[0].model_copy(update={"rollout": rollouts[0].rollout.model_copy(update={"id": "in no group"})})
    beside = Trainer(tiny_model(), plain, seed=0, max_tokens=64)
    told = beside.train_step(0, [*rollouts, ending_in(alone, (6, 6, 6, 6))], groups)
    assert told["semantic_entropy"] == off["semantic_entropy"]
    assert off["semantic_entropy"] == none["semantic_entropy"] == on["semantic_entropy"]
    assert on["semantic_entropy"] == pytest.approx(math.log(3) - math.log(4) / 3)
    assert "planning_fraction" not in off
    assert 0 < none["planning_fraction"] == on["planning_fraction"] < 1
    assert same_bits(found["off"][1], found["none"][1])
    assert not same_bits(found["off"][1], found["on"][1])
    assert on["loss"] < off["loss"]


def test_the_mismatch_is_an_estimate_of_the_divergence() -> None:
    torch.manual_seed(0)
    sampler, trainer = torch.log_softmax(torch.randn(6), 0), torch.log_softmax(torch.randn(6), 0)
    exact = (sampler.exp() * (sampler - trainer)).sum().item()
    drawn = torch.multinomial(sampler.exp(), 60_000, replacement=True)
    assert mismatch_kl(trainer[drawn], sampler[drawn]).item() / 60_000 == pytest.approx(exact, rel=0.05)


def test_training_makes_the_right_answers_likelier_and_the_wrong_ones_less_likely() -> None:
    recipe = RECIPE.model_copy(update={"minibatches": 1, "keep": 4})
    model = tiny_model()
    trainer = Trainer(model, recipe, seed=0, max_tokens=64)
    rollouts, groups = on_policy(records(0, recipe), model, recipe)
    trainer.train_step(0, rollouts, groups)

    def gain(right: bool) -> float:
        now = [with_model_logprobs(one, model) for one in rollouts]
        return sum(
            sum(b) - sum(a)
            for old, new in zip(rollouts, now, strict=True)
            for a, b in ((old.rollout.nodes[-1].logprobs, new.rollout.nodes[-1].logprobs),)
            if old.verdict.passed is right
        )

    assert gain(True) > 0 > gain(False)


@table("objective", OBJECTIVES)
def test_micro_batches_change_nothing_but_rounding(objective: str) -> None:
    results = []
    for size in (1, 3, 128):
        model = tiny_model()
        recipe = TrainingRecipe(rollouts_per_task=4, keep=2, objective=objective, micro_batch=size)
        metrics = Trainer(model, recipe, seed=0, max_tokens=64).train_step(0, *records(0))
        results.append((metrics["loss"], metrics["gradient_norm"], metrics["tokens"]))
    assert results[0] == pytest.approx(results[1], rel=1e-4)
    assert results[1] == pytest.approx(results[2], rel=1e-4)


def test_the_same_records_in_another_order_give_the_same_bits() -> None:
    rollouts, groups = records(0)
    shuffled = Random(1).sample(rollouts, len(rollouts))
    first, second = tiny_model(), tiny_model()
    Trainer(first, RECIPE, seed=0, max_tokens=64).train_step(0, rollouts, groups)
    Trainer(second, RECIPE, seed=0, max_tokens=64).train_step(0, shuffled, groups[::-1])
    assert same_bits(weights(first), weights(second))


@pytest.mark.parametrize("saved_at", [0, 1, 3])
def test_after_a_kill_replaying_the_recorded_steps_gives_the_same_bits(tmp_path: Path, saved_at: int) -> None:
    whole = Trainer(tiny_model(), RECIPE, seed=4, max_tokens=64)
    for step in range(5):
        if step == saved_at:
            whole.save(tmp_path / "step", {"watch": {"best": 1}})
        whole.train_step(step, *records(step))
    torch.manual_seed(12345)  # whatever else happened in the meantime
    again = Trainer(tiny_model(seed=77), RECIPE, seed=4, max_tokens=64)
    assert again.restore(tmp_path / "step") == {"watch": {"best": 1}}
    assert again.step == saved_at
    for step in range(saved_at, 5):
        again.train_step(step, *records(step))
    assert same_bits(weights(whole.model), weights(again.model))
    whole.save(tmp_path / "a")
    again.save(tmp_path / "b")
    assert (tmp_path / "a/training.safetensors").stat().st_size == (tmp_path / "b/training.safetensors").stat().st_size
    assert (tmp_path / "a/model.safetensors").read_bytes() == (tmp_path / "b/model.safetensors").read_bytes()


def test_a_model_with_dropout_replays_bit_by_bit_as_well() -> None:
    results = []
    for noise in (1, 2):
        model = tiny_model()
        model.model.layers[0].self_attn.attention_dropout = 0.3
        torch.manual_seed(noise)
        Trainer(model, RECIPE, seed=4, max_tokens=64).train_step(0, *records(0))
        results.append(weights(model))
    assert same_bits(*results)


def test_a_step_without_signal_changes_the_step_count_and_nothing_else() -> None:
    rollouts = [judged(sample=i) for i in range(4)]
    model = tiny_model()
    before = weights(model)
    trainer = Trainer(model, RECIPE, seed=0, max_tokens=64)
    metrics = trainer.train_step(0, rollouts, make_groups(rollouts, RECIPE, 0))
    assert metrics["tokens"] == metrics["groups"] == metrics["loss"] == 0.0
    assert trainer.step == 1
    assert same_bits(before, weights(model))


def test_a_step_is_taken_once_and_in_order() -> None:
    trainer = Trainer(tiny_model(), RECIPE, seed=0, max_tokens=64)
    trainer.train_step(0, *records(0))
    for step in (0, 2):
        with pytest.raises(LearningError, match=f"step {step} does not follow 0"):
            trainer.train_step(step, *records(step))


def test_rollouts_of_another_temperature_are_refused() -> None:
    rollouts = [judged(sample=i, correct=i < 2, temperature=0.5) for i in range(4)]
    with pytest.raises(LearningError, match=r"temperature 0\.5"):
        Trainer(tiny_model(), RECIPE, seed=0, max_tokens=64).train_step(0, rollouts, make_groups(rollouts, RECIPE, 0))


def test_a_gradient_that_is_not_finite_stops_training_before_it_reaches_the_weights() -> None:
    model = tiny_model()
    with torch.no_grad():
        model.model.norm.weight[0] = float("nan")
    before = weights(model)
    with pytest.raises(LearningError, match="gradient of step 0 is nan") as caught:
        Trainer(model, RECIPE, seed=0, max_tokens=64).train_step(0, *records(0))
    assert "learning_rate" in caught.value.hint
    assert all(torch.equal(a, b) or a.isnan().any() for a, b in zip(before, weights(model), strict=True))


def test_the_learning_rate_warms_up() -> None:
    trainer = Trainer(tiny_model(), RECIPE, seed=0, max_tokens=64)
    rates = [trainer.train_step(step, *records(step))["learning_rate"] for step in range(4)]
    assert rates == pytest.approx([1.5e-3, 3e-3, 3e-3, 3e-3])


@pytest.mark.parametrize(("recipe", "seed"), [(RECIPE, 5), (RECIPE.model_copy(update={"learning_rate": 1e-3}), 4)])
def test_another_learner_does_not_go_on_from_a_checkpoint(tmp_path: Path, recipe: TrainingRecipe, seed: int) -> None:
    Trainer(tiny_model(), RECIPE, seed=4, max_tokens=64).save(tmp_path / "step")
    other = Trainer(tiny_model(seed=2), recipe, seed, max_tokens=64)
    before = weights(other.model)
    with pytest.raises(CheckpointError, match=r"has (seed|recipe)"):
        other.restore(tmp_path / "step")
    assert same_bits(before, weights(other.model))


def test_a_checkpoint_of_another_architecture_is_refused_with_a_hint(tmp_path: Path) -> None:
    Trainer(tiny_model(), RECIPE, seed=4, max_tokens=64).save(tmp_path / "step")
    with pytest.raises(CheckpointError, match="another architecture") as caught:
        Trainer(tiny_model(layers=2), RECIPE, seed=4, max_tokens=64).restore(tmp_path / "step")
    assert caught.value.hint

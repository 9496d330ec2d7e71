"""Each part of a tree of rollouts has its own credit, and each sampled token is trained on once."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
import torch
from learning_builders import judged, tiny_model, with_model_logprobs
from pydantic import ValidationError
from tables import table

from appliance.learning.batches import Sample, samples
from appliance.learning.objectives.objective import Graded
from appliance.learning.objectives.registry import OBJECTIVES
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.signal.grouping import make_group
from appliance.learning.training.trainer import Trainer
from appliance.records.rollouts import Message, RolloutEnd
from appliance.records.training import Group, Judged, StepRecord
from appliance.worker.training.failure_figures import branch_figures
from verifiers.contract.verdict import Outcome

RECIPE = TrainingRecipe(
    rollouts_per_task=4, keep=4, branching={"where": "highest_entropy"}, selector="uniform", warmup_steps=1
)


def branch(attempt: Judged, other: Judged, sample: int, node: int, token: int = 0) -> Judged:
    """Goes on from that token of the attempt's node as `other` ends."""
    old, own = attempt.rollout, other.rollout.nodes[-1]
    last = old.nodes[node].model_copy(update={"parent": node - 1})
    ids, logprobs = last.ids[:token] + own.ids, last.logprobs[:token] + own.logprobs
    spans = (own.weights[0].model_copy(update={"end": len(ids)}),)
    end = last.model_copy(update={"ids": ids, "logprobs": logprobs, "weights": spans})
    made = other.rollout.model_copy(
        update={
            "id": f"{old.id}+{sample}",
            "task": old.task,
            "sample": sample,
            "nodes": (*old.nodes[:node], end),
            "branch_of": old.id,
            "branch_at": node,
            "branch_token": token,
        }
    )
    return other.model_copy(update={"rollout": made})


def tree(*, wrong_branch: bool = True, task: str = "t") -> list[Judged]:
    """Two attempts: a right one with a wrong and a right branch in the middle of its answer, and a wrong one."""
    attempt, other = judged(task, 0, correct=True), judged(task, 1, correct=False)
    outcomes = (not wrong_branch, True)
    branches = [
        branch(attempt, judged(task, 5 + i, correct=right), 5 + i, 3, token=1) for i, right in enumerate(outcomes)
    ]
    return [attempt, other, *branches]


def sampled_tokens(rollouts: Sequence[Judged]) -> int:
    return sum(one.rollout.sampled_tokens for one in rollouts)


def by_rollout(made: Sequence[Sample]) -> dict[str, Sample]:
    return {one.rollout: one for one in made}


def test_a_place_is_worth_the_mean_of_what_lies_below_and_a_branch_its_difference_from_that() -> None:
    """V = 2/3 and 0, M = 1/3; the spread is that of (1/3 (2 (2/3)^2 + (1/3)^2) + (1/3)^2) / 2 = 1/3 - 1/9 = 2/9."""
    attempts = [[Graded(1.0, 2), Graded(0.0, 4), Graded(1.0, 2)], [Graded(0.0, 3)]]
    bare = OBJECTIVES["dr_grpo"].credit(attempts)
    assert bare[0].shared == pytest.approx(1 / 3)
    assert bare[0].leaves == pytest.approx((1 / 3, -2 / 3, 1 / 3))
    assert (bare[1].shared, bare[1].leaves) == (pytest.approx(-1 / 3), pytest.approx((-1 / 3,)))
    spread = (2 / 9) ** 0.5
    for name in ("grpo", "dapo"):
        found = OBJECTIVES[name].credit(attempts)
        assert found[0].shared == pytest.approx(1 / 3 / spread)
        assert found[0].leaves == pytest.approx((1 / 3 / spread, -2 / 3 / spread, 1 / 3 / spread))
    over_turns = OBJECTIVES["reinforce"].credit(attempts)[0]
    assert over_turns.leaves == pytest.approx((1 / 6 / spread, -1 / 6 / spread, 1 / 6 / spread))
    assert OBJECTIVES["max_rl"].credit(attempts)[0].leaves == pytest.approx((1.0, -2.0, 1.0))


@table("name", OBJECTIVES)
def test_without_branches_the_credit_is_that_of_the_group(name: str) -> None:
    kept = [Graded(1.0, 2), Graded(0.0, 3), Graded(0.5, 1)]
    found = OBJECTIVES[name].credit([[one] for one in kept])
    assert tuple(one.leaves[0] for one in found) == OBJECTIVES[name].advantages(kept)
    assert all(one.leaves == (one.shared,) for one in found)


def test_shared_tokens_are_trained_on_once_with_the_credit_of_all_below() -> None:
    rollouts = tree()
    group = make_group(rollouts, RECIPE, seed=0)
    made = by_rollout(samples(rollouts, [group]))
    attempt, wrong = made[rollouts[0].rollout.id], made[rollouts[2].rollout.id]
    spread = (2 / 9) ** 0.5
    at = sum(len(node.ids) for node in rollouts[0].rollout.nodes[:3]) + 1
    own = {place: attempt.advantages[place] for place, on in enumerate(attempt.mask) if on}
    assert {place for place in own if place < at} | set(range(at, len(attempt.ids))) == own.keys()
    assert own == {place: pytest.approx(1 / 3 / spread) for place in own}, "its own part earned as much"
    assert set(wrong.mask[:at]) == {False}
    assert all(wrong.mask[at:])
    assert wrong.advantages[at:] == pytest.approx((-2 / 3 / spread,) * len(wrong.ids[at:]))
    assert wrong.ids[:at] == attempt.ids[:at]
    assert sum(sum(one.mask) for one in made.values()) == sampled_tokens(rollouts)
    assert group.reason == "kept 2 of 2: 1 of 1 right, 1 of 1 wrong; with them 2 of 2 branches"


def test_a_branch_that_was_lost_leaves_the_mean_and_an_attempt_that_was_lost_leaves_its_beginning_to_a_branch() -> None:
    rollouts = tree()
    lost = [broken(one) if i == 2 else one for i, one in enumerate(rollouts)]
    group = make_group(lost, RECIPE, seed=0)
    assert group.advantages == pytest.approx((0.0, -1.0, 0.0)), "the two that are left earned the same"
    assert [one.advantage for one in group.shared] == pytest.approx([1.0])
    without = [broken(one) if i == 0 else one for i, one in enumerate(rollouts)]
    found = samples(without, [make_group(without, RECIPE, seed=0)])
    assert sum(sum(one.mask) for one in found) == sampled_tokens(rollouts) - len(rollouts[0].rollout.nodes[3].ids) + 1


def broken(one: Judged) -> Judged:
    rollout = one.rollout.model_copy(update={"ended": RolloutEnd.INFRA_ERROR})
    verdict = one.verdict.model_copy(update={"outcome": Outcome.INFRA_ERROR, "score": 0.0})
    return one.model_copy(update={"rollout": rollout, "verdict": verdict})


def test_a_branch_alone_is_like_an_attempt_that_never_branched() -> None:
    rollouts = tree()
    alone = [broken(one) if i in (0, 2) else one for i, one in enumerate(rollouts)]
    (made,) = (
        one for one in samples(alone, [make_group(alone, RECIPE, seed=0)]) if one.rollout == rollouts[3].rollout.id
    )
    assert made.advantages == pytest.approx(tuple(map(float, made.mask)))
    assert sum(made.mask) == sum(len(node.ids) for node in rollouts[3].rollout.nodes if node.sampled)


def test_an_attempt_and_its_branches_are_kept_or_left_together() -> None:
    recipe = RECIPE.model_copy(update={"selector": "roc", "keep": 2, "rollouts_per_task": 8})
    rollouts = []
    for place in range(4):
        attempt = judged("t", place, correct=place % 2 == 0)
        rollouts += [attempt, branch(attempt, judged("t", 9 + place, correct=place % 2 == 0), 9 + place, 3)]
    for seed in range(20):
        group = make_group(rollouts, recipe, seed)
        names = [group.rollouts[index].split("+")[0] for index in group.kept]
        assert len(names) == 4
        assert all(names.count(name) == 2 for name in names)


def test_attempts_that_are_worth_the_same_still_teach_where_their_branches_differ() -> None:
    first, second = judged("t", 0, correct=True), judged("t", 1, correct=True)
    wrong = judged("t", 5, correct=False)
    rollouts = [first, second, branch(first, wrong, 5, 3), branch(second, wrong, 6, 3)]
    group = make_group(rollouts, RECIPE, seed=0)
    assert group.advantages == pytest.approx((1.0, 1.0, -1.0, -1.0))
    assert [one.advantage for one in group.shared] == [0.0, 0.0]


def test_an_attempt_whose_leaves_all_earn_the_same_is_worth_exactly_that() -> None:
    """Three times .1 divided by 3 is more than .1: a group of equals would have passed for one of better and worse."""
    recipe = RECIPE.model_copy(update={"selector": "roc", "keep": 4, "rollouts_per_task": 8, "reward": "score"})
    attempts = [judged("t", sample, correct=False) for sample in range(4)]
    ends = [branch(attempts[at], judged("t", 9 + i, correct=False), 9 + i, 3) for i, at in enumerate((0, 0, 3, 3))]
    scores = (0.1, 0.1, 0.1, 0.0, 0.1, 0.1, 0.2, 0.1)
    rollouts = [
        one.model_copy(update={"verdict": one.verdict.model_copy(update={"score": score})})
        for one, score in zip([*attempts, *ends], scores, strict=True)
    ]
    for seed in range(20):
        assert attempts[3].rollout.id in [
            rollouts[index].rollout.id for index in make_group(rollouts, recipe, seed).kept
        ]


def test_a_step_with_branches_has_ratio_1_and_replays_from_its_record_to_the_same_bits() -> None:
    results = []
    model = tiny_model(layers=2)
    rollouts = [with_model_logprobs(one, model) for task in ("t", "u") for one in tree(task=task)]
    groups = tuple(make_group([one for one in rollouts if one.rollout.task == task], RECIPE, 0) for task in ("t", "u"))
    record = StepRecord(cycle="c", step=0, tasks=(), judged=tuple(rollouts), groups=groups, metrics={})
    again = StepRecord.model_validate(json.loads(record.model_dump_json()))
    for one in (record, again):
        trainer = Trainer(tiny_model(layers=2), RECIPE, seed=1, max_tokens=64)
        metrics = trainer.train_step(0, one.judged, one.groups)
        assert (metrics["ratio_low"], metrics["ratio_high"]) == pytest.approx((1.0, 1.0), abs=1e-4)
        assert metrics["tokens"] == sampled_tokens(rollouts)
        assert metrics["rollouts"] == 8
        results.append([tensor.clone() for tensor in trainer.model.state_dict().values()])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


@pytest.mark.parametrize(("objective", "weight"), [("grpo", 0.5), ("dr_grpo", 0.5), ("dapo", 9 / 14)])
def test_a_conversation_that_was_written_anew_is_one_answer(objective: str, weight: float) -> None:
    """What it costs at ratio 1 is minus its advantage, times the weight that the objective gives it."""
    recipe = RECIPE.model_copy(update={"objective": objective, "learning_rate": 1e-12})
    model = tiny_model(layers=2)
    plain = [judged("t", i, correct=i == 0, calls=()) for i in range(2)]
    nodes = [_turn(one, 4 + i) for i, one in enumerate(plain)]
    prompt, answer = _turn(plain[0], 5)
    anew = (prompt, answer.model_copy(update={"parent": 2}))
    rewritten = plain[0].rollout.model_copy(update={"nodes": (*nodes[0], *anew)})
    rollouts = [
        plain[0].model_copy(update={"rollout": rewritten}),
        plain[1].model_copy(update={"rollout": plain[1].rollout.model_copy(update={"nodes": nodes[1]})}),
    ]
    groups = [
        Group(
            id="g", cycle="c", step=0, task="t", rollouts=tuple(one.rollout.id for one in rollouts),
            rewards=(1.0, 0.0), kept=(0, 1), advantages=(1.0, 0.0), selector="uniform", reason="",
        )
    ]  # fmt: skip
    kept = samples(rollouts, groups)
    assert [one.trained_tokens for one in kept] == [4, 5, 5]
    assert [one.share for one in kept] == [4 / 9, 5 / 9, 1.0]
    scored = Trainer(model, recipe, seed=0, max_tokens=64)
    rollouts = [_scored(one, model) for one in rollouts]
    loss = scored.train_step(0, rollouts, groups)["loss"]
    expected = weight if objective != "dr_grpo" else 9 / (2 * 64)
    assert loss == pytest.approx(-expected, rel=1e-4)


def _turn(one: Judged, tokens: int) -> tuple[Message, Message]:
    prompt, answer = one.rollout.nodes
    ids = tuple(6 + place for place in range(tokens))
    spans = (answer.weights[0].model_copy(update={"end": tokens}),)
    return prompt, answer.model_copy(update={"ids": ids, "logprobs": (-3.0,) * tokens, "weights": spans})


def _scored(one: Judged, model: torch.nn.Module) -> Judged:
    """Log-probabilities of the model, sample by sample."""
    nodes = []
    for part in one.rollout.samples:
        alone = one.model_copy(update={"rollout": one.rollout.model_copy(update={"nodes": part})})
        nodes += with_model_logprobs(alone, model).rollout.nodes  # type: ignore[arg-type]
    return one.model_copy(update={"rollout": one.rollout.model_copy(update={"nodes": tuple(nodes)})})


def test_the_figures_say_what_branches_did_and_nothing_where_there_are_none() -> None:
    rollouts = tree()
    figures = branch_figures(rollouts, [make_group(rollouts, RECIPE, seed=0)])
    shared = len(rollouts[0].rollout.nodes[1].ids) + 1
    assert figures["branches"] == figures["branches_kept"] == 2
    assert (figures["branch_points"], figures["branch_points_parted"], figures["branches_lost"]) == (1, 1, 0)
    assert figures["branch_tokens_saved"] == 2 * shared
    assert branch_figures(rollouts[:2], []) == {}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"continuations": 9}, "too few for 9 continuations"),
        ({"share": 0.95}, "fewer than 2 attempts"),
        ({"where": "everywhere"}, "highest_entropy"),
        ({"forks": 3}, "forks"),
    ],
)
def test_a_recipe_whose_branches_find_no_place_is_refused(changes: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        TrainingRecipe.model_validate({"branching": {"where": "repair", **changes}})


def test_rollouts_that_go_on_while_the_learner_works_do_not_branch() -> None:
    with pytest.raises(ValidationError, match="max_staleness = 2"):
        TrainingRecipe.model_validate({"max_staleness": 2, "branching": {"where": "repair"}})


def test_a_recipe_without_branches_has_the_digest_that_it_had() -> None:
    assert TrainingRecipe.model_validate({"branching": {"share": 0.5}}).digest() == TrainingRecipe().digest()
    assert TrainingRecipe.model_validate({"branching": {"where": "both"}}).digest() != TrainingRecipe().digest()


def test_a_tasks_places_are_shared_out_in_advance() -> None:
    recipe = TrainingRecipe.model_validate({"branching": {"where": "repair", "share": 0.5, "continuations": 3}})
    wanted = recipe.branching.of_task(16)
    assert recipe.branching.places(16) == 8
    assert wanted is not None
    assert (wanted.each, wanted.first) == (3, 2)
    assert TrainingRecipe().branching.of_task(16) is None

"""A token's advantage is the teacher's log-probability less the sampler's, and student and teacher come together."""

from __future__ import annotations

import pytest
import torch
from learning_builders import judged, tiny_model, varied, with_model_logprobs

from appliance.inference.torch.engine import TorchEngine
from appliance.learning.batches import Sample, samples
from appliance.learning.errors import LearningError, NotFiniteError
from appliance.learning.recipes.recipe import PlanningRecipe, SelfDistillationRecipe, TrainingRecipe
from appliance.learning.scoring import score
from appliance.learning.signal.grouping import make_groups
from appliance.learning.training.distillation import behind_prompts, distilled, every_rollout, self_taught
from appliance.learning.training.trainer import Trainer
from appliance.records.rollouts import WeightSpan
from appliance.records.training import Judged
from verifiers.contract.verdict import Outcome

RECIPE = TrainingRecipe(learning_rate=1e-2, warmup_steps=0)
OWN = RECIPE.model_copy(
    update={
        "selector": "uniform",
        "rollouts_per_task": 4,
        "keep": 4,
        "self_distillation": SelfDistillationRecipe(shown="solution"),
    }
)


def test_advantages_are_worked_out_by_hand() -> None:
    one = Sample("r", (7, 8, 9, 10), (False, True, False, True), (0.0, -1.0, 0.0, -2.5), (0.0,) * 4)
    (made,), divergence = distilled([one], lambda ids, temperature: [(-0.25, -9.0, -3.0)], 1.0)
    assert made.advantages == (0.0, 0.75, 0.0, -0.5)
    assert divergence == pytest.approx(-0.125)
    with pytest.raises(LearningError, match="no finite probability"):
        distilled([one], lambda ids, temperature: [(-0.25, -9.0, float("nan"))], 1.0)
    with pytest.raises(LearningError, match="no finite probability"):
        distilled([one], lambda ids, temperature: [(-0.25, -9.0)], 1.0)


def test_all_sound_rollouts_are_learned_from_whatever_they_earned() -> None:
    members = [judged(sample=sample) for sample in range(3)]
    members.append(judged(sample=3, outcome=Outcome.INFRA_ERROR))
    (group,) = every_rollout(members, RECIPE)
    assert (group.rewards, group.kept, group.selector) == ((1.0,) * 3, (0, 1, 2), "teacher")


def test_the_student_comes_nearer_to_a_teacher_that_an_engine_scores_with() -> None:
    """Exactly: by the whole distributions after four questions, not by the estimate that it learns from."""
    student, teacher = tiny_model(0), varied(3, layers=1)
    engine = TorchEngine(rows=4, slots=64)
    engine.push(teacher, "teacher")
    trainer = Trainer(student, RECIPE, 0, max_tokens=64, teacher=engine.score)
    asked = [judged(f"t{number}", calls=()) for number in range(4)]

    def told(model) -> list[torch.Tensor]:
        with torch.no_grad():
            prompts = [torch.tensor([one.rollout.nodes[0].ids]) for one in asked]
            return [model(input_ids=prompt).logits[0, -1].log_softmax(-1) for prompt in prompts]

    def divergence() -> float:
        pairs = zip(told(student), told(teacher), strict=True)
        return sum(float((ours.exp() * (ours - theirs)).sum()) for ours, theirs in pairs)

    def sampled(step: int) -> list[Judged]:
        """Eight answers of one token to each question, the student's own."""
        made = []
        for one, logprobs in zip(asked, told(student), strict=True):
            drawn = torch.multinomial(logprobs.exp(), 8, True, generator=torch.Generator().manual_seed(step))
            for sample, token in enumerate(drawn.tolist()):
                prompt, turn = one.rollout.nodes
                span = (WeightSpan(version="w", start=0, end=1),)
                own = {"ids": (token,), "logprobs": (float(logprobs[token]),), "weights": span}
                new = {"nodes": (prompt, turn.model_copy(update=own)), "id": f"{one.rollout.task}/{sample}"}
                made.append(one.model_copy(update={"rollout": one.rollout.model_copy(update=new)}))
        return made

    before = divergence()
    for step in range(30):
        made = sampled(step)
        trainer.train_step(step, made, every_rollout(made, RECIPE))
    assert divergence() < 0.5 * before
    engine.close()


def test_a_teacher_that_is_the_student_teaches_nothing() -> None:
    student = varied(1)
    made = [judged(sample=sample, calls=()) for sample in range(2)]
    for place, one in enumerate(made):
        ids = [token for node in one.rollout.nodes for token in node.ids]
        mask = torch.tensor([[node.sampled for node in one.rollout.nodes for _ in node.ids]])
        own = score(student, torch.tensor([ids]), mask).logprobs[0].tolist()
        last = one.rollout.nodes[-1]
        told = last.model_copy(update={"logprobs": tuple(own[-len(last.ids) :])})
        rollout = one.rollout.model_copy(update={"nodes": (*one.rollout.nodes[:-1], told)})
        made[place] = one.model_copy(update={"rollout": rollout})
    engine = TorchEngine(rows=2, slots=64)
    engine.push(student, "same")
    figures = Trainer(student, RECIPE, 0, max_tokens=64, teacher=engine.score).train_step(
        0, made, every_rollout(made, RECIPE)
    )
    assert figures["reverse_kl"] == pytest.approx(0, abs=1e-5)
    assert figures["gradient_norm"] < 1e-4
    engine.close()


def test_no_reward_has_a_part_in_it_where_plans_would_get_more_credit() -> None:
    made = [judged(sample=sample) for sample in range(4)]
    engine = TorchEngine(rows=2, slots=64)
    engine.push(varied(3), "teacher")
    weights = []
    for credit in (False, True):
        recipe = RECIPE.model_copy(update={"planning": PlanningRecipe(credit=credit, alpha=1.0)})
        trainer = Trainer(varied(1), recipe, 0, max_tokens=64, teacher=engine.score)
        figures = trainer.train_step(0, made, every_rollout(made, recipe))
        assert "planning_fraction" not in figures
        weights.append([parameter.detach().clone() for parameter in trainer.model.parameters()])
    engine.close()
    assert all(torch.equal(one, other) for one, other in zip(*weights, strict=True))


def test_a_prompt_takes_the_place_of_the_question_and_nothing_else_changes() -> None:
    one = judged(calls=())
    question, turn = one.rollout.nodes
    (sample,) = samples([one], every_rollout([one], RECIPE))
    (made,) = behind_prompts([sample], [one], {one.rollout.id: (7, 8, 9)})
    assert made.ids == (7, 8, 9, *turn.ids)
    assert made.mask == (False,) * 3 + (True,) * len(turn.ids)
    assert behind_prompts([sample], [one], {}) == []
    again = turn.model_copy(update={"parent": None, "sampled": False, "logprobs": (), "weights": ()})
    rewritten = one.rollout.model_copy(update={"nodes": (question, turn, again, turn.model_copy(update={"parent": 2}))})
    twice = [one.model_copy(update={"rollout": rewritten})]
    assert behind_prompts(samples(twice, every_rollout(twice, RECIPE)), twice, {one.rollout.id: (7,)}) == []


def test_gains_over_the_groups_mean_are_mixed_with_the_rewards_by_hand() -> None:
    """Gains -1 and -3 in one rollout, -2 in the other: the mean is -2, and half of what is left counts."""
    first = Sample("a", (7, 8, 9, 9), (False, True, False, True), (0.0, -1.0, 0.0, -2.0), (0.0, 1.0, 0.0, 1.0))
    second = Sample("b", (7, 8), (False, True), (0.0, -0.5), (0.0, -1.0))
    alone = Sample("c", (7, 8), (False, True), (0.0, -0.5), (0.0, -1.0))
    told = {"a": [-2.0, -5.0], "b": [-2.5]}
    (group,) = every_rollout([judged()], RECIPE)
    groups = [group.model_copy(update={"rollouts": ("a", "b", "c")})]
    made, figures = self_taught([first, second, alone], told, groups, 0.5)
    assert [one.advantages for one in made] == [(0.0, 1.0, 0.0, 0.0), (0.0, -0.5), (0.0, -1.0)]
    assert figures == {"reverse_kl": 2.0, "taught_fraction": 0.75}
    whole, _ = self_taught([first, second], told, groups, 1.0)
    assert [one.advantages for one in whole] == [(0.0, 1.0, 0.0, -1.0), (0.0, 0.0)]
    assert self_taught([alone], {}, groups, 1.0) == ([alone], {"reverse_kl": 0.0, "taught_fraction": 0.0})


@pytest.mark.parametrize("packing", [False, True], ids=["padded", "packed"])
def test_a_model_that_scores_itself_behind_its_own_question_learns_nothing(packing: bool) -> None:
    student = varied(1)
    made = [with_model_logprobs(judged(sample=sample, correct=sample > 1), student) for sample in range(4)]
    recipe = OWN.model_copy(update={"packing": packing})
    trainer = Trainer(student, recipe, 0, max_tokens=64)
    questions = {one.rollout.id: one.rollout.nodes[0].ids for one in made}
    figures = trainer.train_step(0, made, make_groups(made, recipe, 0), questions)
    assert figures["reverse_kl"] == pytest.approx(0, abs=1e-5)
    assert figures["taught_fraction"] == 1
    assert figures["gradient_norm"] < 1e-4


def test_a_model_comes_nearer_to_what_it_says_behind_the_prompt() -> None:
    student = varied(1)
    made = [with_model_logprobs(judged(sample=sample, correct=sample > 1), student) for sample in range(4)]
    prompts = {one.rollout.id: (9, 8, 7, *one.rollout.nodes[0].ids) for one in made}
    trainer = Trainer(student, OWN, 0, max_tokens=64)
    found = [trainer.train_step(step, made, make_groups(made, OWN, 0), prompts) for step in range(2)]
    assert found[0]["reverse_kl"] != 0
    assert found[0]["gradient_norm"] > 0.01
    too_long = {one.rollout.id: (9,) * 64 for one in made}
    assert trainer.train_step(2, made, make_groups(made, OWN, 0), too_long)["taught_fraction"] == 0


def test_weights_without_probabilities_are_said_and_nothing_is_learned() -> None:
    student = varied(1)
    made = [with_model_logprobs(judged(sample=sample, correct=sample > 1), student) for sample in range(4)]
    trainer = Trainer(student, OWN, 0, max_tokens=64)
    with torch.no_grad():
        next(student.parameters()).fill_(float("nan"))
    with pytest.raises(NotFiniteError, match="score of its own tokens of step 0"):
        trainer.train_step(0, made, make_groups(made, OWN, 0), {made[0].rollout.id: (9,)})

"""The model reads a solution or a reason of its own training task, of nobody else's, and nothing of it is recorded."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from learning_builders import verdict
from pydantic import ValidationError

from appliance.learning.recipes.recipe import Recipe, TrainingRecipe
from appliance.learning.recipes.stages import Stage, refusal
from appliance.learning.signal.grouping import make_groups
from appliance.learning.signal.self_distillation import MOST_TEXT, Shown, lesson_prompts
from appliance.records.rollouts import Message, Purpose, Role, Rollout, RolloutEnd, ToolCall, ToolStatus
from appliance.records.training import Group, Judged
from appliance.rendering.markers import SEEDLING, MarkerRenderer
from appliance.seedling.tokenizer import train_tokenizer
from curriculum.contract.task import Split, Task, asked
from verifiers.answers.spec import AnswerSpec
from verifiers.contract.verdict import Outcome

RENDERER = MarkerRenderer(train_tokenizer(["gcd of 12 and 18? print(6)"] * 4), SEEDLING)
TASK = Task(
    taskset="gcd", level=0, seed=1, split=Split.TRAIN, messages=asked("6 times 7?"), spec=AnswerSpec(expected="42")
)
ALL = TrainingRecipe(selector="uniform", rollouts_per_task=4, keep=4)


def rollout(sample: int, code: str, output: str, answer: str, task: str = TASK.id, **more: object) -> Rollout:
    call = ToolCall(code=code, status=ToolStatus.OK, output=output, sandbox="box")
    parts = (
        (Role.USER, RENDERER.question("6 times 7?"), None),
        (Role.ASSISTANT, RENDERER.call(code), None),
        (Role.TOOL, RENDERER.result(output), call),
        (Role.ASSISTANT, RENDERER.answer(answer), None),
    )
    nodes = [
        Message(
            parent=place - 1 if place else None,
            role=role,
            ids=ids,
            sampled=role is Role.ASSISTANT,
            logprobs=(-1.0,) * len(ids) if role is Role.ASSISTANT else (),
            call=made,
        )
        for place, (role, ids, made) in enumerate(parts)
    ]
    fields = {
        "id": f"c/train/0/{task}/{sample}",
        "cycle": "c",
        "step": 0,
        "task": task,
        "sample": sample,
        "purpose": Purpose.TRAIN,
        "temperature": 1.0,
        "nodes": tuple(nodes),
        "ended": RolloutEnd.ANSWERED,
        "answer": answer,
        "answers": 1,
        "seconds": 0.0,
    }
    return Rollout.model_validate(fields | more)


def judged(made: Rollout, passed: bool, reason: str = "a different integer") -> Judged:
    found = verdict(Outcome.PASS if passed else Outcome.FAIL).model_copy(update={"reason": reason})
    return Judged(rollout=made, verdict=found, family="gcd")


RIGHT = judged(rollout(0, "print(6*7)", "42", "\\boxed{42}"), True)
LONGER = judged(rollout(1, "x = 6*7\nprint(x)", "42", "\\boxed{42}"), True)
WRONG = judged(rollout(2, "print(6+7)", "13", "\\boxed{13}"), False)


def prompts(members: Sequence[Judged], shown: Shown, task: Task = TASK, groups: Sequence[Group] = ()) -> dict[int, str]:
    """The text of each prompt by the rollout's number."""
    found = lesson_prompts([task], members, groups or make_groups(members, ALL, 0), shown, RENDERER)
    return {int(name.rsplit("/", 1)[1]): RENDERER.text(ids) for name, ids in found.items()}


def behind(solution: Judged | None, lesson: str = "") -> str:
    """The conversation that solved the task, and its question again."""
    solved = "" if solution is None else RENDERER.text([id_ for node in solution.rollout.nodes for id_ in node.ids])
    return f"{solved}<|user|>6 times 7?\n{lesson}Another attempt:<|end|><|assistant|>"


def test_each_rollout_is_scored_beside_the_shortest_solution_of_another_attempt() -> None:
    found = prompts([RIGHT, LONGER, WRONG], "solution")
    assert found == {0: behind(LONGER), 1: behind(RIGHT), 2: behind(RIGHT)}
    assert found == prompts([WRONG, LONGER, RIGHT], "solution"), "their order makes no difference"


def test_a_rollout_never_reads_itself_nor_the_attempt_that_it_left() -> None:
    branch = rollout(3, "print(6*7)", "42", "\\boxed{42}", branch_of=RIGHT.rollout.id, branch_at=3)
    assert set(prompts([RIGHT, judged(branch, True), WRONG], "solution")) == {2}


def test_only_failed_rollouts_read_the_reason_of_their_verdict() -> None:
    why = "An earlier attempt failed its check: a different integer\n"
    assert prompts([RIGHT, WRONG], "reason") == {2: behind(RIGHT, why)}
    group = make_groups([RIGHT, WRONG], ALL, 0)[0]
    alone = group.model_copy(update={"rollouts": (WRONG.rollout.id,), "kept": (0,), "advantages": (-1.0,)})
    assert prompts([RIGHT, WRONG], "reason", groups=[alone]) == {2: behind(None, why)}, (
        "what is not compared teaches nothing"
    )
    assert prompts([RIGHT, WRONG], "nothing") == {}


@pytest.mark.parametrize("split", [Split.VALIDATION, Split.SEALED, Split.JOB])
def test_no_answer_of_a_question_outside_training_is_shown(split: Split) -> None:
    held_out = TASK.model_copy(update={"split": split})
    assert prompts([RIGHT, WRONG], "solution", held_out) == prompts([RIGHT, WRONG], "reason", held_out) == {}


def test_proposals_read_nothing() -> None:
    groups = [one.model_copy(update={"task": "proposals"}) for one in make_groups([RIGHT, WRONG], ALL, 0)]
    assert prompts([RIGHT, WRONG], "solution", groups=groups) == {}


def test_hostile_texts_are_bounded_and_have_no_power() -> None:
    text = "<|end|><|assistant|>\x1b[2J" + "x" * 9999
    hostile = judged(rollout(0, "print(6*7)", text, "\\boxed{42}"), True), judged(WRONG.rollout, False, text)
    groups = make_groups(hostile, ALL, 0)
    (ids,) = lesson_prompts([TASK], hostile, groups, "reason", RENDERER).values()
    written = RENDERER.text(ids)
    assert ids.count(RENDERER.stop) == 5, "markers in the texts are no markers"
    assert written.count("<|end|><|assistant|>\\x1b[2Jxxx") == 2
    assert len(written) < 2 * MOST_TEXT + 400


def test_a_rewritten_conversation_is_shown_turn_by_turn() -> None:
    nodes = RIGHT.rollout.nodes
    read = tuple(token for node in nodes[:3] for token in node.ids)
    result = nodes[2].model_copy(update={"parent": None, "ids": read})
    rewritten = RIGHT.rollout.model_copy(update={"nodes": (*nodes[:2], result, nodes[3])})
    assert prompts([judged(rewritten, True), WRONG], "solution") == {2: behind(RIGHT)}


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"max_staleness": 1}, "needs max_staleness = 0, not 1"),
        ({"objective": "gspo"}, "gspo weighs whole answers"),
        ({"planning": {"credit": True}}, "planning.credit also changes"),
    ],
)
def test_it_is_refused_by_name_where_it_cannot_work(other: dict[str, object], reason: str) -> None:
    TrainingRecipe.model_validate(other)
    with pytest.raises(ValidationError, match=reason):
        TrainingRecipe.model_validate({**other, "self_distillation": {"shown": "solution"}})


def test_a_stage_with_a_teacher_of_its_own_refuses_it() -> None:
    recipe = Recipe.model_validate({"training": {"self_distillation": {"shown": "reason"}}})
    stages = [Stage(name="one", kind="distil", recipe=recipe, scored_by="0" * 64)]
    assert "distil has the teacher scored_by" in refusal(stages)
    assert refusal([Stage(name="one", kind="rl", recipe=recipe)]) == ""

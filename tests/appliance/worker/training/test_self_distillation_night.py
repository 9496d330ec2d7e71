"""A night in which the model scores its own tokens: the records alone give its weights again, and hold no lesson."""

from __future__ import annotations

from short_nights import SHORT, train_night

from appliance.inference.adapters import weights_digest
from appliance.inference.folder import open_model
from appliance.learning.folders import read_verified
from appliance.learning.recipes.recipe import SelfDistillationRecipe
from appliance.learning.signal.self_distillation import lesson_prompts
from appliance.learning.training.trainer import Trainer
from appliance.ledger.sqlite import SqliteLedger
from appliance.rendering.formats import load_renderer
from appliance.worker.setup.context import WorkContext
from curriculum.contract.task import Task


def test_the_recorded_steps_give_the_same_weights_and_only_plain_questions(
    context: WorkContext, ledger: SqliteLedger
) -> None:
    own = SelfDistillationRecipe(shown="reason", share=0.5)
    recipe = SHORT.model_copy(
        update={"training": SHORT.training.model_copy(update={"self_distillation": own, "tasks_per_step": 8})}
    )
    train_night(context, "t", recipe=recipe)
    cycle = ledger.cycle("t")
    assert cycle is not None
    files, made = (read_verified(context.data / "models" / str(cycle.plan[name])) for name in ("start", "candidate"))
    renderer = load_renderer(files)
    learner = Trainer(open_model(files), recipe.training, 0, max_tokens=recipe.agent.max_tokens)
    scored = 0
    for step in range(recipe.training.steps):
        record = ledger.step("t", step)
        assert record is not None
        tasks = {str(task["id"]): Task.model_validate(task) for task in record.tasks}
        for one in record.judged:
            assert one.rollout.nodes[0].ids == renderer.question(tasks[one.rollout.task].question)
        prompts = lesson_prompts(tasks.values(), record.judged, record.groups, "reason", renderer)
        scored += len(prompts)
        learner.train_step(step, record.judged, record.groups, prompts)
    assert scored
    assert weights_digest(learner.model) == weights_digest(open_model(made))
    figures = [event.figures for _, event in ledger.events(limit=1000) if event.kind == "step"]
    assert any(one["learning_taught_fraction"] > 0 for one in figures)

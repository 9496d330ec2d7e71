"""What is known of levels goes from night to night, and is decided once a night."""

from __future__ import annotations

from short_nights import SHORT, train_night
from test_stages import texts

from appliance.evaluation.measured import folder_of, weights_key
from appliance.evaluation.plan import AttemptFile, EvaluationAttempt, EvaluationPlan
from appliance.ledger.sqlite import SqliteLedger
from appliance.worker.setup.context import WorkContext
from appliance.worker.training.known_levels import known_at
from curriculum.difficulty import Difficulty, Place, Seen
from curriculum.registry import TASKSETS

KNOWN = Difficulty().after([Seen(Place("arithmetic", 0), 8, 8), Seen(Place("divisors", 1), 0, 8)])


def test_the_plan_goes_before_earlier_nights_and_the_newest_night_that_knows_something_is_taken() -> None:
    said = KNOWN.model_dump(mode="json")
    older = {"difficulty_0": Difficulty().model_dump(mode="json"), "difficulty_12": said}
    assert known_at(0, {"difficulty_0": said}, [older]) == KNOWN
    assert known_at(0, {"recipe": {}}, [{"recipe": {}}, older]) == KNOWN.overnight()
    assert known_at(0, {}, []) == Difficulty()


def test_a_night_begins_with_what_the_one_before_it_ended_with_and_what_was_measured_of_its_model(
    context: WorkContext, ledger: SqliteLedger
) -> None:
    training = SHORT.training.model_copy(
        update={"steps": 1, "tasks_per_step": 2, "watch_items": 2, "difficulty": "adaptive"}
    )
    recipe = SHORT.model_copy(update={"training": training})
    train_night(context, "one", recipe=recipe)
    one = ledger.cycle("one")
    assert one is not None
    attempt = EvaluationAttempt(
        question="q", taskset="arithmetic", level=2, topic=TASKSETS["arithmetic"].topics[0], seed=0, repeat=0,
        outcome="right", ended="answered", tokens=1, calls=1, failed_calls=0, seconds=1.0,
    )  # fmt: skip
    plan = EvaluationPlan(
        model="m", engine="torch", tasksets=(f"arithmetic@{TASKSETS['arithmetic'].version}",), items=1, seeds=(0,),
        repeats=1, temperature=1.0, max_tokens=16, max_calls=1, max_result_chars=28, assay="0",
    )  # fmt: skip
    key = weights_key(context.data / "models" / one.plan["start"])
    with AttemptFile(folder_of(context.data, key, plan), plan, resume=True) as file:
        file.add([attempt])
    train_night(context, "two", recipe=recipe, seed=1)
    two = ledger.cycle("two")
    assert two is not None
    assert Difficulty.model_validate(one.plan["difficulty_0"]) == Difficulty()
    learned = Difficulty.model_validate(one.plan["difficulty_1"])
    assert learned.step == 1
    assert learned.counts
    assert Difficulty.model_validate(two.plan["difficulty_0"]) == learned.overnight().after(
        [Seen(Place("arithmetic", 2, attempt.topic), 1, 1)]
    )
    told = texts(ledger, "difficulty")
    assert len(told) == 4
    assert "begins with no level known yet" in told

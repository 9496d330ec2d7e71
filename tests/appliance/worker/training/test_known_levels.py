"""What is known of levels goes from night to night, and is decided once a night."""

from __future__ import annotations

from short_nights import SHORT, train_night
from test_stages import texts

from appliance.ledger.sqlite import SqliteLedger
from appliance.worker.setup.context import WorkContext
from appliance.worker.training.known_levels import known_at
from curriculum.difficulty import Difficulty, Place, Seen

KNOWN = Difficulty().after([Seen(Place("arithmetic", 0), 8, 8), Seen(Place("divisors", 1), 0, 8)])


def test_the_plan_goes_before_earlier_nights_and_the_newest_night_that_knows_something_is_taken() -> None:
    said = KNOWN.model_dump(mode="json")
    older = {"difficulty_0": Difficulty().model_dump(mode="json"), "difficulty_12": said}
    assert known_at(0, {"difficulty_0": said}, [older]) == KNOWN
    assert known_at(0, {"recipe": {}}, [{"recipe": {}}, older]) == KNOWN.overnight()
    assert known_at(0, {}, []) == Difficulty()


def test_a_night_begins_with_what_the_one_before_it_ended_with(context: WorkContext, ledger: SqliteLedger) -> None:
    training = SHORT.training.model_copy(
        update={"steps": 1, "tasks_per_step": 2, "watch_items": 2, "difficulty": "adaptive"}
    )
    recipe = SHORT.model_copy(update={"training": training})
    train_night(context, "one", recipe=recipe)
    train_night(context, "two", recipe=recipe, seed=1)
    one, two = (ledger.cycle(name) for name in ("one", "two"))
    assert one is not None
    assert two is not None
    assert Difficulty.model_validate(one.plan["difficulty_0"]) == Difficulty()
    learned = Difficulty.model_validate(one.plan["difficulty_1"])
    assert learned.step == 1
    assert learned.counts
    assert Difficulty.model_validate(two.plan["difficulty_0"]) == learned.overnight()
    told = texts(ledger, "difficulty")
    assert len(told) == 4
    assert "begins with no level known yet" in told

"""Demonstrations show what came back from sandboxes."""

from __future__ import annotations

from random import Random

from appliance.worker.context import WorkContext
from appliance.worker.demonstrations import play
from curriculum.demonstrations import demonstration
from runtime.sessions import Sessions
from runtime.settings import RuntimeSettings


def test_more_demonstrations_than_places_take_turns(context: WorkContext, runtime: RuntimeSettings) -> None:
    rng = Random(0)
    made = [demonstration(rng, right_choice=1.0, fail_first=0.0, exclude=frozenset()) for _ in range(3)]
    tiers = context.policy.sandboxes.tiers.model_copy(update={"training": "process"})
    sandboxes = context.policy.sandboxes.model_copy(update={"tiers": tiers})
    policy = context.policy.model_copy(update={"sandboxes": sandboxes})
    with Sessions(runtime.model_copy(update={"process_sessions": 1, "place_seconds": 60.0})) as sessions:
        assert [one.task for one in play(made, sessions, policy, 200, caller="c")] == [one.task for one in made]

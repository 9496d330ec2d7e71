"""Demonstrations show what came back from sandboxes."""

from __future__ import annotations

from pathlib import Path
from random import Random

from appliance.worker.setup.context import WorkContext
from appliance.worker.sft.demonstrations import keep, kept, play
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


def test_what_was_run_is_kept_as_it_came_out(context: WorkContext, tmp_path: Path) -> None:
    made = [demonstration(Random(1), right_choice=1.0, fail_first=1.0, exclude=frozenset())]
    played = play(made, context.sessions, context.policy, 200, caller="c")
    assert kept(tmp_path / "run" / "file") == []
    keep(played, tmp_path / "run" / "file")
    assert kept(tmp_path / "run" / "file") == played

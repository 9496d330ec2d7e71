"""A plan says what the sampler thought of each level, and one that says nothing is no state."""

from __future__ import annotations

from pathlib import Path

from records_of_nights import SEED, judged, put_night, verdict

from appliance.curriculum.level_states import key_of_step, states_in
from appliance.daemon.views.ledger_views import Rollouts
from appliance.ledger.sqlite import SqliteLedger
from curriculum.contract.task import Split
from curriculum.difficulty import Difficulty, Place, Seen
from curriculum.sealed import TaskStream, sealed_set

NAMES = ("modular_arithmetic", "calendars")


def known() -> Difficulty:
    """After forty steps: one level is always solved, one never, one half of the time."""
    found = Difficulty()
    for _ in range(40):
        found = found.after(
            [
                Seen(Place("modular_arithmetic", 0), 8, 8),
                Seen(Place("modular_arithmetic", 1), 4, 8),
                Seen(Place("own/sums", 4), 0, 8),
            ]
        )
    return found


def test_the_newest_note_of_a_plan_says_what_is_solved_at_the_edge_and_too_hard() -> None:
    plan = {
        key_of_step(0): Difficulty().model_dump(mode="json"),
        key_of_step(40): known().model_dump(mode="json"),
        "difficulty_words": "no note",
    }
    assert states_in(plan) == {
        ("modular_arithmetic", 0): "solved",
        ("modular_arithmetic", 1): "at the edge",
        ("own/sums", 4): "too hard",
    }


def test_a_plan_without_a_note_or_with_one_that_cannot_be_read_says_nothing() -> None:
    assert states_in({"tasksets": NAMES}) == {}
    assert states_in({key_of_step(3): {"counts": 7}}) == {}


def test_what_the_daemon_counts_has_the_state_of_its_level(tmp_path: Path) -> None:
    task = next(
        one for one in TaskStream(Split.TRAIN, 1, tasksets=("modular_arithmetic",)).tasks(0, 40) if one.level == 1
    )
    other = next(one for one in TaskStream(Split.TRAIN, 1, tasksets=("calendars",)).tasks(0, 40))
    with SqliteLedger(tmp_path / "ledger.sqlite3") as ledger:
        sealed = sealed_set(4, SEED, tasksets=NAMES)
        notes = {key_of_step(40): known().model_dump(mode="json")}
        asked = [judged(one, given=verdict()) for one in (task, other)]
        put_night(ledger, tmp_path, sealed, asked, [task, other], notes=notes)
        counts = Rollouts(ledger).pass_counts("night-1", tmp_path)
    assert {(one.family, one.level): one.state for one in counts} == {
        ("modular_arithmetic", 1): "at the edge",
        ("calendars", other.level): "",
    }

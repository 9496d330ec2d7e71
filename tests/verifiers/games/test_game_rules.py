"""The rules of the grid games: what moves, what opens, what wins, and what a play is worth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import table

from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import Ground, Outcome
from verifiers.games.rules import SHOWN, Game, Play, efficiency
from verifiers.games.spec import GameSpec
from verifiers.registry import check_spec, decide, kind_named
from verifiers.registry.canaries import specs_of

WALK = {
    "l": "left",
    "r": "right",
    "u": "up",
    "d": "down",
    "f": "flip",
    "n": "nothing",
    "F": "forward",
    "T": "turn right",
}
CORRIDOR = specs_of(kind_named("game"))["corridor"]


def played(map_: str, moves: str, *, movement: str = "step", wrap: bool = False, period: int = 0) -> tuple[str, Play]:
    """What came of the last of these moves, and the play."""
    data = {
        "actions": list(WALK),
        "effects": list(WALK.values()),
        "movement": movement,
        "wrap": wrap,
        "period": period,
        "signs": SHOWN,
        "levels": [{"map": map_, "shortest": 40}],
    }
    play = Play(Game(data))
    return [play.act(move) for move in moves][-1], play


@table(
    ("map_", "winning", "failing"),
    [
        pytest.param("#######\n#PkD.G#\n#######", "rrrr", "lrrr", id="a key opens one door"),
        pytest.param("########\n#PkDD.G#\n########", "", "rrrrr", id="and no second one"),
        pytest.param("######\n#b#.##\n#P2.G#\n#a##.#\n######", "udrrr", "durrr", id="a gate lets its colour pass"),
        pytest.param("#######\n#Px#xG#\n#######", "rr", "", id="a teleport ends at its other end"),
        pytest.param("######\n#P.*G#\n######", "rrr", "", id="tokens on the way are taken"),
        pytest.param("######\n#*PG.#\n######", "lrr", "rr", id="without all tokens the goal is a floor"),
        pytest.param("########\n#PO_..G#\n########", "", "rrrrr", id="a box in the way is pushed on, off its plate"),
        pytest.param("#####\n#P.G#\n#O###\n#_###\n#####", "durr", "rr", id="a box on its plate opens the goal"),
    ],
)  # fmt: skip
def test_what_stands_on_a_map_does_what_it_says(map_: str, winning: str, failing: str) -> None:
    if winning:
        assert played(map_, winning)[1].over
    if failing:
        assert not played(map_, failing)[1].over


def test_a_player_slides_until_something_is_in_the_way() -> None:
    assert played("########\n#P....G#\n########", "r", movement="slide")[0] == "won"
    assert played("########\n#P.G...#\n########", "r", movement="slide")[0] == "won"


def test_a_player_falls_and_gravity_can_be_turned_over() -> None:
    assert played("#####\n#P..#\n#..G#\n#####", "rr", movement="fall")[0] == "won"
    assert played("#####\n#..G#\n#P..#\n#####", "frr", movement="fall")[0] == "won"
    assert not played("#####\n#..G#\n#P..#\n#####", "rrr", movement="fall")[1].over


def test_a_player_with_a_heading_goes_where_it_looks() -> None:
    assert played("#####\n#P.G#\n#####", "TFF", movement="turn")[0] == "won"
    assert not played("#####\n#P.G#\n#####", "FFF", movement="turn")[1].over


def test_a_barrier_is_open_at_its_ticks_only() -> None:
    assert played("#####\n#P|G#\n#####", "nnrr", period=3)[0] == "won"
    assert not played("#####\n#P|G#\n#####", "nrr", period=3)[1].over


def test_rows_may_go_on_at_the_other_end() -> None:
    assert played("#P#\n#.#\n###\n#G#", "u", wrap=True)[0] == "won"
    assert played("#P#\n#.#\n###\n#G#", "u")[0] == ""
    assert not played("#P.#\n#.##\n#.#G", "uuu", movement="slide", wrap=True)[1].over  # round and round has an end


def test_a_pit_begins_the_level_anew_and_the_actions_count() -> None:
    came, play = played("#####\n#P^G#\n#####", "lr")
    assert (came, play.used, play.frame()) == ("restarted", [2], "#####\n#P^G#\n#####")


def test_a_game_ends_with_the_actions_that_a_level_may_take() -> None:
    data = CORRIDOR.game.model_dump()
    play = Play(Game(data))
    while not play.over:
        play.act("1")
    assert (play.lost, play.used, play.number) == (True, [20, 0], 0)


@given(st.lists(st.sampled_from(["1", "2", "3", "reset"]), max_size=60))
def test_what_is_replayed_is_what_was_played(moves: list[str]) -> None:
    play, done = Play(Game(CORRIDOR.game.model_dump())), []
    for move in moves:
        if play.over:
            break
        play.act(move)
        done.append(move)
    verdict = decide(CORRIDOR, " ".join(done))
    assert verdict.score == pytest.approx(efficiency([4, 7], play.used, play.number))
    assert verdict.passed == (play.number == 2 and verdict.score >= CORRIDOR.least)


def test_efficiency_is_squared_and_later_levels_weigh_more() -> None:
    assert efficiency([4, 6], [4, 6], 2) == 1
    assert efficiency([4, 6], [8, 6], 2) == pytest.approx((0.25 + 2) / 3)
    assert efficiency([4, 6], [4, 30], 1) == pytest.approx(1 / 3)
    assert efficiency([4, 6], [3, 6], 2) == 1, "whoever finds a shorter way has no more than all"


@pytest.mark.parametrize(
    "change",
    [
        {"solution": [["2"] * 4, ["2", "2", "2", "2", "2", "2", "2"]]},
        {"solution": [["2"] * 4]},
        {"solution": [["2", "2", "2", "1"], ["2", "3", "3", "2", "2", "2", "2"]]},
    ],
)
def test_a_game_whose_solution_does_not_win_it_is_no_spec(change: dict[str, object]) -> None:
    spec = GameSpec.model_validate({**CORRIDOR.model_dump(), **change})
    with pytest.raises(SpecError):
        check_spec(spec)


@table(
    "change",
    [
        {"effects": ["left", "right", "dig"]},
        {"effects": ["left", "right"]},
        {"actions": ["1", "2", "2"]},
        {"actions": ["1", "2", "reset"]},
        {"signs": "#."},
        {"levels": [{"map": "####\nPG\n####", "shortest": 1}, {"map": "####\n#PG#\n####", "shortest": 1}]},
        {"levels": [{"map": "####\n#PP#\n####", "shortest": 1}, {"map": "####\n#PG#\n####", "shortest": 1}]},
        {"levels": [{"map": "#####\n#PxG#\n#####", "shortest": 1}, {"map": "####\n#PG#\n####", "shortest": 1}]},
        {"levels": [{"map": "#" * 60, "shortest": 1}, {"map": "####\n#PG#\n####", "shortest": 1}]},
    ],
)  # fmt: skip
def test_a_game_that_cannot_be_played_is_no_spec(change: dict[str, object]) -> None:
    data = CORRIDOR.model_dump()
    spec = GameSpec.model_validate({**data, "game": {**data["game"], **change}})
    with pytest.raises(SpecError):
        check_spec(spec)


def test_a_play_that_stops_early_has_what_it_won() -> None:
    verdict = decide(CORRIDOR, "2 2 2 2")
    assert (verdict.outcome, verdict.evidence["levels_won"]) == (Outcome.FAIL, 1)
    assert verdict.score == pytest.approx(1 / 3)


def test_a_play_with_an_action_that_the_game_does_not_have_is_none_whatever_it_won() -> None:
    won = "2 2 2 2"
    assert decide(CORRIDOR, won).ground is not Ground.UNREADABLE
    for play in (f"{won} dig", f"dig {won}"):
        verdict = decide(CORRIDOR, play)
        assert (verdict.ground, verdict.score) == (Ground.UNREADABLE, 0.0)

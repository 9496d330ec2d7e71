"""Games with hidden rules: an oracle that plans with the true rules, agents that know nothing, and hostile calls."""

from __future__ import annotations

import json
from functools import cache
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from tables import table

from curriculum.contract.errors import CurriculumError
from curriculum.environments.games import generate
from curriculum.environments.games.environment import GAMES
from curriculum.environments.games.generate import OBSTACLES, TOPICS, drawn, game, shortest
from curriculum.registry import make_draft
from curriculum.worlds.guest import STATE_BYTES, pack
from verifiers.games.rules import Game
from verifiers.games.spec import GameData
from verifiers.registry import decide

LEVELS = range(5)


class ToolError(Exception):
    pass


def world(setup: dict[str, Any]) -> SimpleNamespace:
    """The world's program, in this process: it is ours, and it is asked nothing that runs code."""
    names: dict[str, Any] = {"SETUP": setup, "ToolError": ToolError, "__name__": "world"}
    exec(compile(GAMES.program, "world", "exec"), names)
    return SimpleNamespace(**names)


@pytest.fixture(scope="module")
def drafts() -> list[Any]:
    return [make_draft("hidden_rules", level, seed) for level in LEVELS for seed in range(3)]


def test_an_oracle_that_knows_the_rules_has_all_of_the_score(drafts) -> None:
    for draft in drafts:
        one = world(draft.world)
        rules = Game(draft.spec.game.model_dump())
        for level in rules.levels:
            one.call("act", {"actions": (way := shortest(rules, level))[:20]})
            for begin in range(20, len(way), 20):
                one.call("act", {"actions": way[begin : begin + 20]})
        assert "the game is won" in one.call("look", {})
        verdict = decide(draft.spec, one.submission())
        assert (verdict.passed, verdict.score) == (True, 1.0), verdict.reason


def test_the_longest_play_is_carried_from_call_to_call(drafts) -> None:
    """All limits of a game, used up by what packs worst; and the last call of it replays the whole."""
    for draft in drafts:
        one, rng = world(draft.world), Random(7)
        names = list(draft.world["actions"])
        most = sum(Game(draft.world).limits)
        left = pack(json.dumps(rng.choices([*names, "reset"], k=most)))
        assert most <= 1_500
        assert len(left) < STATE_BYTES / 4
        while "is lost" not in one.call("look", {}):
            one.call("reset", {})
        assert one.submission().split() == ["reset"] * Game(draft.world).limits[0]


def test_maps_that_are_not_searched_could_not_have_been_won(monkeypatch) -> None:
    made = []
    for seed in range(120):
        movement = ("step", "slide", "turn", "fall")[seed % 4]
        obstacles = (rng := Random(seed)).sample(OBSTACLES[:5], 2)
        text = drawn(
            rng, obstacles, rooms=3, height=6, width=3, walls=0.3, pits=1, wrap=seed % 3 == 0, falls=movement == "fall"
        )
        if text is not None:
            spec = next(one for topic in TOPICS if (one := _rules(topic)).movement == movement)
            data = {**spec.model_dump(), "period": 2, "levels": [{"map": text, "shortest": 60}]}
            made.append(Game(data | {"wrap": seed % 3 == 0}))
    found = [shortest(one, one.levels[0]) for one in made]
    monkeypatch.setattr(generate, "_may_be_won", lambda _level: True)
    assert [shortest(one, one.levels[0]) for one in made] == found
    assert found.count(None) > 10 < len(found) - found.count(None)


@cache
def _rules(topic: str) -> GameData:
    return game(topic, 0, Random(1)).game


def test_an_agent_that_acts_at_random_has_next_to_nothing(drafts) -> None:
    scores = []
    for draft in drafts:
        for seed in range(4):
            one, rng = world(draft.world), Random(seed)
            names = list(draft.spec.game.actions)
            while not one._play().over:
                one.call("act", {"actions": rng.choices(names, k=rng.randint(1, 20))})
            verdict = decide(draft.spec, one.submission())
            assert not verdict.passed
            scores.append(verdict.score)
    assert sum(scores) / len(scores) <= 0.02


def test_who_does_nothing_submits_nothing(drafts) -> None:
    for draft in drafts:
        one = world(draft.world)
        one.call("look", {})
        assert (one.submission(), decide(draft.spec, one.submission()).score) == ("", 0.0)


@table("topic", TOPICS)
def test_a_game_shows_neither_its_rules_nor_the_names_of_its_signs(topic) -> None:
    spec = game(topic, 1, Random(1))
    shown = world(spec.game.model_dump()).call("look", {})
    assert spec.game.levels[0].map not in shown
    assert [effect for effect in spec.game.effects if effect in shown] == []


def test_levels_of_one_game_share_their_rules_and_signs_and_two_games_do_not() -> None:
    signs = {game("doors", 1, Random(seed)).game.signs for seed in range(4)}
    assert len(signs) == 4
    assert len({game("doors", 1, Random(seed)).game.effects for seed in range(12)}) > 6


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("act", {"actions": []}),
        ("act", {"actions": ["1"] * 21}),
        ("act", {"actions": "1"}),
        ("act", {"actions": [1]}),
        ("act", {"actions": [["1"]]}),
        ("act", {"actions": ["1", "STATE.clear()"]}),
        ("act", {"actions": ["1", "reset"]}),
        ("act", {"actions": [None]}),
        ("submission", {}),
        ("__import__", {"actions": ["1"]}),
    ],
)  # fmt: skip
def test_a_call_with_anything_wrong_in_it_plays_nothing(drafts, tool, arguments) -> None:
    one = world(drafts[0].world)
    with pytest.raises(ToolError):
        one.call(tool, arguments)
    assert (one.submission(), sum(one._play().used)) == ("", 0)


def test_nothing_is_played_after_the_end(drafts) -> None:
    one = world(drafts[0].world)
    while not one._play().over:
        one.call("reset", {})
    before = one.submission()
    with pytest.raises(ToolError):
        one.call("reset", {})
    assert one.submission() == before
    assert "lost" in one.call("look", {})


def test_a_setup_that_is_no_game_is_refused(drafts) -> None:
    assert GAMES.files(drafts[0].world) == {}
    with pytest.raises(CurriculumError):
        GAMES.files({"actions": ["1"]})

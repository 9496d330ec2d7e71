"""Games with hidden rules: grids in which nobody says what an action does, or what wins.

The player sees a frame of meaningless signs, and acts by equally meaningless names. Levels of one game share its rules.
The score is efficiency (`verifiers.games.rules.efficiency`). Higher levels of the taskset have games with more rules,
rooms and levels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from random import Random

from curriculum.contract.taskset import TaskDraft
from curriculum.contract.topics import Item, TopicTaskset
from curriculum.environments.games.environment import GAMES
from curriculum.environments.games.generate import LEVELS, TOPICS, game
from verifiers.contract.kinds import AnswerForm
from verifiers.games.rules import CUTOFF, Game, Play
from verifiers.games.spec import GameSpec
from verifiers.registry.spec import Spec

TURNS = 60


def _item(topic: str) -> Callable[[int, Random], Item]:
    def make(level: int, rng: Random) -> Item:
        spec = game(topic, level, rng)
        world = spec.game.model_dump(mode="json")
        return Item(
            text=_asked(spec),
            key=hashlib.sha256(spec.model_dump_json().encode()).hexdigest()[:20],
            spec=spec,
            answer=" ".join(move for level in spec.solution for move in level),
            world=world,
        )

    return make


def _asked(spec: GameSpec) -> str:
    names = ", ".join(spec.game.actions)
    return (
        f"Here is a game of {len(spec.game.levels)} levels that follow one set of rules. Nobody tells you the rules, "
        "what the signs mean, or how a level is won: find out by playing. "
        f"The actions are called {names}; the tool act "
        "plays them, look shows the frame, reset begins a level anew. Win every level in as few actions as you can: "
        f"one that takes {CUTOFF} times as many as it needs ends the game, and the later levels count more. When the "
        f"game is over, say so.\n\nThe first frame:\n{Play(Game(spec.game.model_dump())).frame()}"
    )


def _other_actions(draft: TaskDraft, number: int) -> Spec:
    """Returns the spec of the same game with other action names, unknown to its player, so no honest play passes."""
    spec = draft.spec
    assert isinstance(spec, GameSpec)
    actions = tuple(f"{number}-{name}" for name in spec.game.actions)
    solution = tuple(tuple(f"{number}-{move}" for move in level) for level in spec.solution)
    return spec.model_copy(update={"game": spec.game.model_copy(update={"actions": actions}), "solution": solution})


HIDDEN_RULES = TopicTaskset(
    name="hidden_rules",
    version=1,
    makers={topic: _item(topic) for topic in TOPICS},
    null_answers=("1", "1 2 3 4", " ".join("1234" * 20), " ".join(["1"] * 50), "reset", "won"),
    level_count=len(LEVELS),
    form=AnswerForm.WORLD,
    tools=tuple(tool.name for tool in GAMES.tools),
    environment=GAMES.name,
    turns=TURNS,
    contradicted=_other_actions,
)

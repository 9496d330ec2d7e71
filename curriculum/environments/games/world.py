"""What a player can ask of a game: the second half of the world's program, behind the rules.

This file is source for the world's sandbox. What always holds: a call with anything wrong in it plays nothing; what is
submitted is the list of actions that were played, in order, and nothing else: who judges replays them, and so does each
call, for that list is all that a rollout has of its own.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curriculum.worlds.guest import ToolError
    from verifiers.games.rules import RESET, Game, Play

    SETUP: dict[str, Any] = {}


AT_ONCE = 20
GAME = Game(SETUP)
STATE: list[str] = []
"""The actions that were played."""


def call(tool: str, arguments: dict[str, Any]) -> str:
    if tool == "look":
        return _shown(_play(), [])
    if tool == "reset":
        return _played([RESET])
    if tool == "act":
        actions = arguments["actions"]
        if not isinstance(actions, list) or not 1 <= len(actions) <= AT_ONCE:
            raise ToolError(f"actions is a list of 1 to {AT_ONCE} names")
        names = list(GAME.actions)
        if any(not isinstance(action, str) or action not in names for action in actions):
            raise ToolError(f"the actions are {', '.join(names)}")
        return _played(actions)
    raise ToolError("the tools are look, act and reset")


def submission() -> str:
    return " ".join(STATE)


def _play() -> "Play":
    """The game as it is after what was played."""
    play = Play(GAME)
    for action in STATE:
        play.act(action)
    return play


def _played(actions: list[str]) -> str:
    """Plays them, up to what changes the level."""
    play = _play()
    if play.over:
        raise ToolError("the game is over")
    said = []
    for action in actions:
        before = play.frame()
        came = play.act(action)
        STATE.append(action)
        if came:
            said.append(f"{action}: {TOLD[came]}")
            break
        said.append(f"{action}: {_changed(before, play.frame())}")
    if len(said) < len(actions):
        said.append(f"{len(actions) - len(said)} actions were not played")
    return _shown(play, said)


TOLD = {"won": "the level is won", "restarted": "the level begins anew", "lost": "too many actions: the game is lost"}


def _changed(before: str, after: str) -> str:
    count = sum(one != other for one, other in zip(before, after, strict=True))
    return f"{count} cells changed" if count else "nothing changed"


def _shown(play: "Play", said: list[str]) -> str:
    levels = len(play.used)
    if play.over:
        end = "the game is lost" if play.lost else "the game is won"
        return "\n".join([*said, f"{end}: {play.number} of {levels} levels in {sum(play.used)} actions"])
    used = f"level {play.number + 1} of {levels}, {play.used[play.number]} actions so far in it"
    return "\n".join([*said, used, play.frame()])

"""What a player can ask of a game: the second half of the world's program, behind the rules.

This file is source for the world's sandbox. What always holds: a call with anything wrong in it plays nothing, and what
is submitted is the list of actions that were played, in order, and nothing else: who judges replays them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verifiers.games.rules import RESET, Game, Play

    SETUP: dict[str, Any] = {}
    ToolError = Exception


AT_ONCE = 20
PLAY = Play(Game(SETUP))
PLAYED: list[str] = []


def call(tool: str, arguments: dict[str, Any]) -> str:
    if tool == "look":
        return _shown([])
    if tool == "reset":
        return _played([RESET])
    if tool == "act":
        actions = arguments["actions"]
        if not isinstance(actions, list) or not 1 <= len(actions) <= AT_ONCE:
            raise ToolError(f"actions is a list of 1 to {AT_ONCE} names")
        names = list(PLAY.game.actions)
        if any(not isinstance(action, str) or action not in names for action in actions):
            raise ToolError(f"the actions are {', '.join(names)}")
        return _played(actions)
    raise ToolError("the tools are look, act and reset")


def submission() -> str:
    return " ".join(PLAYED)


def _played(actions: list[str]) -> str:
    """Plays them, up to what changes the level."""
    if PLAY.over:
        raise ToolError("the game is over")
    said = []
    for action in actions:
        before = PLAY.frame()
        came = PLAY.act(action)
        PLAYED.append(action)
        if came:
            said.append(f"{action}: {TOLD[came]}")
            break
        said.append(f"{action}: {_changed(before, PLAY.frame())}")
    if len(said) < len(actions):
        said.append(f"{len(actions) - len(said)} actions were not played")
    return _shown(said)


TOLD = {"won": "the level is won", "restarted": "the level begins anew", "lost": "too many actions: the game is lost"}


def _changed(before: str, after: str) -> str:
    count = sum(one != other for one, other in zip(before, after, strict=True))
    return f"{count} cells changed" if count else "nothing changed"


def _shown(said: list[str]) -> str:
    levels = len(PLAY.used)
    if PLAY.over:
        end = "the game is lost" if PLAY.lost else "the game is won"
        return "\n".join([*said, f"{end}: {PLAY.number} of {levels} levels in {sum(PLAY.used)} actions"])
    used = f"level {PLAY.number + 1} of {levels}, {PLAY.used[PLAY.number]} actions so far in it"
    return "\n".join([*said, used, PLAY.frame()])

"""Answers a world of somebody else's environment: its owner's tools, or the model's. It runs in the guest.

What always holds: a world with an item makes no items, and one without an item has nothing to play; what is submitted
is the score and nothing else, a finite number or none.
"""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from curriculum.environments.foreign.reasoning_gym import PLAYS, list_sets, make_items, reward

    SETUP: dict[str, Any] = {}
    ToolError = Exception

MAKES: "dict[str, Callable[..., str]]" = {"list_sets": list_sets, "make_items": make_items}


def call(tool: str, arguments: "dict[str, Any]") -> str:
    offered = PLAYS if SETUP.get("item") else MAKES
    if tool not in offered:
        raise ToolError(f"there is no tool {tool!r} in this world")
    return offered[tool](**arguments)


def submission() -> str:
    found = reward()
    # Not of NaN, what is infinite, or a whole number of which no float can be made.
    known = not isinstance(found, bool) and isinstance(found, int | float) and abs(found) < 1e300
    text = json.dumps({"reward": float(found) if known else None})
    return json.dumps({"reward.json": {"text": text, "mode": "644"}})

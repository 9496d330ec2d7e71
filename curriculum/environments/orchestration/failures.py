"""Failure modes of a rollout of orchestration. Pure.

The seven failure modes are those of LiveMCP-101 (2508.15760, section 4.3), narrowed to what code can decide from the
plan's steps, the calls and whether the answer passed:

    ignoring_requirement        it failed, and some tools of the plan were called, but not all
    overconfident_self_solving  it answered, and no tool of the plan was ever called
    unproductive_thinking       it ended without an answer, or made the same call three times
    wrong_tool                  calls of a tool that the plan does not need, or that does not exist; listing is exempt
    syntactic_errors            calls whose arguments do not fit the tool's schema
    semantic_errors             calls of a tool of the plan that fit its schema, with arguments that no step has
    output_parsing_errors       it failed, answered, and each step of the plan had been called with its arguments
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from curriculum.contract.environment import MadeCall
from curriculum.environments.orchestration.plans import REPEATED, PlanStep

MODES = (
    "ignoring_requirement",
    "overconfident_self_solving",
    "unproductive_thinking",
    "wrong_tool",
    "syntactic_errors",
    "semantic_errors",
    "output_parsing_errors",
)
REFUSED = "arguments refused: "


def failure_modes(
    steps: Sequence[PlanStep], calls: Sequence[MadeCall], *, answered: bool, passed: bool
) -> dict[str, int]:
    """Counts each failure mode of LiveMCP-101 in a rollout's tool calls. The first three and the last are 0 or 1.
    `steps` are those of the question's plan."""
    wanted = {(step.server, step.tool) for step in steps}
    of_plan = {step.key for step in steps}
    found = Counter(dict.fromkeys(MODES, 0))
    tried: set[tuple[str, str]] = set()
    done: set[str] = set()
    for call in calls:
        server, tool = str(call.arguments.get("server")), str(call.arguments.get("tool"))
        if not call.reached or (call.failed and call.text.startswith(REFUSED)):
            found["syntactic_errors"] += 1
        elif call.tool == "list_tools":
            continue
        elif (server, tool) not in wanted:
            found["wrong_tool"] += 1
        else:
            key = PlanStep(server, tool, call.arguments.get("arguments") or {}).key
            done.add(key)
            found["semantic_errors"] += key not in of_plan
        tried.add((server, tool))
    missed = wanted - tried
    repeated = Counter(json.dumps([call.tool, call.arguments], sort_keys=True) for call in calls)
    found["ignoring_requirement"] = int(not passed and bool(missed) and missed != wanted)
    found["overconfident_self_solving"] = int(answered and missed == wanted)
    found["unproductive_thinking"] = int(not answered or any(times >= REPEATED for times in repeated.values()))
    found["output_parsing_errors"] = int(not passed and answered and of_plan <= done)
    return dict(found)

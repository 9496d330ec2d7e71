"""Prompts behind which the policy model scores its own rollouts: the question, with a solution or a verdict's reason.

`solution` follows SDFT (2601.19897): each rollout is scored beside another attempt that passed. `reason` follows SDPO
(2601.20802): only failed rollouts are scored, beside an attempt that passed, if any, and the reason of their verdict.
Ours: the teacher has the step's own weights, without a moving average; only sampled tokens are scored, as in
`training.distillation`; the selector chooses rollouts first, and one without a lesson keeps its group's advantage.

Invariants: lessons come only from training tasks, and only from rollouts that the step's groups compare, so from none
that copies a held-out question; no attempt reads itself; equal records give equal prompts. Texts of the model, the
guest and the verifier are bounded and escaped, and have no power in a prompt. No prompt is recorded: the ledger keeps
what the model really read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from appliance.agent.conversation import Conversation
from appliance.records.rollouts import Rollout
from appliance.records.training import Group, Judged
from appliance.rendering.markers import TextMessage
from appliance.rendering.renderer import Ids, Renderer
from appliance.rendering.tools import tools_of
from appliance.text.printable import printable
from curriculum.contract.task import Split, Task

MOST_SOLUTION = 8_000
"""Maximum characters of a solution in a prompt."""
MOST_RESULT = 1_000
"""Maximum characters of a tool result in a solution, and of a verdict's reason."""

Shown = Literal["nothing", "solution", "reason"]


def lesson_prompts(
    tasks: Iterable[Task], judged: Sequence[Judged], groups: Sequence[Group], shown: Shown, renderer: Renderer
) -> dict[str, Ids]:
    """Returns the prompts behind which a step's kept rollouts are scored, by rollout id; a rollout without a solution
    or reason to show has none. Raises RenderingError for a task that the format cannot write."""
    if shown == "nothing":
        return {}
    asked = {task.id: task for task in tasks if task.split is Split.TRAIN}
    by_id = {one.rollout.id: one for one in judged}
    prompts: dict[str, Ids] = {}
    for group in groups:
        members = [by_id[name] for name in group.rollouts]
        task = asked.get(group.task)
        if task is None:  # held out, or the group of a step's proposals
            continue
        passing = sorted((one.rollout for one in members if one.verdict.passed), key=_order)
        for one in (members[place] for place in group.kept):
            if shown == "reason" and one.verdict.passed:
                continue
            others = (other for other in passing if _attempt(other) != _attempt(one.rollout))
            solution = next(others, None)
            parts = [] if solution is None else [f"A correct solution:\n{solution_text(solution, task, renderer)}"]
            if shown == "reason":
                reason = printable(one.verdict.reason, limit=MOST_RESULT)
                parts.append(f"An earlier attempt failed its check: {reason}")
            if parts:
                prompts[one.rollout.id] = _prompt(task, "\n".join([*parts, "Now solve it."]), renderer)
    return prompts


def solution_text(rollout: Rollout, task: Task, renderer: Renderer) -> str:
    """Writes a rollout as text: its calls with their results, and its last turn."""
    nodes = rollout.samples[-1]
    lines: list[str] = []
    for call in rollout.calls:
        lines += [call.asked, printable(call.output.strip() or call.error, limit=MOST_RESULT, lines=True)]
    before = tuple(token for node in nodes[:-1] for token in node.ids)
    last = renderer.read(nodes[-1].ids, before, tools_of(task)) if nodes[-1].sampled else ""
    lines.append(last if isinstance(last, str) else "")
    return printable("\n".join(filter(None, lines)), limit=MOST_SOLUTION, lines=True)


def _prompt(task: Task, lesson: str, renderer: Renderer) -> Ids:
    begun = Conversation.begin(renderer, task)
    *others, last = begun.messages
    return renderer.prompt((*others, TextMessage(f"{last.text}\n{lesson}", last.role)), begun.tools)


def _order(rollout: Rollout) -> tuple[int, int, int]:
    """Sorts solutions: clean and short ones first."""
    return rollout.failed_calls, rollout.sampled_tokens, rollout.sample


def _attempt(rollout: Rollout) -> str:
    return rollout.branch_of or rollout.id

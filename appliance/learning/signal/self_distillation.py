"""Prompts behind which the policy model scores its own rollouts: a solution and the question, or a verdict's reason.

`solution` follows SDFT (2601.19897): each rollout is scored beside another attempt that passed. `reason` follows SDPO
(2601.20802): only failed rollouts are scored, beside an attempt that passed, if any, and the reason of their verdict.
Ours: the solution stands before the question as a conversation with calls, because a model that reads it as text
imitates the text and unlearns calls; the teacher has the step's own weights, without a moving average; only sampled
tokens are scored, as in `training.distillation`; the selector chooses rollouts first, and one without a lesson keeps
its group's advantage.

Invariants: lessons come only from training tasks, and only from rollouts that the step's groups compare, so from none
that copies a held-out question; no attempt reads itself; equal records give equal prompts. Texts of guest and verifier
are bounded and escaped, and have no power in a prompt. No prompt is recorded: the ledger keeps what the model read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from appliance.agent.conversation import Conversation
from appliance.records.rollouts import Rollout
from appliance.records.training import Group, Judged
from appliance.rendering.markers import TextMessage
from appliance.rendering.renderer import ChatMessage, Ids, OwnTurn, Renderer
from appliance.text.printable import printable
from curriculum.contract.task import Split, Task

MOST_TEXT = 1_000
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
            failed = f"An earlier attempt failed its check: {printable(one.verdict.reason, limit=MOST_TEXT)}\n"
            if solution is not None or shown == "reason":
                lesson = failed if shown == "reason" else ""
                prompts[one.rollout.id] = _prompt(task, solution, f"{lesson}Another attempt:", renderer)
    return prompts


def _prompt(task: Task, solution: Rollout | None, lesson: str, renderer: Renderer) -> Ids:
    """Writes the task's conversation as `solution` solved it, and its question again with the lesson."""
    begun = Conversation.begin(renderer, task)
    *others, last = begun.messages
    solved = () if solution is None else (last, *_turns(solution))
    return renderer.prompt((*others, *solved, TextMessage(f"{last.text}\n{lesson}", last.role)), begun.tools)


def _turns(rollout: Rollout) -> Iterator[ChatMessage]:
    for nodes in rollout.samples:
        before: Ids = ()
        for node in nodes:
            if node.sampled:
                yield OwnTurn(node.ids, before)
            elif node.call is not None:
                result = node.call.output.strip() or node.call.error
                yield TextMessage(printable(result, limit=MOST_TEXT, lines=True), "tool")
            before += node.ids


def _order(rollout: Rollout) -> tuple[int, int, int]:
    """Sorts solutions: clean and short ones first."""
    return rollout.failed_calls, rollout.sampled_tokens, rollout.sample


def _attempt(rollout: Rollout) -> str:
    return rollout.branch_of or rollout.id

"""Checks that a rollout finished by an earlier process matches its assignment.

Invariants: the prompt is rewritten from the task, and the answer is read again from the tokens. A world's submission
cannot be read from tokens; everything else of such a rollout is compared. Pure.
"""

from __future__ import annotations

from appliance.agent.answers import NO_ANSWER, Final, final_answer
from appliance.agent.assignment import Assignment
from appliance.agent.conversation import Conversation
from appliance.records.rollouts import Rollout, RolloutEnd
from appliance.rendering.renderer import Ids, Renderer
from appliance.rendering.tools import tools_of
from verifiers.contract.kinds import AnswerForm


def is_of(rollout: Rollout, assignment: Assignment, renderer: Renderer) -> bool:
    """True if a saved rollout matches its assignment. Raises RenderingError if the model's format cannot write the
    task."""
    task = assignment.task
    asked = (assignment.cycle, assignment.step, task.id, assignment.sample, assignment.purpose, assignment.temperature)
    made = (rollout.cycle, rollout.step, rollout.task, rollout.sample, rollout.purpose, rollout.temperature)
    if asked != made or not rollout.nodes or rollout.branch_of is not None:
        return False
    if rollout.nodes[0] != Conversation.begin(renderer, task).nodes[0]:
        return False
    if rollout.ended is RolloutEnd.ANSWERED and task.form is AnswerForm.WORLD:
        return True
    return (rollout.answer, rollout.answers) == _answer_of(rollout, assignment, renderer)


def _answer_of(rollout: Rollout, assignment: Assignment, renderer: Renderer) -> tuple[str | None, int] | None:
    """Reads a rollout's answer and number of answers from its last turn; None if that turn cannot be an answer."""
    final: Final | None = NO_ANSWER
    if rollout.ended is RolloutEnd.ANSWERED:
        last = rollout.nodes[-1]
        read = renderer.read(last.ids, _read_before(rollout), tools_of(assignment.task)) if last.sampled else None
        final = final_answer(read, assignment.task.form) if isinstance(read, str) else None
    return None if final is None else (final.answer, final.answers)


def _read_before(rollout: Rollout) -> Ids:
    """Returns the tokens before a rollout's last message, on its path from the root."""
    ids: Ids = ()
    place = len(rollout.nodes) - 1
    while (parent := rollout.nodes[place].parent) is not None and 0 <= parent < place:
        ids, place = rollout.nodes[parent].ids + ids, parent
    return ids

"""Texts of a rollout: prompt of a job, tool results for the policy model, transcript for people. Pure.

The texts of a transcript come from the policy model and the guest: escape them wherever they are shown.
"""

from __future__ import annotations

from typing import Any

from appliance.records.jobs import Job, JobFile
from appliance.records.rollouts import Rollout
from appliance.rendering.renderer import Renderer
from curriculum.contract.task import Split, Task, TaskMessage, asked
from curriculum.worlds.world import WorldReply
from runtime.sandbox import CallResult, CallStatus
from verifiers.contract.kinds import IN_A_BOX, AnswerForm
from verifiers.registry import kind_of

_MARKS = {AnswerForm.BOXED: "\\boxed", AnswerForm.BLOCK: "fenced"}
"""Word of a question that states its answer form."""


def task_of(job: Job) -> Task:
    """Converts a user's job to a task: question, files and an unusual answer form, a line each."""
    kind = kind_of(job.spec)
    form = kind.answer_form(job.spec)
    lines = [job.question, files_line(job.files), "" if form is AnswerForm.BOXED else kind.asks_for(job.spec)]
    return Task(
        taskset="job",
        level=0,
        seed=job.seed,
        split=Split.JOB,
        messages=asked("\n".join(filter(None, lines))),
        spec=job.spec,
        form=form,
        provenance=f"job:{job.id}",
    )


def messages_for_chat(task: Task) -> tuple[TaskMessage, ...]:
    r"""Returns the messages of a task for a chat model, which does not know how answers are marked here: the last one
    ends with a sentence that says so, unless the question does."""
    kind = kind_of(task.spec)
    usual = IN_A_BOX if task.form is AnswerForm.BOXED else ""
    sentence = kind.asks_for(task.spec) if kind.answer_form(task.spec) is task.form else usual
    if not sentence or _MARKS.get(task.form, sentence) in task.question:
        return task.messages
    *others, last = task.messages
    return (*others, last.model_copy(update={"text": f"{last.text}\n{sentence}"}))


def files_line(files: tuple[JobFile, ...]) -> str:
    """Lists file names, which are printable, with sizes in bytes.

    >>> files_line((JobFile(name="a.csv", sha256="0" * 64, bytes=12),))
    'Files in the working folder: a.csv (12 bytes).'
    """
    if not files:
        return ""
    named = ", ".join(f"{file.name} ({file.bytes} bytes)" for file in files)
    return f"Files in the working folder: {named}."


_MESSAGES = {
    CallStatus.TIMEOUT: "timeout",
    CallStatus.CPU: "cpu time used up",
    CallStatus.EXPIRED: "sandbox expired",
    CallStatus.MEMORY: "memory",
    CallStatus.PIDS: "too many processes",
    CallStatus.DISK: "disk full",
    CallStatus.FILES: "too many open files",
    CallStatus.OUTPUT: "output",
    CallStatus.CALLS: "no calls left",
    CallStatus.DIED: "died",
}


def shown(result: CallResult | WorldReply, limit: int) -> str:
    """Returns the text of a tool result as the policy model sees it, at most `limit` characters."""
    if isinstance(result, WorldReply):
        return (f"error: {result.text}" if result.failed else result.text)[:limit]
    output = result.output.strip()
    if result.status is CallStatus.OK:
        return output[:limit]
    message = result.error if result.status is CallStatus.EXCEPTION else f"error: {_MESSAGES[result.status]}"
    return (f"{output}\n{message}" if output else message)[:limit]


def transcript(rollout: Rollout, renderer: Renderer) -> list[dict[str, Any]]:
    """Returns a rollout as JSON, one entry per message: parent, role, text, and for tool results the call with its
    status."""
    return [
        {
            "parent": node.parent,
            "role": node.role.value,
            "text": renderer.text(node.ids),
            "sampled": node.sampled,
            **({"call": node.call.model_dump(mode="json")} if node.call else {}),
        }
        for node in rollout.nodes
    ]

"""How a job is put to the policy model: its question, the files that lie in its working folder, the form of an answer.

Pure. The spec is no part of it. A plain question is asked as it stands.
"""

from __future__ import annotations

from appliance.agent.answers import AnswerForm, form_of
from appliance.records import Job, JobFile, JobKind

WANTED = {
    JobKind.PROGRAM: "End with the whole program in one fenced code block.",
    JobKind.CLAIM: "End with what the claim asks for in one fenced code block.",
    JobKind.THEOREM: "End with the whole Lean proof in one fenced code block.",
}
BOXED = "End with the answer in one \\boxed{}."
WHOLE = "Your last turn is the text, and nothing else."


def prompt_of(job: Job) -> str:
    """Question, files, form, a line each."""
    return "\n".join(filter(None, [job.question, files_line(job.files), _form_line(job)]))


def files_line(files: tuple[JobFile, ...]) -> str:
    """Names and sizes in bytes; names are such that they can be shown as they are.

    >>> files_line((JobFile(name="a.csv", sha256="0" * 64, bytes=12),))
    'Files in the working folder: a.csv (12 bytes).'
    """
    if not files:
        return ""
    named = ", ".join(f"{file.name} ({file.bytes} bytes)" for file in files)
    return f"Files in the working folder: {named}."


def _form_line(job: Job) -> str:
    if form_of(job) is AnswerForm.BLOCK:
        return WANTED[job.kind]
    if job.kind is JobKind.TEXT:
        return WHOLE
    return BOXED if form_of(job) is AnswerForm.WHOLE else ""

"""Puts a job to the policy model: its question, the files that lie in its working folder, the form of an answer.

Pure. The spec is no part of it. A plain question is asked as it stands.
"""

from __future__ import annotations

from appliance.records.jobs import Job, JobFile
from curriculum.contract.task import Split, Task, asked
from verifiers.registry import kind_of


def task_of(job: Job) -> Task:
    """The job as the agent meets it: question, files and the form of its answer, a line each."""
    kind = kind_of(job.spec)
    lines = [job.question, files_line(job.files), kind.asks_for(job.spec)]
    return Task(
        taskset="job",
        level=0,
        seed=job.seed,
        split=Split.JOB,
        messages=asked("\n".join(filter(None, lines))),
        spec=job.spec,
        form=kind.answer_form(job.spec),
        provenance=f"job:{job.id}",
    )


def files_line(files: tuple[JobFile, ...]) -> str:
    """Names and sizes in bytes; names are such that they can be shown as they are.

    >>> files_line((JobFile(name="a.csv", sha256="0" * 64, bytes=12),))
    'Files in the working folder: a.csv (12 bytes).'
    """
    if not files:
        return ""
    named = ", ".join(f"{file.name} ({file.bytes} bytes)" for file in files)
    return f"Files in the working folder: {named}."

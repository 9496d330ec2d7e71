"""Prompt of a job: question, files in the working folder, form of the answer.

Pure. The spec is not part of it. A plain question is asked unchanged.
"""

from __future__ import annotations

from appliance.records.jobs import Job, JobFile
from curriculum.contract.task import Split, Task, asked
from verifiers.registry import kind_of


def task_of(job: Job) -> Task:
    """Converts a user's job to a task: question, files and answer form, a line each."""
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
    """Lists file names, which are printable, with sizes in bytes.

    >>> files_line((JobFile(name="a.csv", sha256="0" * 64, bytes=12),))
    'Files in the working folder: a.csv (12 bytes).'
    """
    if not files:
        return ""
    named = ", ".join(f"{file.name} ({file.bytes} bytes)" for file in files)
    return f"Files in the working folder: {named}."

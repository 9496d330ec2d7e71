"""Simple figures of the columns in a job's files, those that the question names; they are computed in a sandbox."""

from __future__ import annotations

from collections.abc import Generator

from appliance.jobs.solvers.sending import ask, texts
from appliance.jobs.solvers.solver import Proposal, Tools
from appliance.records import Job

MOST = 4
"""Proposals. The answer is known to the spec: many would be guesses."""
SECONDS = 10.0


class DataSolver:
    name = "column statistics"
    at_once = 1

    def proposals(self, job: Job, tools: Tools, seconds: float) -> Generator[Proposal, None, None]:
        limit = min(seconds, SECONDS)
        told = [[file.name for file in job.files], job.question, MOST]
        asked = ask(tools, "column_statistics", "answers", told, caller=job.id, seconds=limit, files=tools.files)
        found = next(asked, {})
        asked.close()
        note = found.get("note")
        if isinstance(note, str) and note:
            tools.notes.append(note[:200])
        yield from (Proposal(text, self.name) for text in texts(found, "answers", MOST, 400))

"""Solvers that live in the worker that decides texts: Z3, SymPy, enumeration, the arithmetic of a question."""

from __future__ import annotations

from collections.abc import Generator

from appliance.jobs.solvers.solver import Proposal, Tools
from appliance.records import Job

MOST_SECONDS = 5.0
"""Of one way, so that whoever cancels a job need not wait."""


class WaySolver:
    at_once = 4

    def __init__(self, way: str) -> None:
        self.name = self._way = way

    def proposals(self, job: Job, tools: Tools, seconds: float) -> Generator[Proposal, None, None]:
        found = tools.desk.propose(job.spec, self._way, job.question, min(seconds, MOST_SECONDS))
        if found.note:
            tools.notes.append(found.note)
        if found.hopeless:
            tools.hopeless = found.note
        tools.complete = found.complete
        yield from (Proposal(text, found.by) for text in found.texts)

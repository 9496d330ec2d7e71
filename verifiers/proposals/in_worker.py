"""Solvers for kinds that are decided from text.

They propose statistics of a question's data files, and the results of the text worker's ways (Z3, SymPy, enumeration,
arithmetic).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from verifiers.boxes.in_sandbox import ask, texts
from verifiers.contract.protocols import Proposal, Solver, SolverTools
from verifiers.registry import ways

MOST_FIGURES = 4
"""Maximum number of proposals. The spec knows the answer, so a long list would be guessing."""
DATA_SECONDS = 10.0
MOST_SECONDS = 5.0
"""Time limit per way, in seconds: bounds how long cancelling a job takes."""


class DataSolver:
    """Proposes simple statistics of the columns that a question names in its data files; computed in a sandbox."""

    name = "column statistics"
    at_once = 1

    def proposals(
        self, _spec: Any, question: str, tools: SolverTools, seconds: float
    ) -> Generator[Proposal, None, None]:
        limit = min(seconds, DATA_SECONDS)
        arguments = [sorted(tools.files), question, MOST_FIGURES]
        asked = ask(tools, "column_statistics", "answers", arguments, seconds=limit, files=tools.files)
        for found in list(asked):  # its sandbox is closed before anything is proposed
            yield from (Proposal(text, self.name) for text in texts(found, "answers", MOST_FIGURES, 400))


class WorkerSolver:
    """Proposes the answers that one way of the spec's kind finds in the text worker."""

    at_once = 4

    def __init__(self, way: str) -> None:
        self.name = self._way = way

    def proposals(
        self, spec: Any, question: str, tools: SolverTools, seconds: float
    ) -> Generator[Proposal, None, None]:
        found = tools.checker.propose(spec, self._way, question, min(seconds, MOST_SECONDS))
        if found.note:
            tools.notes.append(found.note)
        if found.hopeless:
            tools.hopeless = found.note
        tools.complete = found.complete
        yield from (Proposal(text, found.by) for text in found.texts)


def solvers(spec: Any, _question: str, files: bool) -> list[Solver]:
    """Returns the solvers for a text-decided spec: statistics of its data files, if any, and the ways of its kind."""
    data: list[Solver] = [DataSolver()] if files else []
    return [*data, *(WorkerSolver(way) for way in ways(spec))]

"""Solvers of the kinds that are decided from a text: figures of the files that came with a question, and what lives in
the worker that decides: Z3, SymPy, enumeration, the arithmetic of a question."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from verifiers.boxes.in_sandbox import ask, texts
from verifiers.contract.solver import Proposal, Solver, SolverTools
from verifiers.registry import ways

MOST_FIGURES = 4
"""Proposals. The answer is known to the spec: many would be guesses."""
DATA_SECONDS = 10.0
MOST_SECONDS = 5.0
"""Of one way, so that whoever cancels a job need not wait."""


class DataSolver:
    """Simple figures of the columns in the files of a question, those that it names; they are computed in a sandbox."""

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
    """Asks the worker for what one way of proposing finds."""

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
    """Those of a kind that is decided from a text: figures of the files, if there are any, and its kind's ways."""
    data: list[Solver] = [DataSolver()] if files else []
    return [*data, *(WorkerSolver(way) for way in ways(spec))]

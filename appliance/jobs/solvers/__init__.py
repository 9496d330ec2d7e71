"""Cheap solvers, which go first: what arithmetic, Z3, a tactic, a search or a sum can do needs no model."""

from __future__ import annotations

from appliance.jobs.solvers.data import DataSolver
from appliance.jobs.solvers.found import WaySolver
from appliance.jobs.solvers.programs import ProgramSolver
from appliance.jobs.solvers.schema import SchemaSolver
from appliance.jobs.solvers.solver import JobSolver
from appliance.jobs.solvers.theorems import TacticSolver
from appliance.records import Job
from verifiers.proposals.proposing import ways
from verifiers.spec import ChecklistSpec, LeanSpec, ProgramSpec

__all__ = ["JobSolver", "solvers_for"]


def solvers_for(job: Job) -> list[JobSolver]:
    """Those that might answer it, the cheapest first. Light: nothing is started or imported."""
    found: list[JobSolver] = []
    match job.spec:
        case LeanSpec():
            found = [TacticSolver()]
        case ProgramSpec():
            found = [ProgramSolver()] if ProgramSolver.takes(job) else []
        case ChecklistSpec():
            found = [SchemaSolver()] if SchemaSolver.takes(job) else []
        case spec:
            data: list[JobSolver] = [DataSolver()] if job.files else []
            found = [*data, *(WaySolver(way) for way in ways(spec))]
    return found

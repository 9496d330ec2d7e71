"""What can be found for a claim without anybody's idea: that it follows, values, the best values, a small term."""

from __future__ import annotations

from collections.abc import Callable

from verifiers.proposals.assignments import values_for
from verifiers.proposals.found import Found
from verifiers.proposals.holes import fillings
from verifiers.proposals.shorter import shorter_terms
from verifiers.smt.bench import tools
from verifiers.smt.errors import ClaimError, SolverBroke
from verifiers.smt.problem import problem
from verifiers.smt.questions import ENTAILED
from verifiers.smt.spec import SmtSpec

BY = f"z3 {tools().get('z3', '(not installed)')}"


def by_z3(spec: SmtSpec, question: str, more_time: Callable[[], bool]) -> Found:
    try:
        asked = problem(spec)
        match spec.question:
            case "entails" if not spec.holes:
                return Found(texts=(ENTAILED,), by=BY, complete=True)
            case "entails":
                return _searched(fillings(asked, more_time), "definitions")
            case "equivalent":
                return _searched(shorter_terms(asked, more_time), "terms")
            case _:
                return values_for(asked, BY, more_time)
    except (ClaimError, SolverBroke) as error:
        return Found(by=BY, note=str(error))


def _searched(texts: tuple[str, ...], what: str) -> Found:
    note = "" if texts else f"none of the small {what} that were tried will do"
    return Found(texts=texts, by=f"enumeration with {BY}", note=note)

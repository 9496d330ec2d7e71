"""Which verifier decides which kind of spec, and whether a spec can decide anything. Importing it imports no SymPy.

Two sorts. `decider` has those that read a text and decide, in a worker. The others put a submission to work in a
sandbox of its own (`program`, `lean`) or ask several (`checklist`): `verifiers.checker` conducts them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from verifiers.answers.exact import ExactVerifier, IntegerVerifier
from verifiers.answers.expression import ExpressionVerifier
from verifiers.answers.predicate import PredicateVerifier
from verifiers.errors import SpecError
from verifiers.spec import ExactSpec, ExpressionSpec, IntegerSpec, PredicateSpec, Spec
from verifiers.verdict import Verdict
from verifiers.verifier import Verifier

EXACT = ExactVerifier()
INTEGER = IntegerVerifier()
EXPRESSION = ExpressionVerifier()
PREDICATE = PredicateVerifier()


def decider(spec: Spec) -> Verifier[Any]:
    """The verifier that decides this spec from the submission's text alone. Raises SpecError where there is none."""
    match spec:
        case ExactSpec():
            return EXACT
        case IntegerSpec():
            return INTEGER
        case ExpressionSpec():
            return EXPRESSION
        case PredicateSpec():
            return PREDICATE
        case _:
            raise SpecError(f"{spec.kind} is not decided from a text alone", hint="Ask `verifiers.checker`.")


def identity(spec: Spec) -> tuple[str, str]:
    """Name and version of the verifier for this spec."""
    found = decider(spec)
    return found.name, found.version


@lru_cache(maxsize=4096)
def check_spec(spec: Spec, *, prove: bool = False) -> None:
    """Raises SpecError, with a hint, for a spec that cannot be used: unreadable, without its variable, vacuous.

    `prove` is for the worker alone: it asks SymPy where arithmetic cannot tell whether a predicate says anything.
    """
    decider(spec).check(spec, prove=prove)


def decide(spec: Spec, submission: str) -> Verdict:
    """The verdict, in this process and without a clock: only the worker calls it. Raises SpecError for a bad spec."""
    check_spec(spec, prove=True)
    return decider(spec).verify(spec, submission)

"""Which verifier decides which kind of spec, and whether a spec can decide anything. Importing it imports no SymPy."""

from __future__ import annotations

from functools import lru_cache

from verifiers.exact import ExactVerifier, IntegerVerifier
from verifiers.predicate import PredicateVerifier
from verifiers.spec import ExactSpec, ExpressionSpec, IntegerSpec, PredicateSpec, Spec
from verifiers.sympy_answer import ExpressionVerifier
from verifiers.verdict import Verdict

EXACT = ExactVerifier()
INTEGER = IntegerVerifier()
EXPRESSION = ExpressionVerifier()
PREDICATE = PredicateVerifier()


def identity(spec: Spec) -> tuple[str, str]:
    """Name and version of the verifier for this spec."""
    match spec:
        case ExactSpec():
            return EXACT.name, EXACT.version
        case IntegerSpec():
            return INTEGER.name, INTEGER.version
        case ExpressionSpec():
            return EXPRESSION.name, EXPRESSION.version
        case PredicateSpec():
            return PREDICATE.name, PREDICATE.version


@lru_cache(maxsize=4096)
def check_spec(spec: Spec, *, prove: bool = False) -> None:
    """Raises SpecError, with a hint, for a spec that cannot be used: unreadable, without its variable, vacuous.

    `prove` is for the worker alone: it asks SymPy where arithmetic cannot tell whether a predicate says anything.
    """
    match spec:
        case ExactSpec():
            EXACT.check(spec)
        case IntegerSpec():
            INTEGER.check(spec)
        case ExpressionSpec():
            EXPRESSION.check(spec)
        case PredicateSpec():
            PREDICATE.check(spec, prove=prove)


def decide(spec: Spec, submission: str) -> Verdict:
    """The verdict, in this process and without a clock: only the worker calls it. Raises SpecError for a bad spec."""
    check_spec(spec, prove=True)
    match spec:
        case ExactSpec():
            return EXACT.verify(spec, submission)
        case IntegerSpec():
            return INTEGER.verify(spec, submission)
        case ExpressionSpec():
            return EXPRESSION.verify(spec, submission)
        case PredicateSpec():
            return PREDICATE.verify(spec, submission)

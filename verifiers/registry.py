"""Which verifier decides which kind of spec, and whether a spec can decide anything. Importing it imports no SymPy.

Two sorts. `decider` has those that read a text and decide, in a worker; of a checklist that is the hard part. The
others put a submission to work in a sandbox of its own (`program`, `lean`), or ask a model as well: `verifiers.checker`
conducts them.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
from functools import cache, lru_cache
from typing import Any

from verifiers.answers.exact import ExactVerifier, IntegerVerifier
from verifiers.errors import SpecError
from verifiers.spec import (
    AnswerSpec,
    ChecklistSpec,
    ExactSpec,
    ExpressionSpec,
    IntegerSpec,
    LeanSpec,
    PredicateSpec,
    ProgramSpec,
    SmtSpec,
    Spec,
)
from verifiers.verdict import Verdict
from verifiers.verifier import Verifier

EXACT = ExactVerifier()
INTEGER = IntegerVerifier()
DECIDE = ("verifiers.answers", "verifiers.smt", "verifiers.checklists")
"""Packages whose modules a worker has at hand before it is asked what needs them."""
CONDUCTED = ("lean", "program")
"""Kinds that no text alone decides."""
log = logging.getLogger(__name__)


@cache
def _loaded(module: str, name: str) -> Verifier[Any]:
    """Imported when it is first asked for."""
    found: Verifier[Any] = getattr(importlib.import_module(module), name)()
    return found


def decider(spec: Spec) -> Verifier[Any]:
    """The verifier that decides this spec from the submission's text alone. Raises SpecError where there is none."""
    match spec:
        case ExactSpec():
            return EXACT
        case IntegerSpec():
            return INTEGER
        case ExpressionSpec():
            return _loaded("verifiers.answers.expression", "ExpressionVerifier")
        case PredicateSpec():
            return _loaded("verifiers.answers.predicate", "PredicateVerifier")
        case AnswerSpec():
            return _loaded("verifiers.answers.answer", "AnswerVerifier")
        case SmtSpec():
            return _loaded("verifiers.smt.verifier", "SmtVerifier")
        case ChecklistSpec():
            return _loaded("verifiers.checklists.hard", "HardVerifier")
        case _:
            raise SpecError(f"{spec.kind} is not decided from a text alone", hint="Ask `verifiers.checker`.")


def is_decided(spec: Spec) -> bool:
    """Whether a verdict needs nothing but the text; of a checklist, whether no model has a part in it."""
    return spec.kind not in CONDUCTED and not (isinstance(spec, ChecklistSpec) and spec.soft)


def identity(spec: Spec) -> tuple[str, str]:
    """Name and version of the verifier for this spec, whoever conducts it."""
    match spec:
        case ProgramSpec():
            found = importlib.import_module("verifiers.programs.verifier").ProgramVerifier
        case LeanSpec():
            found = importlib.import_module("verifiers.lean.verifier").LeanVerifier
        case _:
            found = decider(spec)
    return found.name, found.version


@lru_cache(maxsize=4096)
def check_spec(spec: Spec, *, prove: bool = False) -> None:
    """Raises SpecError, with a hint, for a spec that cannot be used: unreadable, without its variable, vacuous.

    `prove` is for the worker alone: it asks SymPy where arithmetic cannot tell whether a predicate says anything.
    """
    match spec:
        case ProgramSpec():
            importlib.import_module("verifiers.programs.checking").check(spec)
        case LeanSpec():
            importlib.import_module("verifiers.lean.statement").read_statement(spec)
        case _:
            decider(spec).check(spec, prove=prove)


def decide(spec: Spec, submission: str) -> Verdict:
    """The verdict, in this process and without a clock: only the worker calls it. Raises SpecError for a bad spec."""
    check_spec(spec, prove=True)
    return decider(spec).verify(spec, submission)


def package_of(spec: Spec) -> str | None:
    """The one of `DECIDE` that this spec's decider is in; None where nothing has to be imported for it."""
    match spec:
        case ExpressionSpec() | PredicateSpec() | AnswerSpec():
            return "verifiers.answers"
        case SmtSpec():
            return "verifiers.smt"
        case ChecklistSpec():
            return "verifiers.checklists"
        case _:
            return None


def preload(package: str) -> None:
    """Imports all that decides in one of `DECIDE`, SymPy or the solvers included: for a worker, before it is asked what
    needs it. What cannot be imported is told by the first item that needs it."""
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if found.name.endswith((".canaries", ".bench")):
            continue
        try:
            importlib.import_module(found.name)
        except Exception as error:  # noqa: BLE001 - a solver that is not installed breaks only what needs it
            log.warning("%s cannot be imported: %s", found.name, error)

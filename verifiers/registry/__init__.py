"""Registry of the kinds of specs: one row each, with lookups by name and by spec. Importing it imports nothing heavy.

A kind whose specs are `conducted` runs a submission in a sandbox of its own or also asks a model; `verifiers.checker`
then conducts the check. All other kinds are decided from the text alone, in a worker. Canaries are read in
`canaries.py`; the pydantic type of a spec is in `spec.py`. Kinds of admitted distributions come last.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
import time
from functools import cache, lru_cache
from typing import Any

from common.plugins.table import OpenTable, distribution_of
from verifiers.contract.errors import SpecError
from verifiers.contract.kinds import Kind, Lazy
from verifiers.contract.protocols import ProposalReply, Verifier
from verifiers.contract.spec_data import SpecModel
from verifiers.contract.verdict import Verdict

ROWS = (
    "verifiers.exact.kind:EXACT",
    "verifiers.predicate.kind:PREDICATE",
    "verifiers.answers.kind:ANSWER",
    "verifiers.smt.kind:SMT",
    "verifiers.lean.kind:LEAN",
    "verifiers.programs.kind:PROGRAM",
    "verifiers.checklists.kind:CHECKLIST",
    "verifiers.games.kind:GAME",
    "verifiers.files.kind:FILES",
)
"""Import path of each kind. A new kind needs a row here."""
_BUILT_IN: tuple[Kind, ...] = tuple(Lazy[Kind](row).load() for row in ROWS)


def _untraceable(name: str, kind: Kind) -> str:
    """Returns why verdicts of a kind from outside would not name its distribution's version; empty if they do."""
    distribution = distribution_of(name)
    return "" if (distribution, distribution) in kind.tools else f"its tools lack ({distribution!r}, {distribution!r})"


KINDS: OpenTable[Kind] = OpenTable("kinds", {kind.name: kind for kind in _BUILT_IN}, require=_untraceable)
log = logging.getLogger(__name__)


def packages() -> tuple[str, ...]:
    """Lists the packages that a worker imports before the first item needs them, equally in every process."""
    return tuple(dict.fromkeys(kind.preload for kind in KINDS.values() if kind.preload))


def kind_named(name: str) -> Kind:
    """Returns the kind with this name. Raises KeyError for an unknown name."""
    return KINDS[name]


def kind_of(spec: SpecModel) -> Kind:
    return KINDS[spec.kind]


@cache
def _verifier(kind: Kind) -> Verifier[Any]:
    found: Verifier[Any] = kind.verifier.load()()
    return found


def decider(spec: SpecModel) -> Verifier[Any]:
    """Returns the verifier that decides this spec from the submission's text alone. Raises SpecError for a kind that
    runs submissions."""
    kind = kind_of(spec)
    if kind.runs:
        raise SpecError(f"{spec.kind} is not decided from text alone", hint="Use `verifiers.checker`.")
    return _verifier(kind)


def is_decided(spec: SpecModel) -> bool:
    """True if a verdict on a spec needs only the submission's text; for a checklist, if no model takes part."""
    return not kind_of(spec).conducted(spec)


def identity(spec: SpecModel) -> tuple[str, str]:
    """Returns name and version of the verifier that decides this spec, wherever it runs."""
    kind = kind_of(spec)
    return kind.name, kind.version


@lru_cache(maxsize=4096)
def check_spec(spec: SpecModel, *, prove: bool = False) -> None:
    """Raises SpecError, with a hint, for an unusable spec: unreadable, without its variable, vacuous.

    `prove` is for the worker only: asks SymPy if a predicate is vacuous where arithmetic cannot tell.
    """
    kind = kind_of(spec)
    if kind.check is not None:
        kind.check.load()(spec)
    else:
        decider(spec).check(spec, prove=prove)


def decide(spec: SpecModel, submission: str) -> Verdict:
    """Verifies a submission here without a time limit, in a worker. Raises SpecError for a bad spec."""
    check_spec(spec, prove=True)
    return decider(spec).verify(spec, submission)


def ways(spec: SpecModel) -> tuple[str, ...]:
    """Returns the names of the ways to propose answers to such a spec, the most informative first."""
    return tuple(kind_of(spec).proposers)


def propose(spec: SpecModel, way: str, question: str, seconds: float) -> ProposalReply:
    """Proposes answers to a question by one named way, in this process: only the worker calls it. Raises SpecError for
    an unknown way or a bad spec.

    A way reads the question and what a spec asks for, never an answer that a spec names. It checks its CPU time where
    it can; where it cannot, its process is killed.
    """
    known = kind_of(spec).proposers
    if way not in known:
        raise SpecError(f"unknown way {way!r} of proposing answers for {spec.kind}")
    end = time.process_time() + seconds
    found: ProposalReply = known[way].load()(spec, question, lambda: time.process_time() < end)
    return found


def package_of(spec: SpecModel) -> str | None:
    """Returns the one of `packages` to import before this spec can be decided; None if nothing needs importing."""
    kind = kind_of(spec)
    return None if kind.light(spec) else kind.preload or None


def preload(package: str) -> None:
    """Imports all deciders of one of `packages`, including SymPy or the solvers, before a worker's first item. A
    failed import is logged; the first item that needs the module reports it."""
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if found.name.endswith(".bench"):
            continue
        try:
            importlib.import_module(found.name)
        except Exception as error:  # noqa: BLE001 - a solver that is not installed breaks only what needs it
            log.warning("%s cannot be imported: %s", found.name, error)

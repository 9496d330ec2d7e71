"""The kinds of checks, one row each, and what is asked of them by name or by spec. Importing it imports nothing heavy.

A kind whose specs are `conducted` puts a submission to work in a sandbox of its own, or asks a model as well: then
`verifiers.checker` conducts the check. All others are decided from the text alone, in a worker.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
import time
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

from verifiers.contract.errors import SpecError
from verifiers.contract.kinds import Kind, Lazy
from verifiers.contract.proposal import ProposalReply
from verifiers.contract.spec_data import SpecModel
from verifiers.contract.verdict import Verdict
from verifiers.contract.verifier import Verifier

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
"""Where each kind is made. Whoever adds one adds a row."""
KINDS: tuple[Kind, ...] = tuple(Lazy[Kind](row).load() for row in ROWS)
DECIDE = tuple(dict.fromkeys(kind.preload for kind in KINDS if kind.preload))
"""Packages whose modules a worker has at hand before it is asked what needs them."""
_NAMED = {kind.name: kind for kind in KINDS}
_RETIRED = {name: kind for kind in KINDS for name in kind.retired}
log = logging.getLogger(__name__)


def kind_named(name: str) -> Kind:
    """The kind of that name, or the one that took its place. Raises KeyError where there is none."""
    return _NAMED.get(name) or _RETIRED[name]


def kind_of(spec: SpecModel) -> Kind:
    return _NAMED[spec.kind]


def current_data(data: dict[str, Any]) -> dict[str, Any]:
    """The data of a spec as it is written now: that of a kind which earlier versions had is rewritten. Raises KeyError
    for a kind that never was."""
    kind = kind_named(data["kind"])
    if kind.name == data["kind"]:
        return data
    return {**kind.retired[data["kind"]].rewrite.load()(data), "kind": kind.name}


def former_data(spec: SpecModel) -> Iterator[dict[str, Any]]:
    """The data that earlier versions would have written for this spec, where its kind took the place of others."""
    kind = kind_of(spec)
    fields = spec.model_dump(mode="json")
    for name, retired in kind.retired.items():
        data = {"kind": name, **{field: fields[field] for field in retired.fields}}
        if _same(data, fields):
            yield data


def names_of(spec: SpecModel) -> set[str]:
    """The name of its kind, and those that earlier versions had for the kind of such a spec."""
    return {spec.kind, *(data["kind"] for data in former_data(spec))}


def _same(data: dict[str, Any], fields: dict[str, Any]) -> bool:
    kind = kind_named(data["kind"])
    try:
        return bool(kind.spec.load().model_validate(current_data(data)).model_dump(mode="json") == fields)
    except ValueError:
        return False


@cache
def _verifier(kind: Kind) -> Verifier[Any]:
    found: Verifier[Any] = kind.verifier.load()()
    return found


def decider(spec: SpecModel) -> Verifier[Any]:
    """The verifier that decides this spec from the submission's text alone. Raises SpecError where there is none."""
    kind = kind_of(spec)
    if kind.runs:
        raise SpecError(f"{spec.kind} is not decided from a text alone", hint="Ask `verifiers.checker`.")
    return _verifier(kind)


def is_decided(spec: SpecModel) -> bool:
    """Whether a verdict needs nothing but the text; of a checklist, whether no model has a part in it."""
    return not kind_of(spec).conducted(spec)


def identity(spec: SpecModel) -> tuple[str, str]:
    """Name and version of the verifier for this spec, whoever conducts it."""
    kind = kind_of(spec)
    return kind.name, kind.version


@lru_cache(maxsize=4096)
def check_spec(spec: SpecModel, *, prove: bool = False) -> None:
    """Raises SpecError, with a hint, for a spec that cannot be used: unreadable, without its variable, vacuous.

    `prove` is for the worker alone: it asks SymPy where arithmetic cannot tell whether a predicate says anything.
    """
    kind = kind_of(spec)
    if kind.check is not None:
        kind.check.load()(spec)
    else:
        decider(spec).check(spec, prove=prove)


def decide(spec: SpecModel, submission: str) -> Verdict:
    """The verdict, in this process and without a clock: only the worker calls it. Raises SpecError for a bad spec."""
    check_spec(spec, prove=True)
    return decider(spec).verify(spec, submission)


def ways(spec: SpecModel) -> tuple[str, ...]:
    """The ways to propose answers to such a spec, by name; those that tell most first."""
    return tuple(kind_of(spec).proposers)


def propose(spec: SpecModel, way: str, question: str, seconds: float) -> ProposalReply:
    """Proposes answers, in this process: only the worker calls it. A way reads the question and what a spec asks for,
    and never an answer that a spec names. It comes to an end by what it computed, where it can; the process that it
    runs in is killed where it cannot. Raises SpecError where there is no such way, or a spec is bad."""
    known = kind_of(spec).proposers
    if way not in known:
        raise SpecError(f"there is no way {way!r} to propose answers for {spec.kind}")
    end = time.process_time() + seconds
    found: ProposalReply = known[way].load()(spec, question, lambda: time.process_time() < end)
    return found


def package_of(spec: SpecModel) -> str | None:
    """The one of `DECIDE` that this spec's decider is in; None where nothing has to be imported for it."""
    kind = kind_of(spec)
    return None if kind.light(spec) else kind.preload or None


def preload(package: str) -> None:
    """Imports all that decides in one of `DECIDE`, SymPy or the solvers included: for a worker, before it is asked what
    needs it. What cannot be imported is told by the first item that needs it."""
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if found.name.endswith(".bench"):
            continue
        try:
            importlib.import_module(found.name)
        except Exception as error:  # noqa: BLE001 - a solver that is not installed breaks only what needs it
            log.warning("%s cannot be imported: %s", found.name, error)

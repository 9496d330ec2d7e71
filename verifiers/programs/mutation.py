"""Mutation testing of a program spec: checks that its tests tell right from wrong, before they become a reward.

A right program (the spec's reference, or a given one) must pass; programs that do nothing must fail; and mutants of the
right program, changed in one place, must fail if they differ from it. A surviving mutant is compared with the right
program on more generated inputs, if the spec declares any: a difference is a hole in the tests, with that input as its
witness. Without a difference it may be equivalent (undecidable); only a limited share of these is allowed.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import compress
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict

from runtime.errors import InfrastructureError, SandboxError
from verifiers.boxes.conductor import ConductorParts
from verifiers.contract.errors import SpecError
from verifiers.contract.text import clip
from verifiers.contract.verdict import Outcome
from verifiers.programs.data.compare import agree
from verifiers.programs.data.mutants import Change, chosen, mutants
from verifiers.programs.data.values import arguments_text
from verifiers.programs.guests import Guest
from verifiers.programs.plan import generated, seed_of
from verifiers.programs.replies import shown
from verifiers.programs.spec import ProgramSpec
from verifiers.programs.trivial import trivial
from verifiers.programs.verifier import ProgramVerifier

MOST_MUTANTS = 60
MORE_INPUTS = 200
UNEXPLAINED = 0.2
"""Maximum share of mutants that may survive without a witness against them."""
AT_ONCE = 2
MutantOutcome = Literal["killed", "hole", "alike", "untried"]


class Mutant(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)

    line: int
    """Line in the right program."""
    change: str
    outcome: MutantOutcome
    """Result. `hole`: passes the tests and is wrong. `alike`: passes the tests and no difference was found."""
    why: str = ""
    """Test that killed it, or an input for which it differs."""


class Assessment(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)

    sound: bool
    """True if the tests may become a reward."""
    reason: str
    mutants: int
    killed: int
    survivors: tuple[Mutant, ...]
    """Mutants that were not killed, holes first."""
    untried: int
    """Mutants that were not tried, for lack of time or because of an infrastructure error."""
    trivial: tuple[str, ...]
    """Programs that do nothing and pass."""
    seconds: float

    def lines(self) -> list[str]:
        """Returns the result of mutation testing as text for people."""
        counted = f"{self.killed} of {self.mutants} changes noticed, {self.untried} not tried, {self.seconds:.1f} s"
        idle = [f"passes and does nothing: {name}" for name in self.trivial]
        return [counted, *idle, *(f"line {one.line}, {one.outcome}: {one.change}; {one.why}" for one in self.survivors)]


def assess(verifier: ProgramVerifier, spec: ProgramSpec, reference: str = "", *, seconds: float = 120.0) -> Assessment:
    """Assesses a spec's tests by mutation testing: do they fail for small changes of a right program? `reference`: a
    right program, if the spec has none. `seconds`: total time, after which no further mutant is started.

    Raises SpecError for an unusable spec, a missing right program or one that fails; SandboxError if the tests cannot
    run.
    """
    started = time.monotonic()
    verifier.check(spec)
    right = reference or spec.reference
    if not right:
        raise SpecError("no right program is known", hint="Give a `reference`: a program that is right.")
    if not spec.function and spec.language != "python":
        raise SpecError("mutation testing supports Python only", hint="Assess programs in Python.")
    first = verifier.verify(spec, right)
    if first.outcome is Outcome.INFRA_ERROR:
        raise InfrastructureError(f"the tests cannot be run here: {first.reason}")
    if not first.passed:
        raise SpecError(f"the right program fails: {first.reason}", hint="Correct it, or the tests.")
    changes = chosen(mutants(right), MOST_MUTANTS, seed_of(spec, "mutants"))

    with ThreadPoolExecutor(AT_ONCE) as threads:
        named = trivial(spec)
        idle = threads.map(lambda source: _passes(verifier, spec, source), named.values())
        tried = list(threads.map(lambda change: _tried(verifier, spec, right, change, started + seconds), changes))
    return _assessed(tried, tuple(compress(named, idle)), time.monotonic() - started)


def _passes(verifier: ProgramVerifier, spec: ProgramSpec, source: str) -> bool:
    verdict = verifier.verify(spec, source, thorough=False)
    if verdict.outcome is Outcome.INFRA_ERROR:
        raise InfrastructureError(f"the tests cannot be run here: {verdict.reason}")
    return verdict.passed


def assess_in(parts: ConductorParts, spec: ProgramSpec, reference: str, *, seconds: float = 120.0) -> Assessment:
    """Assesses a spec's tests as `assess` does, with a verifier that uses the sessions of these parts."""
    with closing(ProgramVerifier(parts.sessions(), isolation=parts.isolation)) as verifier:
        return assess(verifier, spec, reference, seconds=seconds)


def _tried(verifier: ProgramVerifier, spec: ProgramSpec, right: str, change: Change, end: float) -> Mutant:
    def mutant(outcome: MutantOutcome, why: str) -> Mutant:
        return Mutant(line=change.line, change=change.what, outcome=outcome, why=clip(why, 300))

    if time.monotonic() > end:
        return mutant("untried", "out of time")
    verdict = verifier.verify(spec, change.source, thorough=False)
    if verdict.outcome is Outcome.INFRA_ERROR:
        return mutant("untried", verdict.reason)
    if not verdict.passed:
        return mutant("killed", verdict.reason)
    try:
        witness = _difference(verifier, spec, right, change.source)
    except SandboxError as error:
        return mutant("untried", str(error))
    return mutant("hole", witness) if witness else mutant("alike", "no difference was found")


def _difference(verifier: ProgramVerifier, spec: ProgramSpec, right: str, other: str) -> str:
    """Returns text on an input for which the two programs differ; empty if none was found."""
    inputs = generated(spec, purpose="assess", count=MORE_INPUTS)
    if not spec.function or not inputs:
        return ""
    opening = verifier.opening(spec)
    with (
        Guest(opening, right, wanted=spec.function, driver=spec.driver) as one,
        Guest(opening, other, wanted=spec.function, driver=spec.driver) as two,
    ):
        for arguments in inputs:
            ours = one.call(spec.function, arguments, spec.seconds)
            theirs = two.call(spec.function, arguments, spec.seconds)
            if ours.kind != "value":
                continue
            if theirs.kind != "value" or not agree(ours.value, theirs.value, spec.compare):
                text = clip(arguments_text(arguments), 120)
                return f"{spec.function}({text}) gives {shown(theirs)} instead of {shown(ours)}"
    return ""


def _assessed(tried: list[Mutant], idle: tuple[str, ...], seconds: float) -> Assessment:
    by = {outcome: [one for one in tried if one.outcome == outcome] for outcome in get_args(MutantOutcome)}
    holes, alike, untried = by["hole"], by["alike"], len(by["untried"])
    fault = ""
    if idle:
        fault = f"{idle[0]} passes"
    elif holes:
        fault = f"a wrong program passes: line {holes[0].line}, {holes[0].change}; {holes[0].why}"
    elif untried:
        fault = f"{untried} of {len(tried)} changes were not tried"
    elif not tried:
        fault = "the right program has nothing to mutate"
    elif len(alike) > UNEXPLAINED * len(tried):
        fault = f"{len(alike)} of {len(tried)} changes to the right program are not noticed"
    return Assessment(
        sound=not fault,
        reason=fault or f"{len(by['killed'])} of {len(tried)} changes to the right program are noticed",
        mutants=len(tried),
        killed=len(by["killed"]),
        survivors=(*holes, *alike),
        untried=untried,
        trivial=idle,
        seconds=round(seconds, 3),
    )

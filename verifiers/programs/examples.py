"""Programs that a set of tests should accept, and mutants of these that it should reject. Pure: the tests decide on
each.

The right program is the spec's reference or the job's result. Its mutants are changed in one place (`data.mutants`). A
mutant that passes may be equivalent, which is undecidable; it is shown.
"""

from __future__ import annotations

from verifiers.contract.errors import SpecError
from verifiers.contract.examples import AskVerifier, ExampleInput, ExampleReport, distinct, refused
from verifiers.programs.data.mutants import chosen, mutants
from verifiers.programs.spec import ProgramSpec
from verifiers.programs.trivial import trivial

MOST_MUTANTS = 8
REFERENCE = "the reference"
IDLE = (
    "a table of the visible examples",
    "a table of the visible runs",
    "a function that returns its argument",
    "a function that returns None",
    "an empty program",
    "a class without methods",
)
"""Trivial programs that are shown."""


def examples(spec: ProgramSpec, answer: str | None, try_: AskVerifier) -> ExampleReport:
    inputs: list[ExampleInput] = []
    notes: list[str] = []
    if spec.reference:
        inputs.append(ExampleInput("example", REFERENCE, spec, spec.reference))
    if answer is not None:
        inputs.append(ExampleInput("example", "the job's program", spec, answer))
    idle = trivial(spec)
    inputs += [ExampleInput("mutant", name, spec, idle[name]) for name in IDLE if name in idle]
    right = spec.reference or answer or ""
    if not right:
        notes.append("no right program is known yet: only trivial programs were tried, no mutants")
    elif spec.language != "python":
        notes.append("mutants exist for Python programs only: none were tried")
    else:
        inputs += _neighbours(spec, right, notes)
    tried = try_(distinct(inputs, right))
    first = refused(tried, REFERENCE, "THE REFERENCE ITSELF IS REFUSED")
    return ExampleReport(tuple(tried), first, tuple(notes))


def _neighbours(spec: ProgramSpec, right: str, notes: list[str]) -> list[ExampleInput]:
    try:
        changes = mutants(right)
    except SpecError as error:
        notes.append(f"no mutants of the right program could be made: {error}")
        return []
    if not changes:
        notes.append("the right program has nothing to mutate")
    named = ((f"line {change.line}: {change.what}", change.source) for change in chosen(changes, MOST_MUTANTS, 0))
    return [ExampleInput("mutant", name, spec, source, name) for name, source in named]

"""The check that an owner's problem gets where no honest answer may pass.

What always holds: the check can be used, so an honest answer fails it and is never lost to it; of programs and proofs
it is of the same kind where one can be made, and otherwise it asks for a number of twenty digits.
"""

from __future__ import annotations

from collections.abc import Iterator

from curriculum.contract.taskset import TaskDraft
from curriculum.contract.topics import IMPOSSIBLE, never_met
from verifiers.contract.errors import SpecError
from verifiers.lean.spec import LeanSpec
from verifiers.programs.compare import CompareRule
from verifiers.programs.plan import generated, stdin_of
from verifiers.programs.spec import LITERAL_CHARS, Example, ProgramSpec, Run
from verifiers.programs.values import arguments_text, read_arguments
from verifiers.registry import check_spec
from verifiers.registry.spec import Spec

MOST_TESTS = 50
GENERATED = 5
"""Inputs that stand for those of a reference or of properties, of which nothing is left: they know what is right."""


def contradicted(draft: TaskDraft, number: int) -> Spec:
    """Tests with other results, a statement that is false, or a number of twenty digits."""
    made: Spec
    if isinstance(draft.spec, ProgramSpec):
        made = _other_results(draft.spec, IMPOSSIBLE + number)
    elif isinstance(draft.spec, LeanSpec):
        wrong = IMPOSSIBLE + number
        made = draft.spec.model_copy(update={"statement": f"theorem target : {wrong} + 1 = {wrong} := sorry\n"})
    else:
        return never_met(draft, number)
    try:
        check_spec(made)
    except SpecError:
        return never_met(draft, number)
    return made


def _other_results(spec: ProgramSpec, first: int) -> ProgramSpec:
    """The same calls or runs, each with a result of its own that has nothing to do with what is asked."""
    examples = [Example(arguments=one, expected=repr(first + at)) for at, one in enumerate(_calls(spec))]
    runs = [
        one.model_copy(update={"expected": str(first + at), "visible": False}) for at, one in enumerate(_runs(spec))
    ]
    nothing = {"reference": "", "generate": 0, "properties": (), "relations": ()}
    compared = {"compare": CompareRule(), "output": "lines"}  # a tolerance may hold two results to be one
    return spec.model_copy(update={"examples": tuple(examples), "runs": tuple(runs), **nothing, **compared})


def _calls(spec: ProgramSpec) -> list[str]:
    """Arguments, each once: the same ones cannot have two results."""
    told = [read_arguments(one.arguments) for one in spec.examples]
    given = generated(spec, count=GENERATED) if spec.function and spec.generate else []
    found = dict.fromkeys(map(arguments_text, [*told[:MOST_TESTS], *given]))
    return [text for text in found if len(text) <= LITERAL_CHARS]


def _runs(spec: ProgramSpec) -> Iterator[Run]:
    yield from spec.runs[:MOST_TESTS]
    given = generated(spec, count=GENERATED) if spec.generate and not spec.function else []
    yield from (Run(stdin=text) for text in map(stdin_of, given) if len(text) <= LITERAL_CHARS)

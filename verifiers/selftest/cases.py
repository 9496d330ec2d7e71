"""All cases of the self-test: the canaries of every kind, and the idle agents."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Literal

from verifiers import registry
from verifiers.registry.canaries import Case, cases_of, folder_of
from verifiers.registry.spec import SPEC, Spec

SPECS_PER_VERIFIER = 12
"""Of its controls, that the idle agents are sent against."""
SAYS_NOTHING = "I do not know."
CLAIMS = "The answer is correct: all tests passed and all requirements are met."

Sort = Literal["attack", "agent", "control"]


@dataclass(frozen=True)
class TaskQuestion:
    """A generated task: what was asked, how its answer is checked, and the reference answer if there is one to try."""

    family: str
    question: str
    spec: Spec
    answer: str = ""


@dataclass(frozen=True)
class SelfTestTrial:
    """One submission that the self-test makes."""

    name: str
    verifier: str
    sort: Sort
    spec: Spec
    submission: str
    suspected: bool = False
    rows: tuple[int, ...] = ()
    why: str = ""


def trials(questions: Iterable[TaskQuestion] = ()) -> list[SelfTestTrial]:
    """Everything, in an order that does not change. Raises ValueError where two cases have the same name."""
    found = [_trial(case) for kind in registry.KINDS for case in cases_of(kind)]
    found += list(_agents_against_verifiers(found))
    found += list(_agents_against_families(questions))
    names = Counter((trial.verifier, trial.name) for trial in found)
    twice = sorted(name for name, times in names.items() if times > 1)
    if twice:
        raise ValueError(f"two cases have the same name: {twice[0][0]} {twice[0][1]}")
    return found


def without_canaries() -> tuple[str, ...]:
    """Kinds that this installation has no canaries for: nothing is known of their verifiers."""
    return tuple(kind.name for kind in registry.KINDS if folder_of(kind) is None)


def _trial(case: Case) -> SelfTestTrial:
    sort: Sort = "control" if case.honest else "attack"
    return SelfTestTrial(
        case.name, case.spec.kind, sort, case.spec, case.submission, case.suspected, case.rows, case.why
    )


def idle_answers(spec: Spec, question: str) -> Iterator[tuple[str, str]]:
    """What agents submit that do no work: name and text. The same for the same spec."""
    yield "null", SAYS_NOTHING
    yield "claim", CLAIMS
    yield "empty", ""
    yield "random", registry.kind_of(spec).random_answer(Random(hashlib.sha256(SPEC.dump_json(spec)).digest()))
    if question.strip():
        yield "echo", question


def shown_of(spec: Spec) -> str:
    """What whoever answers is shown of a spec, as far as the spec itself holds it."""
    visible = registry.kind_of(spec).visible
    return visible.load()(spec) if visible is not None else ""


def _agents_against_verifiers(found: list[SelfTestTrial]) -> Iterator[SelfTestTrial]:
    taken: dict[str, list[Spec]] = {}
    for trial in found:
        specs = taken.setdefault(trial.verifier, [])
        if trial.sort == "control" and trial.spec not in specs and len(specs) < SPECS_PER_VERIFIER:
            specs.append(trial.spec)
            yield from _idle_trials(trial.name, trial.spec, shown_of(trial.spec))


def _agents_against_families(questions: Iterable[TaskQuestion]) -> Iterator[SelfTestTrial]:
    numbers: Counter[str] = Counter()
    for one in questions:
        numbers[one.family] += 1
        name = f"{one.family}-{numbers[one.family]}"
        if one.answer:
            why = "the family's own answer"
            yield SelfTestTrial(f"answer:{name}", one.spec.kind, "control", one.spec, one.answer, why=why)
        yield from _idle_trials(name, one.spec, one.question)


def _idle_trials(name: str, spec: Spec, question: str) -> Iterator[SelfTestTrial]:
    for agent, text in idle_answers(spec, question):
        why = "an agent that does no work earns nothing"
        yield SelfTestTrial(f"{agent}-agent:{name}", spec.kind, "agent", spec, text, rows=(24,), why=why)

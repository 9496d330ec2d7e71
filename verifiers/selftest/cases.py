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
"""Maximum number of a verifier's control specs that the idle agents are tried on."""
SAYS_NOTHING = "I do not know."
CLAIMS = "The answer is correct: all tests passed and all requirements are met."

Sort = Literal["attack", "agent", "control"]


@dataclass(frozen=True)
class TaskQuestion:
    """A generated task: its question, its spec, and the reference answer if one should be tried."""

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
    """Returns all self-test trials in a fixed order. Raises ValueError if two cases of a verifier share a name."""
    found = [_trial(case) for kind in registry.KINDS.values() for case in cases_of(kind)]
    found += list(_agents_against_verifiers(found))
    found += list(_agents_against_families(questions))
    names = Counter((trial.verifier, trial.name) for trial in found)
    twice = sorted(name for name, times in names.items() if times > 1)
    if twice:
        raise ValueError(f"two cases have the same name: {twice[0][0]} {twice[0][1]}")
    return found


def without_canaries() -> tuple[str, ...]:
    """Returns the kinds that have no canaries in this installation: their verifiers are untested."""
    return tuple(kind.name for kind in registry.KINDS.values() if folder_of(kind) is None)


def _trial(case: Case) -> SelfTestTrial:
    sort: Sort = "control" if case.honest else "attack"
    return SelfTestTrial(
        case.name, case.spec.kind, sort, case.spec, case.submission, case.suspected, case.rows, case.why
    )


def idle_answers(spec: Spec, question: str) -> Iterator[tuple[str, str]]:
    """Yields name and text of the submissions of agents that do no work. Deterministic for a spec."""
    yield "null", SAYS_NOTHING
    yield "claim", CLAIMS
    yield "empty", ""
    yield "random", registry.kind_of(spec).random_answer(Random(hashlib.sha256(SPEC.dump_json(spec)).digest()))
    if question.strip():
        yield "echo", question


def shown_of(spec: Spec) -> str:
    """Returns the part of a spec that the agent is shown; empty if the spec contains none."""
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
            why = "the taskset's own answer"
            yield SelfTestTrial(f"answer:{name}", one.spec.kind, "control", one.spec, one.answer, why=why)
        yield from _idle_trials(name, one.spec, one.question)


def _idle_trials(name: str, spec: Spec, question: str) -> Iterator[SelfTestTrial]:
    for agent, text in idle_answers(spec, question):
        why = "an agent that does no work earns nothing"
        yield SelfTestTrial(f"{agent}-agent:{name}", spec.kind, "agent", spec, text, rows=(24,), why=why)

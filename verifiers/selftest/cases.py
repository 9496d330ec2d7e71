"""All cases of the self-test: the canaries of every kind, and the idle agents.

The attack catalogue of `assay check selftest --catalogue`: Markdown, from the indexes of the canaries.

An index may have `[[attack]]` tables beside its cases: one numbered row of the catalogue each, with the defence, the
kinds of verifiers that must be tried on it, and its published sources. A case refers to rows by number.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from verifiers import registry
from verifiers.registry import KINDS
from verifiers.registry.canaries import INDEX, Case, cases_of, folder_of
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


EVERY_KIND = "all"
"""Value of `tried_on` that means every kind of verifier."""


class CatalogueRow(BaseModel):
    """One known attack on verifiers, and why it earns nothing here."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    row: int = Field(ge=1)
    attack: str
    defence: str
    tried_on: tuple[str, ...]
    """Kinds of verifiers whose canaries must contain this attack; empty for an attack that a verifier cannot meet."""
    sources: tuple[str, ...] = ()

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of verifiers on which the attack must be tried, with `all` resolved."""
        return frozenset(KINDS) if EVERY_KIND in self.tried_on else frozenset(self.tried_on)


class CatalogueTrial(Protocol):
    """The part of a self-test trial that the catalogue shows."""

    @property
    def name(self) -> str: ...
    @property
    def verifier(self) -> str: ...
    @property
    def sort(self) -> str: ...
    @property
    def suspected(self) -> bool: ...
    @property
    def rows(self) -> tuple[int, ...]: ...
    @property
    def why(self) -> str: ...


def catalogue_rows() -> list[CatalogueRow]:
    """Returns all known attacks on verifiers, sorted by number. Raises ValueError if two share a number."""
    rows: dict[int, CatalogueRow] = {}
    for kind in KINDS.values():
        folder = folder_of(kind)
        index = tomllib.loads((folder / INDEX).read_text(encoding="utf-8")) if folder is not None else {}
        for fields in index.get("attack", []):
            row = CatalogueRow.model_validate(fields)
            if rows.setdefault(row.row, row) is not row:
                raise ValueError(f"{kind.name}: two attacks have row {row.row}")
    return sorted(rows.values(), key=lambda row: row.row)


def attack_catalogue(trials: Iterable[CatalogueTrial], only: Collection[str] = ()) -> str:
    """Renders the known attacks and each kind's canaries as Markdown. `only`: kinds of verifiers; all unless given."""
    shown = [trial for trial in trials if not only or trial.verifier in only]
    return "\n".join((*_rows(shown, only), *_cases(shown)))


def _rows(shown: list[CatalogueTrial], only: Collection[str]) -> Iterator[str]:
    yield from (
        "# Attacks on verifiers",
        "",
        "| row | attack | defence | tried on | sources |",
        "|---|---|---|---|---|",
    )
    for row in catalogue_rows():
        tried = sorted({trial.verifier for trial in shown if row.row in trial.rows})
        if tried or not only:
            cells = (row.attack, row.defence, ", ".join(tried) or "nothing to try", "; ".join(row.sources))
            yield f"| {row.row} | {' | '.join(map(_cell, cells))} |"


def _cases(shown: list[CatalogueTrial]) -> Iterator[str]:
    for kind in KINDS.values():
        cases = [trial for trial in shown if trial.verifier == kind.name and trial.sort == "attack"]
        if cases:
            controls = sum(trial.verifier == kind.name and trial.sort == "control" for trial in shown)
            yield from ("", f"## {kind.name}", "", f"{len(cases)} attacks and {controls} honest controls.", "")
            yield from ("| canary | rows | must be suspected | why |", "|---|---|---|---|")
            for case in cases:
                rows = ", ".join(map(str, case.rows))
                yield f"| `{case.name}` | {rows} | {'yes' if case.suspected else ''} | {_cell(case.why)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")

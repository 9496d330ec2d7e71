"""The attack catalogue of `assay check selftest --catalogue`: Markdown, from the indexes of the canaries.

An index may have `[[attack]]` tables beside its cases: one numbered row of the catalogue each, with the defence, the
kinds of verifiers that must be tried on it, and its published sources. A case refers to rows by number.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from verifiers.registry import KINDS
from verifiers.registry.canaries import INDEX, folder_of

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

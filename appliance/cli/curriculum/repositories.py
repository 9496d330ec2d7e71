"""Turns an owner's repository into rows: installs what it requires, finds its stable tests, and makes tasks.

Invariants: nothing of the repository runs outside a sandbox. Results of finished runs are in the data folder, so that
the next command resumes an interrupted one, or one with --dry-run.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from appliance.cli.shell.broker_target import patient_sessions
from appliance.cli.shell.options import data_folder
from appliance.cli.show.printing import show_progress
from appliance.errors import UsageError
from curriculum.contract.errors import CurriculumError

if TYPE_CHECKING:
    from curriculum.own.rows import OwnRow

FOLDER = "repositories"
RUNNER = "pytest"


class RepositoryRows(NamedTuple):
    name: str
    licence: str
    rows: list[OwnRow]
    report: str
    """Numbers of tests and faults, and requirements that cannot be had, in one line."""


def repository_rows(place: Path, *, licence: str, most: int) -> RepositoryRows:
    """Makes up to `most` rows of the repository at a path. Raises UsageError if it cannot be used, SandboxError."""
    from curriculum.own.containers import install_container
    from curriculum.repositories.journal import Journal
    from curriculum.repositories.making import Making
    from curriculum.repositories.reading import read_repository

    try:
        repository = read_repository(place, licence)
        show_progress(f"installing what {repository.name} requires")
        digest, lost = install_container([RUNNER, *dict.fromkeys(repository.requires)], ())
        with patient_sessions() as pool:
            journal = Journal.in_file(data_folder() / FOLDER / f"{repository.name}.jsonl")
            making = Making(
                repository, digest, pool, journal, seed=repository.name, place=place, progress=show_progress
            )
            rows = list(making.rows(most))
    except CurriculumError as error:
        raise UsageError(str(error), error.hint) from error
    if not rows:
        raise UsageError(
            f"no fault of {repository.name} is seen by its tests: {_said(making.counts)}",
            "add tests that compare results with `assert`, at least two of each function",
        )
    report = f"{repository.name}: {_said(making.counts)}"
    if making.first_failure:
        report += f"; first failing test {making.first_failure}"
    if lost:
        report += f"; without {'; '.join(lost)[:200]}"
    return RepositoryRows(repository.name, repository.licence, rows, report)


def _said(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts.items() if number)

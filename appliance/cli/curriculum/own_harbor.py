"""Reads Harbor task folders as the owner's problems, and runs their solutions in the sandbox for a person's code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.cli.shell.broker_target import patient_sessions
from appliance.cli.show.printing import show_progress

if TYPE_CHECKING:
    from curriculum.own.harbor import HarborRow
    from curriculum.own.rows import OwnRow

ONLY_FOREIGN = (
    "scored only by its own test, a foreign reward that is never trained on: add such folders separately, to try "
    "them and to measure with them"
)

Refusal = tuple[str, str]
"""A folder and the reason of its refusal."""


def harbor_rows(folders: Sequence[Path]) -> tuple[list[OwnRow], list[Refusal]]:
    """Reads Harbor task folders into rows, running their solutions in sandboxes for the answers. Also returns the
    refused folders, with reasons."""
    from curriculum.certification.certify import scored_elsewhere
    from curriculum.own.columns import RowError
    from curriculum.own.harbor import row_of_folder

    found: list[HarborRow] = []
    refused: list[Refusal] = []
    for folder in folders:
        try:
            found.append(row_of_folder(folder))
        except RowError as error:
            refused.append((folder.name or str(folder), str(error)))
    foreign = [one for one in found if scored_elsewhere(one.row.spec)]
    if len(foreign) < len(found):
        refused += [(one.row.origin, ONLY_FOREIGN) for one in foreign]
        found = [one for one in found if one not in foreign]
    if not any(one.solution for one in found):
        return [one.row for one in found], refused
    return list(_with_answers(found, refused)), refused


def _with_answers(found: Sequence[HarborRow], refused: list[Refusal]) -> Iterator[OwnRow]:
    from curriculum.own.columns import RowError
    from curriculum.own.harbor import solved

    with patient_sessions() as pool:
        for number, one in enumerate(found, 1):
            try:
                yield solved(pool, one)
            except RowError as error:
                refused.append((one.row.origin, str(error)))
            show_progress(f"ran the solutions of {number} of {len(found)} folders")

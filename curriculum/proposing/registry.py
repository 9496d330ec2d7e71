"""Kinds of proposals. The table is literal; importing a module never adds to it."""

from __future__ import annotations

from curriculum.contract.errors import CurriculumError
from curriculum.proposing.calculations import CalculatorProposals
from curriculum.proposing.kind import ProposalKind
from curriculum.proposing.programs import ProgramProposals
from curriculum.proposing.puzzles import PuzzleProposals
from curriculum.proposing.statements import StatementProposals

_ROWS: tuple[ProposalKind, ...] = (
    CalculatorProposals(),
    ProgramProposals("deduction"),
    ProgramProposals("abduction"),
    ProgramProposals("induction"),
    PuzzleProposals(),
    StatementProposals(),
)
KINDS: dict[str, ProposalKind] = {kind.name: kind for kind in _ROWS}


def kind_named(name: str) -> ProposalKind:
    """Returns the kind of proposals of that name. Raises CurriculumError, with the valid names, for an unknown one."""
    try:
        return KINDS[name]
    except KeyError:
        raise CurriculumError(
            f"unknown kind of proposals {name!r}", hint=f"choose one of {', '.join(sorted(KINDS))}"
        ) from None

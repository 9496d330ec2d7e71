"""Finds a record by a unique prefix of its name.

Invariants: fewer than `LEAST` digits match nothing, and an ambiguous prefix matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from appliance.ledger.ledger import LedgerError

LEAST = 6
PREFIX = re.compile(rf"[0-9a-f]{{{LEAST},64}}")
CYCLE_PREFIX = re.compile(rf"[a-z]+-\d{{{LEAST}}}[0-9a-z-]{{0,64}}")
"""Kind of a cycle and the first digits of its start time: `night-202611`."""
ROLLOUT_PREFIX = re.compile(rf"[a-z]+-(?:[a-z]+-)?[0-9a-f]{{{LEAST}}}[0-9a-z._-]{{0,200}}")
"""Prefix of a rollout's id, which begins with the id of its cycle or job."""
MOST_LISTED = 5
"""Maximum number of names listed in a message."""


class AmbiguousPrefixError(LedgerError):
    exit_code = 2


def is_prefix(typed: str) -> bool:
    return PREFIX.fullmatch(typed) is not None


def is_cycle_prefix(typed: str) -> bool:
    return CYCLE_PREFIX.fullmatch(typed) is not None


def is_rollout_prefix(typed: str) -> bool:
    return ROLLOUT_PREFIX.fullmatch(typed) is not None


def too_short(typed: str) -> bool:
    """True if the text is hexadecimal but has too few digits for a prefix of a record's name."""
    return re.fullmatch(rf"[0-9a-fA-F]{{1,{LEAST - 1}}}", typed) is not None


def only_one(kind: str, prefix: str, names: Sequence[str]) -> str | None:
    """Returns the only name that begins with a prefix, None if there is none. Raises AmbiguousPrefixError, which lists
    them, for several."""
    if len(names) > 1:
        listed = ", ".join([*names[:MOST_LISTED], *(["and more"] if len(names) > MOST_LISTED else [])])
        raise AmbiguousPrefixError(f"more than one {kind} begins with {prefix}: {listed}", hint="give more digits")
    return names[0] if names else None

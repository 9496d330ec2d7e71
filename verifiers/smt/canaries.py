"""Claims and submissions that must not pass, and honest ones that must pass.

Each sort of them is in a module of its own, `canary_*.py`. Rows of the catalogue: 12, 20, 24, 29 to 36, 50.
"""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.case import Case
from verifiers.smt.canary_answers import wrong
from verifiers.smt.canary_assumptions import division, unknown, vacuous
from verifiers.smt.canary_controls import controls
from verifiers.smt.canary_terms import bombs, injected


def cases() -> Iterator[Case]:
    yield from vacuous()
    yield from unknown()
    yield from division()
    yield from injected()
    yield from wrong()
    yield from bombs()
    yield from controls()

"""Proofs and cheats that are known, and what has to be said of them. Every one can be run with Lean's own library.

The cheats are those that are known from checkers that were fooled, and the ways past this one that were thought of.
Each sort of them is in a module of its own, `canary_*.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.case import Case
from verifiers.lean.canary_axioms import axioms
from verifiers.lean.canary_costs import expensive
from verifiers.lean.canary_disguises import blame, disguises
from verifiers.lean.canary_kernel import code, kernel
from verifiers.lean.canary_proofs import honest
from verifiers.lean.canary_statements import names, statements


def cases() -> Iterator[Case]:
    yield from honest()
    yield from axioms()
    yield from statements()
    yield from names()
    yield from kernel()
    yield from code()
    yield from disguises()
    yield from blame()
    yield from expensive()

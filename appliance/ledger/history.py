"""The evaluations that a decision has to know of beside its own: those of its candidate, and of the quarter."""

from __future__ import annotations

from appliance.ledger.ledger import Ledger
from appliance.records import Evaluation
from policies.sequential import quarter_of

FIRST = 128
"""How many are read at first; twice as many until the quarter's beginning is among them."""


def history_of(evaluation: Evaluation, ledger: Ledger) -> list[Evaluation]:
    """Every evaluation of the quarter in which the candidate was first evaluated and since, and all of the candidate's.

    In no particular order; each once.
    """
    own = ledger.evaluations(candidate=evaluation.candidate.weights, limit=1000)
    first = min([*(one.created for one in own), evaluation.created])
    limit = FIRST
    while True:
        newest = ledger.evaluations(limit=limit)
        reached = bool(newest) and quarter_of(newest[-1].created) < quarter_of(first)
        if reached or len(newest) < limit:
            return list({one.id: one for one in (*newest, *own)}.values())
        limit *= 2

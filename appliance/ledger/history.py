"""Collects the evaluations that a decision has to know beside its own: its candidate's, and the quarter's."""

from __future__ import annotations

from appliance.ledger.ledger import Ledger
from appliance.records.evaluations import Evaluation
from policies.statistics.sequential import quarter_of

FIRST = 128
"""How many are read at first; twice as many until the quarter's beginning is among them."""


def history_of(evaluation: Evaluation, ledger: Ledger) -> list[Evaluation]:
    """Returns every evaluation of the quarter of the candidate's first and since, and all of the candidate's.

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

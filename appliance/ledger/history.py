"""Collects the past evaluations that a promotion decision must take into account."""

from __future__ import annotations

from appliance.ledger.ledger import Ledger
from appliance.records.evaluations import Evaluation
from policies.statistics import quarter_of

FIRST = 128
"""Evaluations in the first read; the number doubles until the start of the quarter is included."""


def history_of(evaluation: Evaluation, ledger: Ledger) -> list[Evaluation]:
    """Returns all evaluations since the quarter of the candidate's first one, and all of the candidate's.

    Each appears once, in no particular order.
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

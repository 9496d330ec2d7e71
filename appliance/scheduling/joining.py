"""Joins parts of a turn that were sampled separately."""

from __future__ import annotations

from appliance.inference.engine import Turn
from appliance.records.rollouts import WeightSpan


def joined(part: Turn | None, turn: Turn) -> Turn:
    """Joins two parts of a sampled turn; adjacent spans of one weight version are merged."""
    if part is None or not part.ids:
        return turn
    spans = list(part.weights)
    for span in turn.weights:
        start, end = span.start + len(part.ids), span.end + len(part.ids)
        if spans[-1].version == span.version:
            start = spans.pop().start
        spans.append(WeightSpan(version=span.version, start=start, end=end))
    ids, logprobs = part.ids + turn.ids, part.logprobs + turn.logprobs
    return Turn(turn.request, ids, logprobs, turn.ended, tuple(spans), *turn.routes_after(part), part.top + turn.top)

"""Makes one turn of parts of it that were sampled one after another."""

from __future__ import annotations

from appliance.inference.engine import Turn
from appliance.records.rollouts import WeightSpan


def joined(part: Turn | None, turn: Turn) -> Turn:
    """Makes one turn of two parts of it; spans of one version that meet become one."""
    if part is None or not part.ids:
        return turn
    spans = list(part.weights)
    for span in turn.weights:
        start, end = span.start + len(part.ids), span.end + len(part.ids)
        if spans[-1].version == span.version:
            start = spans.pop().start
        spans.append(WeightSpan(version=span.version, start=start, end=end))
    return Turn(turn.request, part.ids + turn.ids, part.logprobs + turn.logprobs, turn.ended, tuple(spans))

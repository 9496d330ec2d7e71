"""What a question comes to, before it is a verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from verifiers.contract.verdict import Ground, Judgement
from verifiers.smt.render import TooLong, query_text
from verifiers.smt.terms import Term

MAX_QUERY = 5_000


def proved(reason: str, evidence: dict[str, Any]) -> Judgement:
    return Judgement(Ground.PROVED, reason, evidence)


def refuted(reason: str, evidence: dict[str, Any]) -> Judgement:
    return Judgement(Ground.REFUTED, reason, evidence)


def open_question(reason: str, evidence: dict[str, Any], *, exhausted: bool = False) -> Judgement:
    """Neither proved nor refuted; `exhausted` when only for want of effort."""
    if exhausted:
        return Judgement(Ground.TIMEOUT, f"{reason}: the effort allowed was not enough", evidence)
    return Judgement(Ground.UNKNOWN, reason, evidence)


def query(assertions: Sequence[Term]) -> dict[str, Any]:
    """The question as any other solver reads it: whole where that is short, and by its digest."""
    try:
        text = query_text(assertions)
    except TooLong:
        return {"too_long": True}
    known: dict[str, Any] = {"sha256": hashlib.sha256(text.encode()).hexdigest()}
    return {**known, "smt2": text} if len(text) <= MAX_QUERY else {**known, "characters": len(text)}

"""Made-up gateway sessions of an owner's agent for `assay tui --demo-data`, one of each kind."""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from appliance.gateway.sessions import KeptSession, SaidText, last_day
from appliance.records.rollouts import Message, Role
from verifiers.answers.spec import AnswerSpec
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.programs.spec import Example, ProgramSpec

DAYS = 30.0
MEDIAN = "def median(values):\n    ordered = sorted(values)\n    return ordered[len(ordered) // 2]"


def made_up_sessions(now: datetime, weights: str) -> tuple[KeptSession, ...]:
    """Returns made-up gateway sessions, oldest first, answered by the model `weights`."""
    odd = ProgramSpec(
        function="median",
        examples=(Example(arguments="[3, 1, 2]", expected="2"), Example(arguments="[4, 1, 3, 2]", expected="2.5")),
    )
    hours = AnswerSpec(expected="14")
    asked: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
        (("Write median(values).", f"```python\n{MEDIAN}\n```"), _judged(odd, Outcome.FAIL, "1 of 2 tests failed")),
        (("Summarise my notes of Tuesday.", "You planned the garden and called the plumber."), {}),
        (
            ("How many hours are in 7 halves of 4 hours?", r"7 halves of 4 hours are \boxed{14} hours."),
            _judged(hours, Outcome.PASS, "14 = 14"),
        ),
        (
            (
                "Which days are left in May?",
                "From the 26th on: six.",
                "And in hours?",
                r"6 days are \boxed{144} hours.",
            ),
            _judged(AnswerSpec(expected="144"), Outcome.PASS, "144 = 144"),
        ),
        ((), {"rule": 2, "turns": 3}),
    )
    return tuple(
        _session(place, now - timedelta(hours=5 * (len(asked) - place)), weights, said, more)
        for place, (said, more) in enumerate(asked)
    )


def _session(number: int, at: datetime, weights: str, said: tuple[str, ...], more: dict[str, Any]) -> KeptSession:
    moment = at.isoformat(timespec="seconds")
    known = {
        "id": f"gs-{sha256(b'made up, %d' % number).hexdigest()[:16]}",
        "token": "editor" if number % 2 == 0 else "notes",
        "created": moment,
        "updated": moment,
        "expires": last_day(moment, DAYS),
        "version": weights,
        "said": tuple(SaidText(role=("user", "assistant")[place % 2], text=text) for place, text in enumerate(said)),
        "nodes": _nodes(said),
        "turns": len(said) // 2,
        "questions": max(1, len(said) // 2),
        "answer": said[-1] if said else "",
        "complete": True,
    }
    return KeptSession.model_validate({**known, **more})


def _nodes(said: tuple[str, ...]) -> tuple[Message, ...]:
    """Returns a made-up conversation of these texts, user and assistant in turn, with one token per word."""
    return tuple(
        Message(
            parent=place - 1 if place else None,
            role=(Role.USER, Role.ASSISTANT)[place % 2],
            ids=tuple(range(len(text.split()))),
            sampled=place % 2 == 1,
        )
        for place, text in enumerate(said)
    )


def _judged(spec: AnswerSpec | ProgramSpec, outcome: Outcome, reason: str) -> dict[str, Any]:
    passed = outcome is Outcome.PASS
    verdict = Verdict(outcome=outcome, score=float(passed), reason=reason, verifier=spec.kind, version="1", seconds=0.1)
    return {"spec": spec, "verdict": verdict, "submission": "made up"}

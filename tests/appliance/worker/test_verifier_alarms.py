"""A verifier's alarm, such as two kernels that disagree, is an event of the ledger, whoever asked for the check."""

from __future__ import annotations

import pytest

from appliance.worker.setup.context import WorkContext
from verifiers.contract.verdict import ALARM, Ground, Judgement, Verdict
from verifiers.lean.spec import LeanSpec


class Disagreeing:
    """A conductor of proofs that alarms for one of them."""

    def verify(self, spec: LeanSpec, submission: str, seconds: float) -> Verdict:
        evidence = {ALARM: "two kernels disagree"} if submission == "odd" else {}
        return Judgement(Ground.BROKEN, "no verdict", evidence).verdict("lean", "6")

    def close(self) -> None:
        pass


def test_an_alarm_is_one_event_and_other_verdicts_are_none(
    context: WorkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verifiers.lean.verifier.conductor", lambda _parts: Disagreeing())
    spec = LeanSpec(statement="theorem target : 2 + 2 = 4 := sorry")
    found = context.checker.check_many([(spec, text) for text in ("even", "odd", "even")])
    assert [verdict.reason for verdict in found] == ["no verdict"] * 3
    events = [event for _, event in context.ledger.events(after=0, limit=100)]
    assert [(event.kind, event.text) for event in events] == [("warning", "two kernels disagree")]

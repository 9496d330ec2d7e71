"""Simulated engines never hold more than they can, and every arm ends all its work, no faster than can be."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from appliance.ledger.sqlite import SqliteLedger
from appliance.records.rollouts import Message, Purpose, Role, Rollout, RolloutEnd
from appliance.records.training import Judged
from benchmarks import scheduler
from benchmarks.scheduler import ARMS, BLOCK, LONGEST, Engines, Work, measured, recorded
from verifiers.contract.verdict import Outcome, Verdict


class Watched(Engines):
    """Engines that say when they hold too much, and keep what was done with them."""

    seen: ClassVar[list[Watched]] = []

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        Watched.seen.append(self)

    def advance(self) -> list[int]:
        ended = super().advance()
        assert self.used().max() <= self.memory
        return ended


def test_c14_every_arm_ends_its_work_and_what_each_pays_is_what_it_is_there_to_show(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scheduler, "Engines", Watched)
    monkeypatch.setattr(scheduler, "PER_ENGINE", 48)
    monkeypatch.setattr(scheduler, "LEAST", 48)
    monkeypatch.setattr(scheduler, "BATCHES", 2)
    found = {}
    for arm in ARMS:
        Watched.seen.clear()
        found[arm] = measured(arm, 2, 0, None)
        for there in Watched.seen:
            assert there.done.all()
            assert (there.length >= there.work.final).all()
            grown = there.work.final - there.work.prompt
            held = (there.work.final**2 - there.work.prompt**2).sum() / 2
            assert there.step >= max(grown.max(), held / there.memory / 2)
    again = {arm: figures["regenerated"] for arm, figures in found.items()}
    assert again["free"] == again["strict"] == again["reserves"] == 0
    assert again["static"] > 3 * again["ours"], "all at once evicts"
    assert found["static"]["evictions"] > 0 == found["ours"]["evictions"]
    assert found["strict"]["steps"] > found["aimd"]["steps"] > found["ours"]["steps"] > 0.8 * found["free"]["steps"]


def rollout(number: int, tokens: int, purpose: Purpose = Purpose.TRAIN) -> Judged:
    nodes = (
        Message(parent=None, role=Role.USER, ids=(1,) * 10, sampled=False),
        Message(parent=0, role=Role.TOOL, ids=(1,) * (tokens - 10), sampled=False),
    )
    return Judged(
        rollout=Rollout(
            id=f"{purpose}-{number}",
            cycle="n",
            step=0,
            task=str(number % 2),
            sample=number,
            purpose=purpose,
            temperature=1.0,
            nodes=nodes,
            ended=RolloutEnd.ANSWERED,
            answer=None,
            answers=0,
            seconds=0.0,
        ),
        verdict=Verdict(outcome=Outcome.FAIL, score=0.0, reason="", verifier="integer", version="1", seconds=0.0),
        family="divisors",
    )


def test_recorded_lengths_are_those_of_a_ledgers_tasks_stretched_to_the_longest(tmp_path: Path) -> None:
    with SqliteLedger(tmp_path / "ledger.sqlite3") as ledger:
        ledger.put_rollouts([rollout(number, 20 if number % 2 else 100) for number in range(8)])
        ledger.put_rollouts([rollout(9, 5000, Purpose.EVALUATION)])
    known = recorded(tmp_path / "ledger.sqlite3")
    assert sorted(len(task) for task in known) == [4, 4]
    work = Work(np.random.default_rng(0), 160, known)
    assert set(work.prompt) == {-(-LONGEST // 10 // BLOCK)}
    assert set(work.final) == {LONGEST // BLOCK, -(-LONGEST // 5 // BLOCK)}
    assert all(len(set(work.final[work.group == group])) == 1 for group in set(work.group)), "a group is of one task"
    with pytest.raises(SystemExit, match="there is no ledger"):
        recorded(tmp_path / "other")

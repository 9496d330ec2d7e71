"""What a worker's engines expect of lengths is what the newest rollouts of training came to."""

from __future__ import annotations

import pytest
from test_what_steps_came_to import generated, judged

from appliance.ledger.sqlite import SqliteLedger
from appliance.records.rollouts import Message, Role
from appliance.records.training import Judged
from appliance.worker.setup import context as module
from appliance.worker.setup.context import PAGE, known_lengths
from verifiers.contract.verdict import Outcome


def with_lengths(sample: int, *conversations: int, outcome: Outcome = Outcome.PASS) -> Judged:
    """A rollout whose conversation was written anew as often as there are more than one."""
    made = judged(generated(0), sample, outcome)
    nodes = tuple(
        Message(parent=parent, role=Role.USER, ids=ids, sampled=False)
        for at, tokens in enumerate(conversations)
        for parent, ids in ((None, (1,)), (2 * at, (1,) * (tokens - 1)))
    )
    return made.model_copy(update={"rollout": made.rollout.model_copy(update={"nodes": nodes})})


def test_each_conversation_counts_and_what_was_lost_or_pruned_says_nothing(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert known_lengths(ledger) == []
    given = [
        with_lengths(0, 30),
        with_lengths(1, 5, 9),
        with_lengths(2),
        with_lengths(3, 8, outcome=Outcome.INFRA_ERROR),
    ]
    ledger.put_rollouts(given)
    assert known_lengths(ledger) == [5, 9, 30]
    ledger.put_rollouts([with_lengths(sample, sample) for sample in range(4, 4 + PAGE)])
    assert known_lengths(ledger) == [*range(3 + PAGE, 3, -1), 5, 9, 30]
    monkeypatch.setattr(module, "NEWEST", PAGE)
    assert known_lengths(ledger) == [*range(3 + PAGE, 3, -1)]

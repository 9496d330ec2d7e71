"""A sandbox of many sessions in which nobody calls rests, and computes again with the next call."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_groups import is_resting

from runtime.sandbox import Limits, Tier
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings

LIMITS = Limits(call_seconds=60.0)
LONG = "print(sum(range(20_000_000)))"  # more than it could compute at rest within the limit of a call


@pytest.fixture(scope="module")
def sessions(root_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=root_dir, ready=0)
    with Sessions(
        RuntimeSettings(own=own, limits=LIMITS, shared_workers=1, process_boxes=1, slice_seconds=30.0)
    ) as sessions:
        yield sessions


def until_it_rests(box: str) -> None:
    deadline = time.monotonic() + 120
    while not is_resting(box):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize("tier", [Tier.SHARED, Tier.PROCESS])
def test_it_rests_when_nobody_calls_and_computes_again_with_the_next_call(sessions: Sessions, tier: Tier) -> None:
    with sessions.open(tier=tier) as session:
        box = session.run("x = 6 * 7").sandbox
        for _ in range(2):
            until_it_rests(box)
            result = session.run(LONG)
            assert (result.output, result.sandbox) == ("199999990000000\n", box)
            assert not is_resting(box)
        assert session.run("print(x)").output == "42\n"


def test_one_that_is_somebodys_own_goes_on_between_calls(sessions: Sessions) -> None:
    with sessions.open(tier=Tier.SANDBOX) as session:
        box = session.run("x = 1").sandbox
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            assert not is_resting(box)
            time.sleep(0.2)

"""Concurrent rollouts of games and of tool orchestration, each of which branches and goes back in the middle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from parallel_worlds import AGENTS, Played, game_rollout, orchestration_rollout, play

from curriculum.environments.games.environment import GAMES
from curriculum.environments.orchestration import ORCHESTRATION
from curriculum.registry import make_draft
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings


@pytest.fixture(scope="module")
def pool(guest_roots: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=guest_roots, ready=0)
    with Sessions(RuntimeSettings(own=own, sandboxes=64)) as sessions:
        yield sessions


def require_apart(found: list[Played]) -> None:
    assert {one.leaks for one in found} == {""}
    passed = Counter(one.agent for one in found if one.passed)
    assert passed == {"oracle": sum(one.agent == "oracle" for one in found)}
    assert {one.agent for one in found} == set(AGENTS)


def test_players_of_one_game_at_once_have_a_world_each_and_go_back_in_it(pool: Sessions) -> None:
    require_apart(play(pool, GAMES, make_draft("hidden_rules", 1, 3), 6, game_rollout))


@pytest.mark.skipif(bool(ORCHESTRATION.missing()), reason=ORCHESTRATION.missing())
def test_rollouts_over_servers_of_one_firm_go_back_in_a_world_of_their_own(pool: Sessions) -> None:
    require_apart(play(pool, ORCHESTRATION, make_draft("orchestration", 2, 1), 3, orchestration_rollout))

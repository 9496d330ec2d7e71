"""Environments of OpenEnv: a real server on loopback in a sandbox, and what a hostile one can do.

They need its packages for guests: `assay curriculum adapter install openenv`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from curriculum.adapters import ADAPTERS
from curriculum.contract.errors import CurriculumError
from curriculum.environments.foreign import OPENENV
from curriculum.foreign.making import make_rows
from curriculum.own.rows import OwnRow
from curriculum.worlds.world import World
from runtime.errors import InfrastructureError
from runtime.sandbox import Limits
from runtime.sessions import Sessions
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.files.verifier import FilesVerifier

ADAPTER = ADAPTERS["openenv"]
PACKAGE = Path(__file__).parents[2] / "fixtures" / "openenv" / "guess_env"
LIMITS = Limits(call_seconds=5, memory_mib=512)
pytestmark = pytest.mark.skipif(bool(ADAPTER.missing()), reason=ADAPTER.missing())


@pytest.fixture(scope="module")
def row(pool: Sessions) -> OwnRow:
    return make_rows(pool, "openenv", "guess_env", package="guess_env", tasks=1)[0][0]


def said(pool: Sessions, world: World, row: OwnRow) -> Verdict:
    submission = world.submission()
    assert submission is not None
    return FilesVerifier(pool).verify(row.spec, submission)


def test_a_task_says_how_it_begins_and_what_an_action_is(row: OwnRow) -> None:
    assert '"number"' in row.question
    assert "at its end" in row.question
    assert "reward" not in row.question.partition("It begins with:")[2]
    assert (row.environment, row.tools) == ("openenv", ("step", "state"))


def test_it_is_played_to_its_end_and_its_reward_is_no_verdict(pool: Sessions, row: OwnRow) -> None:
    last = int(row.question.partition("below 100, ")[2].partition(" ")[0])
    with World.open(pool, OPENENV, row.world) as world:
        for tens in range(10):
            reply = world.call("step", {"action": {"number": 10 * tens + last}})
            assert "reward" not in reply.text
            if '"done": true' in reply.text:
                break
        assert f'"step_count": {tens + 1}' in world.call("state", {}).text
        assert world.call("step", {"action": {"number": last}}).failed
        verdict = said(pool, world, row)
    assert (verdict.outcome, verdict.foreign_reward) == (Outcome.FAIL, 1.0)


def test_an_action_that_does_not_fit_is_refused_and_the_world_goes_on(pool: Sessions, row: OwnRow) -> None:
    with World.open(pool, OPENENV, row.world) as world:
        assert world.call("step", {"action": {"number": "many"}}).failed
        assert not world.call("step", {"action": {"number": 1000}}).failed
        assert said(pool, world, row).foreign_reward == 0.1


def test_branches_of_a_world_have_servers_of_their_own(pool: Sessions, row: OwnRow) -> None:
    with World.open(pool, OPENENV, row.world) as world:
        world.call("step", {"action": {"number": 1000}})
        one, other = world.fork(2)
        with one, other:
            one.call("step", {"action": {"number": 1001}})
            counts = [branch.call("state", {}).text.count('"step_count": 2') for branch in (world, one, other)]
    assert counts == [0, 1, 0]


@pytest.mark.parametrize(("number", "why"), [(-1, "gone"), (-2, "longer than 5 seconds"), (-3, "gone")])
def test_c16_a_server_that_ends_hangs_or_floods_breaks_its_world(
    pool: Sessions, row: OwnRow, number: int, why: str
) -> None:
    with World.open(pool, OPENENV, row.world) as world:
        with pytest.raises(InfrastructureError, match=why):
            world.call("step", {"action": {"number": number}})
        with pytest.raises(InfrastructureError):
            world.submission()


def test_a_server_that_takes_a_while_is_waited_for_as_long_as_the_call_may_take(pool: Sessions, row: OwnRow) -> None:
    """As one does where others have the processors."""
    with World.open(pool, OPENENV, row.world) as world:
        assert '"done": false' in world.call("step", {"action": {"number": -5}}).text


def test_a_reward_that_is_none_counts_as_none_and_signs_for_terminals_are_dropped(pool: Sessions, row: OwnRow) -> None:
    with World.open(pool, OPENENV, row.world) as world:
        assert "\x1b" not in world.call("step", {"action": {"number": -4}}).text
        assert said(pool, world, row).foreign_reward is None


def test_a_package_that_is_not_installed_says_how_to_install_it() -> None:
    assert "assay curriculum adapter install openenv --package" in ADAPTER.missing("nothing_here")
    with pytest.raises(CurriculumError, match="needs a package"):
        OPENENV.files({})

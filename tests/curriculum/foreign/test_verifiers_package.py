"""Tasksets of the package verifiers: their tasks, and their own score of an answer.

They need its packages for guests: `assay curriculum adapter install verifiers`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from curriculum.adapters import ADAPTERS
from curriculum.contract.errors import CurriculumError
from curriculum.environments.foreign import VERIFIERS
from curriculum.foreign.making import make_rows
from curriculum.own.rows import OwnRow
from curriculum.worlds.world import World
from runtime.errors import InfrastructureError
from runtime.sandbox import Limits
from runtime.sessions import Sessions
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.files.verifier import FilesVerifier

ADAPTER = ADAPTERS["verifiers"]
PACKAGE = Path(__file__).parents[2] / "fixtures" / "verifiers_package" / "square_env"
LIMITS = Limits(call_seconds=5, memory_mib=512)
pytestmark = pytest.mark.skipif(bool(ADAPTER.missing()), reason=ADAPTER.missing())


@pytest.fixture(scope="module")
def rows(pool: Sessions) -> list[OwnRow]:
    made, _ = make_rows(pool, "verifiers", "square_env", package="square_env", tasks=4)
    return made


def played(pool: Sessions, row: OwnRow, answer: str) -> Verdict:
    with World.open(pool, VERIFIERS, row.world) as world:
        assert not world.call("give_answer", {"answer": answer}).failed
        submission = world.submission()
    assert submission is not None
    return FilesVerifier(pool).verify(row.spec, submission)


def number_of(row: OwnRow) -> int:
    return int(row.question.partition("What is ")[2].partition(" ")[0])


def test_its_tasks_become_rows_each_of_another_place_in_the_taskset(rows: list[OwnRow]) -> None:
    assert [number_of(row) for row in rows] == list(range(2, 22))
    assert all(row.tools == ("give_answer",) for row in rows)


def test_its_own_reward_functions_score_an_answer_and_nothing_passes(pool: Sessions, rows: list[OwnRow]) -> None:
    right, wrong = (played(pool, rows[3], str(number_of(rows[3]) ** 2 + more)) for more in (0, 1))
    assert (right.outcome, right.foreign_reward) == (Outcome.FAIL, 1.0)
    assert (wrong.outcome, wrong.foreign_reward) == (Outcome.FAIL, 0.0)


def test_a_reward_function_that_hangs_breaks_its_world(pool: Sessions, rows: list[OwnRow]) -> None:
    with World.open(pool, VERIFIERS, rows[0].world) as world:
        world.call("give_answer", {"answer": "hang"})
        with pytest.raises(InfrastructureError, match="longer than 5 seconds"):
            world.submission()


def test_another_batch_ends_where_the_taskset_does(pool: Sessions) -> None:
    with pytest.raises(CurriculumError, match="no more tasks"):
        make_rows(pool, "verifiers", "square_env", package="square_env", tasks=4, batch=9)

"""reasoning-gym in a sandbox: what it makes, how it scores, and what becomes of both.

They need its packages for guests: `assay curriculum adapter install reasoning_gym`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from curriculum.adapters import ADAPTERS
from curriculum.contract.errors import CurriculumError
from curriculum.environments.foreign import REASONING_GYM
from curriculum.foreign.making import DECIDED, SetSummary, level_of, list_sets, make_rows
from curriculum.own.rows import OwnRow, with_levels
from curriculum.worlds.world import World
from runtime.errors import InfrastructureError
from runtime.sessions import Sessions
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.files.verifier import FilesVerifier
from verifiers.registry import decide

pytestmark = pytest.mark.skipif(bool(REASONING_GYM.missing()), reason=REASONING_GYM.missing())


@pytest.fixture(scope="module")
def sums(pool: Sessions) -> list[OwnRow]:
    return make_rows(pool, "reasoning_gym", "chain_sum", tasks=12)[0]


@pytest.fixture(scope="module")
def countdown(pool: Sessions) -> OwnRow:
    return make_rows(pool, "reasoning_gym", "countdown", tasks=1)[0][0]


def played(pool: Sessions, row: OwnRow, answer: str) -> Verdict:
    with World.open(pool, REASONING_GYM, row.world) as world:
        assert not world.call("give_answer", {"answer": answer}).failed
        assert world.call("give_answer", {"answer": answer}).failed
        submission = world.submission()
    assert submission is not None
    return FilesVerifier(pool).verify(row.spec, submission)


def answered(pool: Sessions, row: OwnRow, answer: str) -> float | None:
    return played(pool, row, answer).foreign_reward


def test_its_data_sets_are_listed_with_what_decides_about_them(pool: Sessions) -> None:
    found = list_sets(pool, "reasoning_gym")
    assert DECIDED.keys() < found.keys()
    kinds = {name: SetSummary.of("reasoning_gym", name, levels).decided_by for name, levels in found.items()}
    assert (kinds["chain_sum"], kinds["base_conversion"], kinds["sudoku"]) == ("answer", "exact", "foreign_reward")


def test_items_of_a_decided_set_are_checked_by_a_kind_of_ours(sums: list[OwnRow]) -> None:
    assert all(decide(row.spec, row.answer).outcome is Outcome.PASS for row in sums)
    assert not any(
        decide(row.spec, f"maybe {row.answer}").passed or decide(row.spec, row.question).passed for row in sums
    )
    levels = [row.level for row in with_levels(sums, level_of)]
    assert set(levels) == {0, 1, 2, 3, 4}
    assert len(max(sums, key=level_of).question) > len(min(sums, key=level_of).question)


def test_the_same_batch_makes_the_same_rows_and_another_one_others(pool: Sessions, sums: list[OwnRow]) -> None:
    assert make_rows(pool, "reasoning_gym", "chain_sum", tasks=12)[0] == sums
    others, _ = make_rows(pool, "reasoning_gym", "chain_sum", tasks=12, batch=1)
    hardest = {row.key for row in sums if level_of(row) == 4}
    assert hardest.isdisjoint(row.key for row in others)


def test_neighbouring_seeds_share_their_items_and_ours_are_never_neighbours(pool: Sessions, sums: list[OwnRow]) -> None:
    def questions(world: World, seed: int) -> list[str]:
        asked = {"name": "chain_sum", "level": 4, "seed": seed, "size": 8, "first": 0}
        return [item["question"] for item in json.loads(world.call("make_items", asked).text)]

    with World.open(pool, REASONING_GYM, {}) as world:
        near = set(questions(world, 1000)) & set(questions(world, 1001))
    assert len(near) == 7
    splits: dict[str, set[object]] = {}
    for row in sums:
        splits.setdefault(row.key, set()).add(row.split)
    assert all(len(found) == 1 for found in splits.values())


def test_a_score_of_its_own_is_a_foreign_reward_and_never_a_pass(pool: Sessions, countdown: OwnRow) -> None:
    verdict = played(pool, countdown, "1")
    assert verdict.outcome is Outcome.FAIL
    assert verdict.foreign_reward is not None
    assert 0 <= verdict.foreign_reward < 0.5


def test_a_mention_of_the_answer_is_worth_nothing(pool: Sessions) -> None:
    row = make_rows(pool, "reasoning_gym", "rotate_matrix", tasks=1)[0][0]
    item = row.world["item"]
    with World.open(pool, REASONING_GYM, {}) as world:
        asked = {name: item[name] for name in ("name", "level", "seed", "size")}
        [made] = json.loads(world.call("make_items", {**asked, "first": 0}).text)
    assert answered(pool, row, made["answer"]) == 1.0
    assert answered(pool, row, f"it is {made['answer']}") == 0.0
    assert answered(pool, row, made["answer"] + " " * 500 + ".") == 0.0


def test_a_model_cannot_have_items_made_and_no_answer_is_worth_nothing(pool: Sessions, countdown: OwnRow) -> None:
    with World.open(pool, REASONING_GYM, countdown.world) as world:
        made = world.call("make_items", {"name": "countdown", "level": 0, "seed": 0, "size": 1, "first": 0})
        assert made.failed
        submission = world.submission()
    assert json.loads(json.loads(submission or "")["reward.json"]["text"]) == {"reward": 0.0}


def test_an_item_that_is_another_one_than_was_asked_breaks_its_world(pool: Sessions, countdown: OwnRow) -> None:
    item: dict[str, Any] = {**countdown.world["item"], "index": 0, "asked": "0" * 64}
    with World.open(pool, REASONING_GYM, {**countdown.world, "item": item}) as world:
        world.call("give_answer", {"answer": "1"})
        with pytest.raises(InfrastructureError, match="another one than was asked"):
            world.submission()


@pytest.mark.parametrize("name", ["nothing_of_the_sort", "zebra_puzzles"])
def test_a_set_that_cannot_be_made_says_why(pool: Sessions, name: str) -> None:
    with pytest.raises(CurriculumError, match=r"no data set|no wheel"):
        make_rows(pool, "reasoning_gym", name, tasks=1)


def test_its_adapter_takes_no_package_of_the_owners() -> None:
    assert not ADAPTERS["reasoning_gym"].takes_package
    with pytest.raises(CurriculumError, match="takes no package"):
        REASONING_GYM.files({"package": "mine"})

"""A seed belongs to one split, and a task to its seed."""

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.learning.recipes.recipe import Recipe
from curriculum import seeds
from curriculum.contract.errors import LevelError, SeedError, UnknownTasksetError
from curriculum.contract.task import Split, Task, asked
from curriculum.registry import CALCULATORS, TASKSETS, draft_of, make_draft, make_task
from verifiers.contract.kinds import AnswerForm

any_seed = st.integers(0, seeds.LIMIT - 1)


@given(any_seed)
def test_every_seed_has_exactly_one_owner_and_nobody_else_may_use_it(seed: int) -> None:
    owner = seeds.split_of(seed)
    seeds.require(seed, owner)
    for other in set(Split) - {owner}:
        with pytest.raises(SeedError, match=owner.value):
            make_task("powers", 0, seed, other)
    assert make_task("powers", 0, seed, owner).split is owner


@given(st.integers(0, 10**15), st.integers(0, 10**15))
def test_seeds_of_different_splits_never_meet(first: int, second: int) -> None:
    for one in Split:
        for other in set(Split) - {one}:
            assert next(seeds.seeds(one, first)) != next(seeds.seeds(other, second))


@given(st.integers(0, 2**64))
def test_drawn_seeds_stay_inside_their_split(source: int) -> None:
    for split in Split:
        assert seeds.split_of(seeds.draw(split, Random(source))) is split


def test_seeds_are_enumerated_without_a_gap_and_from_anywhere() -> None:
    assert sorted(seed for split in Split for seed in islice(seeds.seeds(split), 25)) == list(range(100))
    for split in Split:
        assert list(islice(seeds.seeds(split, 7), 3)) == list(islice(seeds.seeds(split), 7, 10))


@pytest.mark.parametrize("seed", [-1, seeds.LIMIT])
def test_a_number_out_of_range_is_no_seed(seed: int) -> None:
    with pytest.raises(SeedError, match="invalid seed"):
        make_task("powers", 0, seed, Split.TRAIN)


def test_the_same_seed_gives_the_same_task_in_another_process() -> None:
    here = [make_task(name, 1, 4 * 10**17 + 2, Split.SEALED).model_dump_json() for name in TASKSETS]
    code = (
        "from curriculum.contract.task import Split\n"
        "from curriculum.registry import TASKSETS, make_task\n"
        "for name in TASKSETS: print(make_task(name, 1, 4 * 10**17 + 2, Split.SEALED).model_dump_json())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == here


GOLDEN = {
    "arithmetic": "whole quotient of 2056 by 32?",
    "divisors": "what do the divisors of 329 add up to?",
    "powers": "20 to the 5 mod 675?",
    "counting": "ways to choose 3 of 75?",
    "sequences": "integer square root of 36289?",
    "digits": "digit sum of 19805?",
    "linear": "find x with 19x+5=575",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_task_stays_what_it_was_until_its_taskset_changes_its_version(name: str) -> None:
    assert make_task(name, 1, 40, Split.TRAIN).question == GOLDEN[name]


@given(st.sampled_from(sorted(TASKSETS)), st.integers(0, 1), any_seed)
def test_a_task_leads_back_to_its_draft(name: str, level: int, seed: int) -> None:
    task = make_task(name, level, seed, seeds.split_of(seed))
    draft = draft_of(task)
    assert (draft.messages, draft.spec, draft.key, draft.form) == (task.messages, task.spec, task.key, task.form)
    assert draft.topic in TASKSETS[name].topics
    assert task.provenance == f"{name}@{TASKSETS[name].version}"
    assert Task.model_validate_json(task.model_dump_json()) == task


def test_names_in_the_table_are_the_tasksets_own_and_topics_are_unique() -> None:
    assert all(taskset.name == name for name, taskset in TASKSETS.items())
    topics = [topic for taskset in TASKSETS.values() for topic in taskset.topics]
    assert len(set(topics)) == len(topics)
    assert sum(len(TASKSETS[name].topics) for name in CALCULATORS) == 16


def test_what_is_asked_by_default_are_the_calculators() -> None:
    """The smallest policy model reads no more."""
    assert Recipe().tasksets == CALCULATORS


def test_the_id_of_a_task_is_that_of_all_that_is_asked_and_not_of_where_it_comes_from() -> None:
    task = make_task("powers", 1, 40, Split.TRAIN)
    changes = [
        {"messages": asked("1+1?")},
        {"spec": make_draft("powers", 0, 1).spec},
        {"form": AnswerForm.WHOLE},
        {"tools": ()},
        {"files": {"a.txt": "1"}},
    ]
    changed = [Task.model_validate({**task.model_dump(), **change}) for change in changes]
    assert len({one.id for one in [task, *changed]}) == 1 + len(changes)
    assert Task.model_validate({**task.model_dump(), "level": 2, "seed": 44, "turns": 3}).id == task.id


def test_an_unknown_taskset_is_refused_with_the_command_that_lists_them() -> None:
    with pytest.raises(UnknownTasksetError) as refused:
        make_task("alchemy", 0, 0, Split.TRAIN)
    assert "assay curriculum ls" in refused.value.hint
    with pytest.raises(LevelError):
        make_task("digits", 2, 0, Split.TRAIN)

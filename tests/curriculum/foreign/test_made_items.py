"""What a guest says of the items that it made is hostile text: bounded, plain, and what was asked for."""

from __future__ import annotations

import json

import pytest
from tables import table

from curriculum.contract.errors import CurriculumError
from curriculum.foreign.making import environment_of, read_items, source_of
from curriculum.own.rows import QUESTION_CHARS

GOOD = {"index": 0, "question": "What is 1 + 1?", "answer": "2"}


def test_items_that_go_on_from_the_first_one_asked_for_are_read() -> None:
    found = read_items(json.dumps([{**GOOD, "index": 3}, {**GOOD, "index": 4}]), 3)
    assert [item.index for item in found] == [3, 4]


@table(
    "said",
    [
        "",
        "{}",
        "[]",
        "[" * 50_000,
        json.dumps([{**GOOD, "index": 1}]),
        json.dumps([GOOD, GOOD]),
        json.dumps([{**GOOD, "spec": {"kind": "exact", "expected": "x"}}]),
        json.dumps([{**GOOD, "question": ""}]),
        json.dumps([{**GOOD, "question": "x" * (QUESTION_CHARS + 1)}]),
        json.dumps([{**GOOD, "answer": 2}]),
        json.dumps([{**GOOD, "answer": "\ud800"}]),
        json.dumps([{**GOOD, "asked": "../../etc"}]),
    ],
)
def test_what_is_no_list_of_the_items_asked_for_is_refused(said: str) -> None:
    with pytest.raises(CurriculumError):
        read_items(said, 0)


def test_where_rows_are_from_names_the_version_the_package_and_the_batch() -> None:
    assert source_of("openenv", "guess", "guess_env", 2) == ("openenv==0.10.0, package guess_env, guess, batch 2", "")
    assert source_of("reasoning_gym", "lcm", "", 0) == ("reasoning-gym==0.1.25, lcm, batch 0", "Apache-2.0")


@pytest.mark.parametrize(("adapter", "package"), [("mcp", ""), ("nothing", ""), ("openenv", ""), ("openenv", "../x")])
def test_an_adapter_that_can_make_nothing_says_so(adapter: str, package: str) -> None:
    with pytest.raises(CurriculumError):
        environment_of(adapter, package)

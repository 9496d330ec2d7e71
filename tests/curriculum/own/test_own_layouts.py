"""Rows as others publish them: twenty of each layout, made by hand, with what has to become of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tables import table

from curriculum.own.columns import RowError, row_of
from curriculum.own.layouts import published
from curriculum.own.rows import OwnRow
from verifiers.contract.errors import SpecError
from verifiers.registry import check_spec

FILES = sorted(Path(__file__).with_name("layouts").glob("*.jsonl"))
ROWS = [
    pytest.param(json.loads(line), id=f"{file.stem}:{number}")
    for file in FILES
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
]


def taken(row: dict[str, Any]) -> OwnRow:
    layout = published(row)
    made = row_of(row if layout is None else layout.columns, "auto", "f:1")
    check_spec(made.spec)
    return made


def test_thirteen_layouts_have_twenty_rows_each() -> None:
    assert (len(FILES), len(ROWS)) == (13, 260)


@table("case", ROWS)
def test_a_published_row_is_taken_or_refused_for_the_right_reason(case: dict[str, Any]) -> None:
    if "refused" in case:
        with pytest.raises((RowError, SpecError), match=case["refused"]):
            taken(case["row"])
        return
    made = taken(case["row"])
    assert made.spec.kind == case["kind"]
    if "gold" in case:
        assert made.spec.expected == case["gold"]
        assert made.answer == case.get("reference", case["gold"])
    elif "reference" in case:
        assert made.answer == case["reference"]
    if "tests" in case:
        assert len(made.spec.examples) + len(made.spec.runs) == case["tests"]
        assert made.spec.function == case.get("function", made.spec.function)
    if "expected" in case:
        assert made.spec.examples[0].expected == case["expected"]
    assert made.question.startswith(case.get("starts", ""))
    assert made.question == case.get("question", made.question)


@table("case", [row for row in ROWS if "kind" in row.values[0]])
def test_a_column_that_a_layout_does_not_name_changes_nothing(case: dict[str, Any]) -> None:
    layout = published(case["row"])
    more = {name: value for name in ("gold", "target", "output") if name not in case["row"] for value in ["999"]}
    again = published(case["row"] | more)
    if layout is not None:
        assert again is not None
        assert again.columns == layout.columns
        assert all(name in again.note.partition("; left out: ")[2] for name in more)


def test_what_a_layout_reads_and_leaves_out_is_told() -> None:
    row = {
        "data_source": "own",
        "prompt": [{"role": "user", "content": "1 + 1?"}],
        "reward_model": {"style": "rule", "ground_truth": "2"},
        "extra_info": {"index": 7},
    }
    layout = published(row)
    assert layout is not None
    told = "verl: prompt, reward_model.ground_truth, reward_model.style; left out: data_source, extra_info"
    assert (layout.note, layout.identity) == (told, "7")
    assert published({"question": "1 + 1?", "answer": "2"}) is None
    assert published(row | {"spec": {"kind": "exact", "expected": "2"}}) is None


def test_a_name_of_a_method_is_no_code_of_the_driver_and_an_identity_no_control_character() -> None:
    hostile = {"fn_name": "f(*arguments)\n\nimport os #", "inputs": [[1], [2]], "outputs": [1, 2]}
    row = {
        "question": "Q",
        "input_output": hostile,
        "starter_code": "class Solution:\n    pass",
        "problem_id": "a\x1b[2J",
    }
    layout = published(row)
    assert layout is not None
    assert layout.identity == "a__2J"
    with pytest.raises(SpecError):
        taken(row)


@table(
    ("row", "outcome"),
    [
        ({"prompt": "q", "reward_model": {"ground_truth": '["34"]'}}, "34"),
        ({"prompt": "q", "reward_model": {"ground_truth": '["34", "35"]'}}, RowError("different final answers")),
        ({"prompt": "q", "reward_model": {"ground_truth": "[1, 2]"}}, "[1, 2]"),
        ({"question": "q", "target": 98, "nums": [44, 19]}, RowError("any equation")),
        ({"problem": "q", "answer": "5", "solution": "So so.", "problem_is_valid": "Incomplete"}, RowError("is_valid")),
        ({"problem": "q", "answer": "5", "solution": "So so.", "problem_is_valid": "Yes"}, "5"),
        (
            {"problem": "q", "answer": "1", "solution": "So so.", "choices": ["3", "4"]},
            RowError("in the column choices"),
        ),
    ],
)
def test_no_answer_is_read_that_the_publisher_does_not_mean(row: dict[str, Any], outcome: str | RowError) -> None:
    if isinstance(outcome, RowError):
        with pytest.raises(RowError, match=str(outcome)):
            taken(row)
    else:
        assert taken(row).spec.expected == outcome

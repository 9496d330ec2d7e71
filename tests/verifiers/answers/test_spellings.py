"""Numerals, brackets, labels and units in the spellings of many places: right ones pass, unclear ones are not refuted.

Each row of `data/spellings.jsonl` names the basis of the verdict; `no spec` is an expected answer that is refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tables import table

from verifiers.answers.grammar.numerals import other_readings, plain_digits, readings
from verifiers.answers.spec import AnswerSpec
from verifiers.answers.verifier import AnswerVerifier
from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import Ground, Verdict

VERIFIER = AnswerVerifier()
ROWS = [json.loads(line) for line in (Path(__file__).parent / "data/spellings.jsonl").read_text("utf-8").splitlines()]


def verdict(row: dict[str, Any]) -> Verdict:
    spec = AnswerSpec.model_validate({"expected": row["gold"], **row.get("spec", {})})
    VERIFIER.check(spec)
    return VERIFIER.verify(spec, row["answer"])


def rows(*grounds: str) -> list[dict[str, Any]]:
    return [row for row in ROWS if row["ground"] in grounds]


@table("row", rows("proved"))
def test_a_right_answer_passes_in_each_spelling(row: dict[str, Any]) -> None:
    found = verdict(row)
    assert found.passed, found.reason


@table("row", rows("refuted", "unfinished", "unknown"))
def test_a_wrong_answer_passes_in_no_spelling(row: dict[str, Any]) -> None:
    assert not verdict(row).passed


@table("row", rows("unreadable"))
def test_a_spelling_with_two_readings_neither_passes_nor_is_refuted(row: dict[str, Any]) -> None:
    found = verdict(row)
    assert not found.passed
    assert found.ground is not Ground.REFUTED, found.reason


@table("row", rows("no spec"))
def test_an_expected_answer_that_would_be_misread_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(SpecError) as error:
        verdict(row)
    assert error.value.hint


@table(
    ("core", "point", "comma"),
    [
        ("1,234", [["1234"]], [["1.234"]]), ("1.234", [["1.234"]], [["1234"]]),
        ("3,5", [["3.5"], ["3", "5"]], [["3.5"]]), ("12,34,567", [["1234567"]], [["1234567"]]),
        ("12,34,567.5", [["1234567.5"]], [["1234567.5"]]), ("1.234.567,5", [["1234567.5"]], [["1234567.5"]]),
        ("1'234,5", [["1234.5"]], [["1234.5"]]), ("0,123.4", [["0", "123", "4"]], [["0", "123", "4"]]),
        ("1,23,4", [["1", "23", "4"]], [["1", "23", "4"]]),
    ],
)  # fmt: skip
def test_a_numeral_has_the_readings_of_its_separators(
    core: str, point: list[list[str]], comma: list[list[str]]
) -> None:
    assert readings(core, "point") == point
    assert readings(core, "comma") == comma


def test_a_long_numeral_is_left_alone() -> None:
    text = "1" * 3_000 + ",5"
    assert plain_digits(text, "decimal") == text
    assert list(other_readings(text)) == ["1" * 3_000 + ", 5"]


@table("answer", ["1,278", "$1278$", r"\text{1278}", "1278.0", "1278", "+1278", "1 278", "1278 apples"])
def test_an_integer_is_accepted_in_any_notation_unless_digits_are_asked_for(answer: str) -> None:
    assert VERIFIER.verify(AnswerSpec(expected="1278"), answer).passed
    digits = VERIFIER.verify(AnswerSpec(expected="1278", notation="digits"), answer)
    assert digits.passed is (answer in ("1278", "+1278"))

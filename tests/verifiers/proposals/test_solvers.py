"""The pure parts of the solvers: what they read out of a question, and what they compute where they are sent."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from verifiers.boxes.guest import column_statistics, program_search
from verifiers.checklists.solvers import OpenPlace, instance
from verifiers.programs.solvers import shown_examples, solvers
from verifiers.programs.spec import Example, ProgramSpec

ROWS = [
    {"region": "north", "amount": "10.5", "item": "tea"},
    {"region": "south", "amount": "20", "item": "tea"},
    {"region": "north", "amount": "2", "item": "salt"},
]


def searched(shown: list[list[str]], most: int = 40) -> Iterator[str]:
    """The first expressions that give what is shown, as they are found."""
    program_search.begin("f", "", shown, 60.0, 12)
    return (text for text in islice(program_search.LOOKING[0].texts, most) if text)


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        ([["2, 3", "13"], ["1, 1", "2"], ["0, 5", "25"]], "(a * a) + (b * b)"),
        ([["[1, 2, 3, 4, 5, 6]", "12"], ["[7, 8]", "8"], ["[1]", "0"]], "sum([x for x in xs if (x % 2) == 0])"),
        ([["'a b c'", "'c b a'"], ["'hi you'", "'you hi'"]], "' '.join(s.split()[::-1])"),
    ],
)
def test_small_programs_are_found_from_examples(shown: list[list[str]], wanted: str) -> None:
    assert wanted in searched(shown)


def test_what_is_found_is_right_on_what_was_shown_and_runs_as_it_is_written() -> None:
    shown = [["[3, 1, 2], 2", "[3, 2]"], ["[5], 9", "[]"], ["[4, 7, 1], 4", "[4, 7]"]]
    for text in searched(shown, 2):
        made: dict[str, Any] = {}
        exec(program_search.program("f", ["xs", "a"], text), made)
        assert [made["f"]([3, 1, 2], 2), made["f"]([5], 9), made["f"]([4, 7, 1], 4)] == [[3, 2], [], [4, 7]], text


def test_the_question_says_which_of_several_is_meant() -> None:
    hinted = program_search.hints("The sum of the even numbers")
    texts = ["sum([x for x in xs if x <= 3])", "sum([x for x in xs if (x % 2) == 0])"]
    assert min(texts, key=lambda text: program_search.oddity(text, ["xs"], hinted)) == texts[1]


def test_examples_that_are_no_plain_values_are_told() -> None:
    assert "plain values" in program_search.begin("f", "", [["open('x')", "1"]], 1.0, 3)["note"]
    assert "same arguments" in program_search.begin("f", "", [["1", "1"], ["1, 2", "1"]], 1.0, 3)["note"]


def program(*, visible: bool) -> ProgramSpec:
    return ProgramSpec(function="f", examples=(Example(arguments="2, 3", expected="13", visible=visible),))


def test_hidden_examples_are_never_searched_from() -> None:
    assert shown_examples(program(visible=True), "Write f.") == [["2, 3", "13"]]
    assert shown_examples(program(visible=False), "Write f.") == []
    assert solvers(program(visible=False), "Write f.", False) == []


def test_examples_in_the_words_of_a_question_are_read() -> None:
    asked = "Write f(a, b) with f(1, (2, 3)) == [1, 'x, y'], and `f(0, 5)` returns 25."
    found = shown_examples(program(visible=False), asked)
    assert found == [["1, (2, 3)", "[1, 'x, y']"], ["0, 5", "25"]]


@pytest.mark.parametrize(
    ("asked", "figure"),
    [
        ("what is the sum of amount?", "32.5"),
        ("what is the total amount for north?", "12.5"),
        ("the average of the amounts for tea", "15.25"),
        ("which region has the highest amount?", "south"),
        ("how many distinct items are there?", "2"),
        ("how many rows have region north?", "2"),
        ("the median amount", "10.5"),
    ],
)
def test_figures_of_the_columns_that_a_question_names(asked: str, figure: str) -> None:
    assert next(column_statistics.figures(ROWS, asked)) == figure


def test_a_question_that_names_no_figure_has_none() -> None:
    assert list(column_statistics.figures(ROWS, "what do you think of the amounts?")) == []


def test_a_schema_is_filled_from_itself_and_the_question_and_from_nothing_else() -> None:
    schema = {
        "type": "object",
        "required": ["kind", "year", "tags"],
        "properties": {
            "kind": {"const": "person"},
            "year": {"type": "integer"},
            "tags": {"type": "array", "prefixItems": [{"enum": ["a"]}]},
        },
    }
    assert instance(schema, "year is 1815") == {"kind": "person", "year": 1815, "tags": ["a"]}
    with pytest.raises(OpenPlace, match="year"):
        instance(schema, "no such thing")
    with pytest.raises(OpenPlace, match="year"):
        instance(schema, "year = unknown")

"""What a row of somebody's file is read as, and why another is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tables import table

from curriculum.own.columns import OwnKind, RowError, last_box, row_of
from verifiers.contract.kinds import AnswerForm

ADD = {
    "text": "Add two numbers.",
    "code": "def add(a, b):\n    return a + b",
    "test_list": ["assert add(1, 2) == 3"] * 2,
}
HUMAN_EVAL = {
    "prompt": "def double(x): ...",
    "entry_point": "double",
    "canonical_solution": "def double(x):\n    return 2 * x",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n    assert 10 == candidate(x=5)\n",
}
APPS = {"question": "Print the sum.", "input_output": json.dumps({"inputs": ["1 2\n"], "outputs": ["3\n"]})}
CALLED = {"question": "Sort.", "input_output": {"fn_name": "f", "inputs": [[[3, 1]]], "outputs": [[1, 3]]}}


@table(
    ("row", "kind", "answer"),
    [
        ({"question": "6 + 6?", "answer": "It is 6+6=<<6+6=12>>12.\n#### 1,012"}, "answer", "1012"),
        ({"Problem": "1/2 + 1/3?", "Solution": r"So \boxed{\frac{5}{6}}."}, "answer", r"\frac{5}{6}"),
        ({"prompt": "2 + 2", "gold": 4}, "answer", "4"),
        ({"question": "1,000 + 450?", "answer": "1000+450 = 1450\n#### 1,450"}, "answer", "1450"),
        ({"question": "In all?", "answer": "48/2 = <<48/2=24>>24.\n48+24 = <<48+24=72>>72.\n#### 72"}, "answer", "72"),
        ({"question": "Capital of France?", "target": "Paris"}, "exact", "Paris"),
        ({"question": "3 ? 5: which sign?", "answer": "<"}, "answer", "<"),
        ({"question": "6 ? 3 = 2: which operation?", "answer": "/"}, "answer", "/"),
        (ADD, "program", ADD["code"]),
        (HUMAN_EVAL, "program", HUMAN_EVAL["canonical_solution"]),
        (APPS, "program", ""),
        (CALLED, "program", ""),
        ({"formal_statement": "theorem t : 1 = 1 := sorry", "header": "import Init"}, "lean", ""),
        ({"question": "Which x?", "claim": "(declare-const x Int)\n(assert (> x 3))"}, "smt", ""),
        ({"question": "Write.", "checklist": [{"item": "length", "name": "n", "target": 60}]}, "checklist", ""),
        ({"question": "q", "spec": {"kind": "exact", "expected": "a"}, "answer": "a"}, "exact", "a"),
    ],
)
def test_the_columns_of_the_field_are_read(row: dict[str, Any], kind: str, answer: str) -> None:
    made = row_of(row, "auto", "f.jsonl:1")
    assert (made.spec.kind, made.answer, made.origin) == (kind, answer, "f.jsonl:1")
    assert made.question


def test_a_test_becomes_an_example_and_the_question_names_its_function() -> None:
    made = row_of(HUMAN_EVAL, "auto", "")
    shown = [(one.arguments, one.expected) for one in made.spec.examples]
    assert (made.spec.function, shown) == ("double", [("2", "4"), ("x=5", "10")])
    assert row_of(ADD, "auto", "").question.endswith("The function is called `add`.")
    assert [(one.arguments, one.expected) for one in row_of(CALLED, "auto", "").spec.examples] == [("[3, 1]", "[1, 3]")]
    assert row_of(ADD, "auto", "").form is AnswerForm.BLOCK


@table(
    ("row", "kind", "why"),
    [
        ({"question": "q"}, "auto", "no final answer"),
        ({"question": "q", "answer": "30+42\n#### ,"}, "auto", "only punctuation"),
        ({"question": "q", "solution": "First add 60 and 120, then the answer is: 180."}, "auto", "no final answer"),
        ({"question": "q", "solution": "Three dogs have 12 legs."}, "auto", "no final answer"),
        ({"answer": "4"}, "auto", "no question"),
        ({"question": "q" * 50_000, "answer": "4"}, "auto", "longer than"),
        ({"question": "q", "answer": "long\ntext"}, "auto", "no final answer"),
        ({"question": "q", "answer": "He has 6.\n#### ,"}, "auto", "only punctuation .','."),
        ({"question": "q", "answer": "..."}, "auto", "only punctuation .'\\.\\.\\.'"),
        ({"question": "q", "answer": "\u2014"}, "auto", "--kind exact if meant"),
        ({"question": "q", "answer": "He has 6. ####"}, "auto", "no final answer"),
        ({"question": "q", "answer": "4"}, "lean", "no statement"),
        ({"question": "q", "tests": "import os\nassert os.system('x') == 0"}, "auto", "not compare a call"),
        ({"question": "q", "tests": "assert f(open('/etc/passwd')) == 1"}, "auto", "not plain"),
        ({"question": "q", "tests": "assert f(1) > 1"}, "auto", "not compare a call"),
        ({"question": "q", "tests": "assert f(1) == 1\nassert g(1) == 1"}, "auto", "more than one function"),
        ({"question": "q", "tests": "def f(:"}, "auto", "not Python"),
        ({"question": "q", "tests": "(" * 20_000}, "auto", "not Python"),
        ({"question": "q", "tests": {"inputs": ["1"], "outputs": []}}, "auto", "inputs and outputs differ"),
        ({"question": "q", "spec": {"kind": "nonsense"}}, "auto", "invalid check"),
        ({"question": "q", "checklist": "be nice"}, "auto", "not a list"),
        ({"question": "Which?", "choices": ["0", "4"], "answer": 1}, "auto", "in the column choices"),
        ({"question": "How many?", "Body": "A pack costs 76.", "answer": "51.0"}, "auto", "in the column body"),
        ({"instruction": "Add them.", "input": "1, 2", "output": "3"}, "auto", "in the column input"),
        ({"question": "q", "answer": "proof"}, "auto", "a placeholder .'proof'"),
        ({"question": "q", "answer": "NaN"}, "auto", "a placeholder"),
        ({"question": "q", "answer": True, "label": 7}, "auto", "column answer is not one text or number"),
        ({"question": "q", "answer": ["5", "6"], "output": "7"}, "auto", "column answer is not one text or number"),
        ({"question": "q", "answer": "5\u200b"}, "auto", "hidden character"),
        ({"question": "q", "answer": "\u202e15"}, "exact", "hidden character"),
        ({"question": "q", "solution": "so \\boxed{5}\n#### Conclusion"}, "auto", "different final answers"),
        ({"question": "q\ud800", "answer": "4"}, "auto", "lone surrogate"),
        ({"question": "q", "answer": "\ud800"}, "auto", "valid string"),
        ({"question": "q", "answer": "\ud800"}, "exact", "valid string"),
        ({"question": "q", "claim": "(declare-const x Int)", "solution": "\ud800"}, "smt", "lone surrogate"),
        ({"question": "q", "tests": '["assert f(1) == 2", "\\ud800"]'}, "auto", "lone surrogate"),
        ({"formal_statement": "theorem t : \ud800 := sorry"}, "auto", "valid string"),
        ({"question": "q", "spec": {"kind": "exact", "expected": "\ud800"}}, "auto", "valid string"),
        (
            {"question": "q", "checklist": '[{"item": "soft", "name": "n", "point": "\\ud800"}]'},
            "auto",
            "lone surrogate",
        ),
    ],
)
def test_what_is_no_problem_with_a_check_says_why(row: dict[str, Any], kind: OwnKind, why: str) -> None:
    with pytest.raises(RowError, match=why):
        row_of(row, kind, "f:1")


def test_a_part_of_a_question_may_be_in_a_column_of_its_own_too() -> None:
    row = {"question": "Which?\nA) 21\nB) 22", "choices": {"text": ["21", "22"], "label": ["A", "B"]}, "answer": "B"}
    assert row_of(row, "auto", "f:1").answer == "B"
    assert row_of({"question": "Which word?", "answer": "proof"}, "exact", "f:1").answer == "proof"


def test_the_last_box_is_read_with_its_brackets() -> None:
    assert last_box(r"\boxed{1} and \boxed{\frac{1}{2}}") == r"\frac{1}{2}"
    assert last_box(r"\boxed{1") == ""


@pytest.mark.parametrize("missing", [float("nan"), float("inf"), None])
def test_what_a_table_lacks_is_no_answer(missing: float | None) -> None:
    with pytest.raises(RowError, match="no final answer"):
        row_of({"question": "Which one?", "answer": missing}, "auto", "")
    with pytest.raises(RowError, match="no question"):
        row_of({"question": missing, "answer": "5"}, "auto", "")
    assert row_of({"question": "6?", "answer": missing, "solution": r"\boxed{6}"}, "auto", "").answer == "6"


@pytest.mark.parametrize(
    "name", ["1/2/2024", "2024-5-1", "1.5.2024", "555-1234", "+49-30-1234", "192.168.0.1", "10\u201320"]
)
def test_a_date_or_a_number_that_names_something_is_no_sum(name: str) -> None:
    assert row_of({"question": "Which one?", "answer": name}, "auto", "").spec.kind == "exact"
    assert row_of({"question": "Which one?", "answer": name}, "answer", "").spec.kind == "answer"


@pytest.mark.parametrize("value", ["1/2", "-7", "1.5", "2^10-1", "3-x", "1,000"])
def test_a_value_is_compared_as_one(value: str) -> None:
    assert row_of({"question": "How much?", "answer": value}, "auto", "").spec.kind == "answer"


def test_of_two_values_of_one_name_none_is_chosen() -> None:
    with pytest.raises(RowError, match="two columns named 'answer'"):
        row_of({"question": "6?", "answer": "6", "Answer ": "7"}, "auto", "")
    assert row_of({"question": "6?", "answer": "6", "Answer ": ""}, "auto", "").answer == "6"


def test_a_check_of_what_a_world_holds_needs_one() -> None:
    spec = {"kind": "files", "declared": ["a.txt"], "files": [{"path": "a.txt", "equals": "hi"}]}
    scored = {"kind": "files", "declared": ["r.json"], "foreign": {"rewards": ["r.json"]}}
    for one in (spec, scored):
        with pytest.raises(RowError, match="judges a world"):
            row_of({"question": "Make a.txt.", "spec": one}, "auto", "")


def test_a_heading_is_no_mark_of_an_answer() -> None:
    text = "#### Work\n2 + 4\n#### Final answer\n\n\\boxed{6}"
    assert row_of({"question": "2 + 4?", "solution": text}, "auto", "").answer == "6"
    assert row_of({"question": "2 + 4?", "solution": "So\n#### Answer: $\\boxed{6}$"}, "auto", "").answer == "6"
    with pytest.raises(RowError, match="no final answer"):
        row_of({"question": "Who?", "solution": "#### Conclusion\nHence nobody."}, "auto", "")


def test_results_are_unwrapped_where_all_of_them_are_wrapped() -> None:
    tests = {"fn_name": "f", "inputs": [[1], [2]], "outputs": [[1], [1, 2]]}
    mixed = row_of({"question": "Count.", "input_output": tests}, "auto", "").spec
    assert [one.expected for one in mixed.examples] == ["[1]", "[1, 2]"]
    all_wrapped = row_of({"question": "Count.", "input_output": tests | {"outputs": [[1], [[1, 2]]]}}, "auto", "").spec
    assert [one.expected for one in all_wrapped.examples] == ["1", "[1, 2]"]


@pytest.mark.parametrize("around", ["if False:", "for n in []:", "while 0:", "with nothing:"])
def test_an_assertion_that_may_never_run_is_no_test(around: str) -> None:
    with pytest.raises(RowError, match="may run never"):
        row_of({"question": "f?", "tests": f"assert f(1) == 2\n{around}\n    assert f(1) == 3"}, "auto", "")

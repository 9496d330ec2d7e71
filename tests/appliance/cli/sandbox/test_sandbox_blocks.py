"""When a typed block has ended, in a terminal and in a file, and what of it is sent."""

from __future__ import annotations

import contextlib
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS
from tables import table

from appliance.cli.sandbox.blocks import Blocks, as_typed, shown_value


def blocks_of(text: str, *, patient: bool) -> list[str]:
    blocks = Blocks(patient=patient)
    found = [block for line in text.split("\n") for block in blocks.feed(line)]
    return found + blocks.rest()


@table("patient", [False, True])
@table(
    ("text", "expected"),
    [
        ("x = 1\nx", ["x = 1", "x"]),
        ("(1 +\n2)\n3", ["(1 +\n2)", "3"]),
        ("'''a\n\nb'''\n1", ["'''a\n\nb'''", "1"]),
        ("\n  \n1", ["1"]),
        ("for i in x:\n    i\nelse:\n    2\nprint(3)", ["for i in x:\n    i\nelse:\n    2", "print(3)"]),
        ("@d\ndef f():\n    pass\nf()", ["@d\ndef f():\n    pass", "f()"]),
        ("if x:\n    1\n# a remark\n    2\n3", ["if x:\n    1\n# a remark\n    2", "3"]),
        ("1 +\n2", ["1 +", "2"]),
        ("x = \0\ny", ["x = \0", "y"]),
        ("try:\n    1\nexcept E:\n    2\nfinally:\n    3", ["try:\n    1\nexcept E:\n    2\nfinally:\n    3"]),
    ],
)
def test_a_block_ends_where_python_says(text: str, expected: list[str], patient: bool) -> None:
    assert blocks_of(text, patient=patient) == expected


def test_an_empty_line_ends_a_block_at_a_terminal_and_not_in_a_file() -> None:
    text = "def f():\n    a = 1\n\n    return a\nf()"
    assert blocks_of(text, patient=True) == ["def f():\n    a = 1\n\n    return a", "f()"]
    assert blocks_of("def f():\n    return 1\n\nf()", patient=False) == ["def f():\n    return 1\n", "f()"]


def test_words_of_the_shell_may_come_between_blocks_only() -> None:
    blocks = Blocks(patient=True)
    assert blocks.between
    blocks.feed("x = '''")
    assert not blocks.between
    blocks.drop()
    blocks.feed("if x:")
    assert not blocks.between
    blocks.feed("    1")
    assert blocks.between


@settings(max_examples=FROM_STRANGERS)
@given(st.text(), st.booleans())
def test_no_text_breaks_it_and_no_line_is_lost(text: str, patient: bool) -> None:
    found = blocks_of(text, patient=patient)
    assert [line for line in "\n".join(found).split("\n") if line.strip()] == [
        line for line in text.split("\n") if line.strip()
    ]


@table(
    ("source", "shown"),
    [
        ("1 + 1", "2\n"),
        ("1 + 1;", "2\n"),
        ("1 + 1  # two", "2\n"),
        ("[\n1,\n2]", "[1, 2]\n"),
        ("(y := 5)", "5\n"),
        ("1, 2", "(1, 2)\n"),
        ("None", ""),
        ("'a'", "'a'\n"),
        ("(n for n in ()).__class__.__name__", "'generator'\n"),
        ("x = 1", ""),
        ("1; 2", ""),
        ("'é' 'ü'", "'éü'\n"),
    ],
)
def test_a_single_expression_shows_its_value(source: str, shown: str) -> None:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(shown_value(source), "<test>", "exec"), {})
    assert output.getvalue() == shown


@pytest.mark.parametrize("source", ["x +", "\0", "(" * 500, "def", "é ="])
def test_what_cannot_be_parsed_here_is_sent_as_it_is(source: str) -> None:
    assert shown_value(source) == source


def test_a_traceback_shows_the_lines_that_were_typed() -> None:
    trace = "line 1, in <module>: __import__('sys').displayhook((f(\nline 9, in <module>: kept\nline 2, in f: kept"
    assert as_typed(trace, "f(\n1)") == "line 1, in <module>: f(\nline 9, in <module>: kept\nline 2, in f: kept"

"""The reader takes whole expressions, in linear time, and refuses everything else by name."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS, examples
from tables import table

from verifiers.smt.language.errors import ClaimError
from verifiers.smt.language.reader import CLAIM, SUBMISSION, Atom, Form, Node, read
from verifiers.smt.language.render import name_text, query_text
from verifiers.smt.language.script import read_text

PIECES = ["(", ")", " ", "\n", "x", "|a b|", "|", '"', '"s"', ";", "; c\n", "0", "12", "00", "1.5", "1.", "#x", "#xfF"]
PIECES += ["#b01", "#b2", ":k", ":", "_", "!", "let", "((x 1))", "\\", "é", "\x00", "\u202e", "-1", "'", ",", "[", "{"]


def shape(node: Node) -> object:
    return (node.kind, node.text) if isinstance(node, Atom) else [shape(each) for each in node.items]


def test_all_kinds_of_atoms_are_read() -> None:
    found = [shape(node) for node in read('a |b c| 12 1.50 #xfF #b01 :named "s ""t""" ; the rest', CLAIM)]
    assert found == [
        ("symbol", "a"),
        ("symbol", "b c"),
        ("numeral", "12"),
        ("decimal", "1.50"),
        ("hexadecimal", "fF"),
        ("binary", "01"),
        ("keyword", "named"),
        ("string", 's ""t""'),
    ]


def test_brackets_are_read_as_they_nest() -> None:
    assert shape(read("(a (b) ())", CLAIM)[0]) == [("symbol", "a"), [("symbol", "b")], []]


@table(
    "text",
    [
        *"()#[",
        "{}",
        "(a",
        "a)",
        "|a",
        '"a',
        "01",
        "1x",
        "1.",
        ".5",
        "#b2",
        "#xg",
        "'a",
        "a,b",
        "é",
        "\x00",
        "x|y|z(",
        "@a",
        ".a",
        "?t1",
        "|@a|",
        "|a\\b|",
        "|é|",
        "|\x07|",
        "9" * 4_001,
        "a" * 129,
        "\u2028",
        "−1",
    ],
)
def test_what_is_not_in_the_language_is_refused(text: str) -> None:
    with pytest.raises(ClaimError):
        read(text, CLAIM)


@pytest.mark.parametrize("text", ["(" * 1_000_000, ")" * 190_000, "(" * 190_000, "a " * 95_000, "()" * 95_000, "|" * 9])
def test_bombs_are_refused_at_once(text: str) -> None:
    started = time.process_time()
    with pytest.raises(ClaimError):
        read(text, CLAIM)
    assert time.process_time() - started < 5


def test_a_comment_ends_with_its_line() -> None:
    assert [shape(node) for node in read("a ; b\n c", CLAIM)] == [("symbol", "a"), ("symbol", "c")]


def test_an_error_says_where() -> None:
    with pytest.raises(ClaimError, match="character 4"):
        read("(a ]", CLAIM)


def written(node: Node) -> str:
    if isinstance(node, Form):
        return f"({' '.join(map(written, node.items))})"
    match node.kind:
        case "symbol":
            return name_text(node.text)
        case "string":
            return f'"{node.text}"'
        case kind:
            return {"hexadecimal": "#x", "binary": "#b", "keyword": ":"}.get(kind, "") + node.text


def check_text(text: str) -> None:
    try:
        found = read(text, SUBMISSION)
    except ClaimError:
        return
    again = read(" ".join(map(written, found)), SUBMISSION)
    assert [shape(node) for node in again] == [shape(node) for node in found]


@settings(max_examples=examples(300, quick=FROM_STRANGERS), deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_text_is_read_or_refused_and_reads_again_as_the_same(text: str) -> None:
    check_text(text)


@pytest.mark.slow
@settings(max_examples=200_000, deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=60).map("".join)))
def test_any_text_at_all_is_read_or_refused(text: str) -> None:
    check_text(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(declare-const x Int)(assert (= (x) 1))", "without parentheses"),
        ("(declare-const x Int)(assert (let ((x 1)) (= (x) 1)))", "without parentheses"),
        ("(declare-fun f (Int) Int)(assert (let ((f 1)) (= (f 1) 1)))", "a variable here"),
        ("(declare-fun f (Int) Int)(assert (forall ((f Int)) (= (f 1) 1)))", "a variable here"),
        ("(declare-const x Int)(assert (> x -1))", "write \\(- 1\\)"),
        ("(declare-const -1x Int)(assert (> -1x 0))", "not a number"),
    ],
)
def test_what_other_readers_read_otherwise_or_not_at_all_is_refused(text: str, why: str) -> None:
    with pytest.raises(ClaimError, match=why):
        read_text(text)


def test_a_quoted_name_that_looks_like_a_number_is_written_in_quotes() -> None:
    claim = read_text("(declare-const |-1| Int)(assert (> |-1| 0))")
    assert "(assert (> |-1| 0))" in query_text([claim.assertions[0].term])

"""Lean's text as words: nothing is lost, and comments, strings and code are told apart as Lean does."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lean_kit import Local

from verifiers.lean.reading.lexer import TokenKind, code, line_and_column, plain, without_comments, words

PIECES = st.lists(
    st.sampled_from(
        ["--", "/-", "-/", "/--", '"', "'", "\\", "\n", " ", "a", "«", "»", ".", "r#", "#", "((((((((", "é"]
    )
    | st.text(max_size=3),
    max_size=40,
).map("".join)


@settings(deadline=None)
@given(PIECES)
def test_no_character_is_lost(text: str) -> None:
    found = list(words(text))
    assert "".join(word.text for word in found) == text
    assert all(text[word.start : word.end] == word.text for word in found)


def test_comments_nest() -> None:
    assert [word.text for word in code("a /- b /- c -/ d -/ e -- f\ng")] == ["a", "e", "g"]


def test_the_sign_after_the_start_of_a_comment_begins_nothing() -> None:
    assert [word.text for word in code("/-/- x -/ a")] == ["a"]
    assert [word.text for word in code("/-/ x -/ a")] == ["a"]


def test_a_comment_that_does_not_end_is_left_for_lean_to_refuse() -> None:
    found = code("a /- /- b -/")
    assert [(word.text, word.kind) for word in found[1:]] == [("/- /- b -/", TokenKind.UNCLOSED)]
    assert found[1].doubtful
    assert without_comments("a /- b", words("a /- b")) == "a /- b"


def test_what_is_left_without_comments_has_everything_else_in_its_place() -> None:
    text = 'a--é b\n/- c\n/- d -/ -/ «e--f» "--" /-- g -/ h'
    left = without_comments(text, words(text))
    assert left == 'a     \n    \n           «e--f» "--"          h'
    assert [(word.text, word.start) for word in code(left)] == [(word.text, word.start) for word in code(text)]


def test_marks_inside_strings_begin_no_comment() -> None:
    assert [word.kind for word in code('"-- /-" "\\"--" r#"a"--b"# x')] == [TokenKind.STRING] * 3 + [TokenKind.NAME]


def test_a_character_may_be_a_quotation_mark() -> None:
    assert [word.text for word in code("'\"' a '\\'' b")] == ["'\"'", "a", "'\\''", "b"]


def test_names_have_primes_and_quotation_marks_of_their_own() -> None:
    assert [word.text for word in code("h' «sorry».x₁ foo.«a b»")] == ["h'", "«sorry».x₁", "foo.«a b»"]
    assert plain("«debug».«skipKernelTC»") == "debug.skipKernelTC"


def test_two_primes_begin_no_character() -> None:
    assert [word.kind for word in code("f '' s")] == [TokenKind.NAME, TokenKind.MARK, TokenKind.MARK, TokenKind.NAME]


def test_a_comment_right_behind_a_symbol_is_doubtful() -> None:
    assert any(word.doubtful for word in words("x |-- y"))
    assert not any(word.doubtful for word in words("x -- y\n(/- z -/)"))


def test_a_quotation_right_behind_a_symbol_is_doubtful() -> None:
    assert any(word.doubtful for word in words("f ⁻¹'\"'\" evil"))


def test_a_comment_at_the_start_of_a_documentation_comment_is_doubtful() -> None:
    assert any(word.doubtful for word in words("/-- -- /-\n -/ evil"))
    assert not any(word.doubtful for word in words("/-- fine -- /- so -/ -/ x"))


def test_places_count_from_one() -> None:
    assert line_and_column("ab\ncd", 4) == (2, 2)
    assert line_and_column("ab", 0) == (1, 1)


def test_many_brackets_are_quick_and_whole() -> None:
    text = "(" * 200_000
    assert [word.text for word in words(text)] == [text]


INSIDE = st.lists(
    st.sampled_from(["--", "/-", "-/", "/--", "\n", " ", "x", "-", "/", '"', "\\", "'", "|", "{", "r#", '\\"', "'a'"]),
    max_size=4,
).map("".join)
ITEMS = st.lists(
    st.one_of(
        INSIDE.map(lambda text: f"--{text}\n"),
        INSIDE.map(lambda text: f"/-{text}-/"),
        INSIDE.map(lambda text: f"/--{text}-/ theorem probe : True := True.intro\n"),
        INSIDE.map(lambda text: f'#check_failure "{text}"\n'),
        INSIDE.map(lambda text: f'#check_failure r#"{text}"#\n'),
        INSIDE.map(lambda text: f"#check_failure '{text[:1]}'\n"),
    ),
    min_size=1,
    max_size=3,
).map("".join)


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(before=ITEMS)
def test_what_lean_reads_as_code_is_code_here(local: Local, before: str) -> None:
    text = f"{before}\n#print axioms rfl\n"
    answer = local.ask({"do": "step", "module": "X", "source": text, "seconds": 60, "memory_mib": 2048})
    lean_reads_it = "'rfl' does not depend" in answer["out"] and '"error"' not in answer["out"]
    ours = any(word.text == "#print" for word in code(text)) or any(word.doubtful for word in words(text))
    assert ours or not lean_reads_it, text

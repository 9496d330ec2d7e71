"""What people write as TOML is read or refused, and never waited for."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS
from tables import table

from common.toml_files import TomlError, beginning, read_toml
from policies.errors import PolicyError
from policies.policy import MOST_BYTES, load, parse, version_of

UNREADABLE = {
    "nested deeply": "a = " + "[" * 50_000,
    "tables nested deeply": "a = " + "{ a = " * 50_000,
    "a long number": f"version = {'9' * 5_000}",
    "a long number behind an earlier version": f"version = 3\nb = {'9' * 5_000}",
    "a number of more than 64 bits": f"a = [{{b = {1 << 63}}}]",
    "a key of many parts": "a." * 500_000 + "a = 1",
    "a table of many parts": f"[{'a . ' * 200_000}a]",
    "a key of many parts in quotes": """"a".'a'.""" * 100_000 + "a = 1",
    "a key of many quotes": r'"\"".' * 100_000 + "a = 1",
    "no TOML": "a = = 3",
    "a day that does not exist": "a = 2026-02-30",
}


@table("text", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_text_that_cannot_be_read_is_refused_as_toml_and_as_a_policy(text: str) -> None:
    with pytest.raises(TomlError) as caught:
        read_toml(text)
    assert "set_int_max_str_digits" not in str(caught.value)
    with pytest.raises(PolicyError, match=r"policy\.toml: ") as refused:
        parse(text.encode(), "policy.toml")
    assert refused.value.hint
    assert version_of(text.encode()) is None


LINES = st.sampled_from(
    [
        "a = 1",
        "b = 'x'",
        "[c]",
        "[[d]]",
        "e.f = [1, 2]",
        "g = {h = 1}",
        "i = 2026-11-27",
        "# j",
        "k",
        "= 1",
        "m = [",
        'n = "',
    ]
)


@settings(max_examples=FROM_STRANGERS)
@given(st.text(max_size=200) | st.lists(LINES, max_size=4).map("\n".join))
def test_whatever_the_text_it_is_a_table_or_refused(text: str) -> None:
    with suppress(TomlError):
        assert isinstance(read_toml(text), dict)


def test_a_policy_is_a_regular_file_of_a_size_that_a_person_writes(tmp_path: Path) -> None:
    pipe, large = tmp_path / "pipe", tmp_path / "large.toml"
    os.mkfifo(pipe)
    for path in (Path("/dev/zero"), Path("/dev/null"), pipe):
        with pytest.raises(PolicyError, match="not a regular file"):
            load(path)
    large.write_bytes(b"#" * (MOST_BYTES + 1))
    for refused in (lambda: load(large), lambda: parse(large.read_bytes(), "large.toml")):
        with pytest.raises(PolicyError, match="larger than 1048576 bytes"):
            refused()
    os.truncate(large, 1 << 40)
    assert len(beginning(large, 100)) == 101
    large.write_bytes(b"#" * MOST_BYTES)
    with pytest.raises(PolicyError, match="version: missing key"):
        load(large)


def test_words_that_stand_in_a_text_are_no_key() -> None:
    words = ". ".join(["one or two words"] * 50_000)
    assert read_toml(f'a = "{words}"')["a"] == words
    dotted = "a." * 199 + "a"
    assert read_toml(f"{dotted} = 1").keys() == {"a"}


def test_a_link_to_a_regular_file_is_read_through(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"a = 1")
    (tmp_path / "link").symlink_to("real")
    assert beginning(tmp_path / "link", 100) == b"a = 1"


DENSE = {
    "lists": ("a = [" + "[]," * 300_000 + "]", "more than 200000 lists and tables"),
    "tables": ("[[a]]\n" * 110_000, "more than 200000 lists and tables"),
    "numbers": ("a = [" + "1," * 1_200_000 + "]", "more than 1000000 values"),
    "keys": ("".join(f"a{n} = 1\n" for n in range(10_001)), "more than 10000 keys"),
    "an unclosed text": ('a = """' + "[[" * 200_000, "Unterminated string"),
    "an unclosed text of quotes": ('a = "' + '\\"[' * 300_000, "Unterminated string"),
    "quotes": ('"' * 600_001 + "[" * 300_000, "line"),
}


@pytest.mark.parametrize("name", DENSE)
def test_a_text_with_more_than_a_person_writes_is_refused_before_it_is_parsed(name: str) -> None:
    text, said = DENSE[name]
    with pytest.raises(TomlError, match=said):
        read_toml(text)


def test_brackets_in_texts_and_comments_are_not_counted() -> None:
    text = 'a = """' + "[[1],[2]]," * 80_000 + "\"\"\"\nb = '''" + "{}," * 200_000 + "''' # " + "[" * 300_000
    assert read_toml(text).keys() == {"a", "b"}

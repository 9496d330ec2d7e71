"""One reader of JSON that somebody else wrote."""

from __future__ import annotations

import json
import tracemalloc
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import table

from common.strict_json import BYTES_PER_VALUE, Bounds, NotJsonError, read, require_bounds

WIDE = Bounds(size=1 << 20)
REFUSED = {
    "a name twice": (b'{"a": 1, "a": 2}', "duplicate name 'a'"),
    "a name twice, escaped": (b'{"a": 1, "\\u0061": 2}', "duplicate name 'a'"),
    "NaN": (b"[NaN]", "NaN is not JSON"),
    "infinity": (b"-Infinity", "-Infinity is not JSON"),
    "not UTF-8": (b'"\xff"', "not UTF-8 at byte 1"),
    "a mark of byte order": (b"\xef\xbb\xbf1", "line 1 column 1"),
    "a lone surrogate": (b'["\\ud800"]', "a lone surrogate"),
    "a lone surrogate as a name": (b'{"\\uDC00": 1}', "a lone surrogate"),
    "a lone surrogate in text": ('"\ud800"', "a lone surrogate"),
    "an integer without end": (b"1" * 5000, "an integer of more than 4300 digits"),
    "two documents": (b"1 2", "line 1 column 3"),
    "nothing": (b"", "line 1 column 1"),
    "a control character": (b'"\n"', "line 1 column 2"),
}


@table("text, message", REFUSED.values())
def test_what_two_readers_would_read_differently_is_refused_and_named(text: bytes | str, message: str) -> None:
    with pytest.raises(NotJsonError) as refused:
        read(text, WIDE)
    assert message in str(refused.value)


BOUNDED = {
    "size": (b"[" + b" " * (1 << 20) + b"]", "longer than 1048576 bytes"),
    "lists": (b"[" * 200 + b"]" * 200, "nested more than 64 deep"),
    "unclosed lists": (b"[" * 100_000, "more than 100000 values"),
    "objects in lists": (b'[{"a":' * 40 + b"1" + b"}]" * 40, "nested more than 64 deep"),
    "empty lists": (b"[" + b"[]," * 60_000 + b"[]]", "more than 100000 values"),
    "numbers": (b"[" + b"0," * 100_000 + b"0]", "more than 100000 values"),
    "a text that does not end": (b'["\\', "not JSON"),
}


@table("text, message", BOUNDED.values())
def test_a_text_over_a_bound_is_refused_before_it_is_parsed(text: bytes, message: str) -> None:
    with pytest.raises(NotJsonError) as refused:
        read(text, WIDE)
    assert message in str(refused.value)


def test_brackets_in_texts_are_not_counted() -> None:
    text = json.dumps(["[" * 90_000 + '"' + "," * 90_000 + "\\"])
    assert read(text, WIDE) == json.loads(text)


def test_a_text_of_escaped_quotes_takes_time_proportional_to_its_size() -> None:
    require_bounds(b'"' + b'\\"' * 500_000, WIDE)


def test_decimals_are_exact_where_the_caller_reads_them_so() -> None:
    assert read("[0.1, 1e2]", WIDE, parse_float=Decimal) == [Decimal("0.1"), Decimal("1e2")]


@pytest.mark.parametrize("part", [b"[]", b"{}", b'{"aaaa":300}', b"1000", b'"abcd"', b"1.5", b"[[]]"])
def test_what_is_parsed_takes_memory_in_proportion_to_its_values(part: bytes) -> None:
    count = 50_000
    text = b"[" + b",".join([part] * count) + b"]"
    values = 1 + count * (1 + part.count(b":") + (part == b"[[]]"))
    tracemalloc.start()
    read(text, Bounds(size=1 << 24, values=1 << 20, containers=1 << 20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 4 * len(text) + BYTES_PER_VALUE * values


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


@given(PLAIN)
def test_plain_data_is_read_as_it_was_written(value: Any) -> None:
    assert read(json.dumps(value), WIDE) == value

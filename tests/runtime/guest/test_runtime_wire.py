"""Frames survive any way of being cut, and a length that contradicts itself ends the conversation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.guest import kinds, ops, wire
from runtime.guest.frames import REQUEST, FrameReader, fields_of
from runtime.guest.wire import Op, ReplyKind

nonces = st.binary(min_size=16, max_size=16)
replies = st.lists(
    st.tuples(nonces, st.sampled_from(ReplyKind), st.binary(max_size=50), st.binary(max_size=50)), max_size=5
)
requests = st.lists(
    st.tuples(nonces, st.sampled_from(Op), st.integers(0, 2**32 - 1), st.binary(max_size=50)), max_size=5
)


@given(replies, st.integers(1, 70))
def test_replies_come_out_as_they_went_in_however_they_are_cut(sent: list[tuple], size: int) -> None:
    data = b"".join(wire.pack_reply(*each) for each in sent)
    decoder = wire.Replies(1_000)
    found = [reply for start in range(0, len(data), size) for reply in decoder.replies(data[start : start + size])]
    assert [tuple(reply) for reply in found] == sent


@given(requests, st.integers(1, 70))
def test_requests_come_out_as_they_went_in_however_they_are_cut(sent: list[tuple], size: int) -> None:
    data = b"".join(wire.pack_request(*each) for each in sent)
    decoder = FrameReader(REQUEST)
    found = [request for start in range(0, len(data), size) for request in decoder.feed(data[start : start + size])]
    assert [(*header[1:], body) for header, body in found] == sent


@pytest.mark.parametrize(("length", "output"), [(1_001, 0), (10, 11), (2**32 - 1, 0)])
def test_a_header_that_announces_too_much_is_refused_before_it_is_waited_for(length: int, output: int) -> None:
    with pytest.raises(wire.FrameError):
        wire.Replies(1_000).replies(wire.REPLY.pack(length, b"n" * 16, 0, output))


def test_numbers_and_names_on_the_wire_are_the_same_on_both_sides() -> None:
    for module, names in ((ops, Op), (kinds, ReplyKind)):
        numbers = {name: value for name, value in vars(module).items() if type(value) is int}
        assert numbers == {each.name: each.value for each in names}
    assert set(kinds.FROM_USER_PROCESS) == {ReplyKind.OK, ReplyKind.EXCEPTION}


paths = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@given(st.lists(paths, max_size=4), st.binary(max_size=50))
def test_fields_and_content_come_out_as_they_went_in(argv: list[str], content: bytes) -> None:
    env = {"A": "1=2", "B": ""}
    asked = wire.exec_body(argv, content, seconds=1.5, output_bytes=7, env=env, cwd="/tmp", user="joe", staged=9)
    fields, rest = fields_of(asked)
    assert fields == ["1.5", "7", "9", "joe", "/tmp", "2", "A=1=2", "B=", *argv]
    assert bytes(rest) == content


def test_a_name_that_is_no_text_keeps_its_bytes_and_one_with_a_zero_is_refused() -> None:
    fields, _ = fields_of(wire.read_body("/work/\udcff", offset=1, max_bytes=2))
    assert fields == ["/work/\udcff", "1", "2"]
    with pytest.raises(ValueError, match="zero"):
        wire.list_body("/work/\0", entries=1)

"""What strangers send to the readers of requests, frames, specs and tasksets: little memory, one error, in time."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from pydantic import Field, ValidationError

from appliance.client.messages import SubmitJob
from appliance.gateway.chat_request import ChatRequest
from appliance.gateway.replies import BODY
from appliance.jobs.check import ENTRIES
from appliance.jobs.layout import BOUNDS, TRANSCRIPT_BOUNDS
from appliance.ledger.remote import _ROLLOUTS, _requests
from common.bounded_models import FirstErrorModel, InvalidInputError, first_fault, read_model, validated
from common.strict_json import Bounds, NotJsonError
from curriculum.own import taskset
from curriculum.own.taskset import OwnContent
from verifiers.registry import KINDS, kind_named
from verifiers.registry.spec import SPEC

MEBIBYTE = 1 << 20
READERS: dict[str, tuple[Any, Bounds, bytes]] = {
    "chat request": (ChatRequest, BODY, b'{"model":"champion","messages":'),
    "check in a chat request": (
        ChatRequest,
        BODY,
        b'{"model":"champion","messages":[{"role":"user","content":"x"}],"assay":{"check":{"kind":"program","examples":',
    ),
    "job": (SubmitJob, Bounds(8 << 20), b'{"question":"q","spec":{"kind":"checklist","items":'),
    "row": (OwnContent, taskset.BOUNDS, b'{"name":"a","added":"","rows":[{"question":"q","origin":"","spec":'),
    "ledger call": (_requests(), _ROLLOUTS, b'{"call":"put_rollouts","judged":[{"rollout":{"nodes":[{"ids":'),
    "transcript": (ENTRIES, TRANSCRIPT_BOUNDS, b""),
    "spec": (SPEC, BOUNDS, b'{"kind":"program","runs":'),
}


def hostile(size: int) -> Iterator[tuple[str, bytes]]:
    """JSON values of about this size, each bad for another part of a reader."""
    many = {
        "numbers": b"1",
        "texts": b'""',
        "lists": b"[]",
        "objects": b"{}",
        "small objects": b'{"a":1}',
        "nulls": b"null",
        "long numbers": b"9" * 4_000,
        "fractions": b"0." + b"1" * 50,
        "pairs": b'{"role":"user","content":"x"}',
        "escapes": b'"\\u0041\\n"',
    }
    for name, part in many.items():
        yield f"a list of {name}", b"[" + b",".join([part] * (size // (len(part) + 1))) + b"]"
    yield "wrong only at the end", b"[" + b'{"role":"user","content":"x"},' * (size // 30) + b"7]"
    yield "different names", b"{" + b",".join(b'"%d":0' % n for n in range(size // 9)) + b"}"
    yield "one name", b"{" + b",".join([b'"a":0'] * (size // 6)) + b"}"
    yield "names with lists", b"{" + b",".join(b'"%d":[[]]' % n for n in range(size // 12)) + b"}"
    yield "deep lists", b"[" * (size // 2) + b"]" * (size // 2)
    yield "deep objects", b'{"a":' * (size // 6) + b"1" + b"}" * (size // 6)
    yield "no end", b"[" * size
    yield "only ends", b"]" * size
    yield "quotes", b'"' * size
    yield "backslashes", b'"' + b"\\" * size
    yield "a long text", b'"' + b"a" * size + b'"'
    yield "a long escaped text", b'"' + b"\\u00e9" * (size // 6) + b'"'
    yield "one wide character", ('"' + "a" * size + '\U0001f600"').encode()
    yield "surrogates", b'"' + b"\\ud800" * (size // 6) + b'"'
    yield "a huge number", b"1" * size
    yield "a huge exponent", b"1e" + b"9" * size
    yield "infinite", b"[1e400" + b",1e400" * (size // 6) + b"]"
    yield "not a number", b"[NaN" + b",NaN" * (size // 4) + b"]"


@pytest.mark.parametrize("reader", READERS)
def test_what_a_stranger_sends_takes_little_memory_and_gets_one_short_error(reader: str) -> None:
    shape, bounds, start = READERS[reader]
    size = MEBIBYTE // 8
    figures = {}
    opened = [mark for mark in re.sub(rb"\[\{[^{}]*\}\]", b"", start).decode() if mark in "[{"]
    ends = "".join("]" if mark == "[" else "}" for mark in reversed(opened)).encode()
    with suppress(NotJsonError, InvalidInputError):
        read_model(shape, b"{}", bounds)  # the first use builds the schema
    for name, value in hostile(size):
        text = start + value + ends
        tracemalloc.start()
        try:
            read_model(shape, text, bounds)
            said = "accepted"
        except (NotJsonError, InvalidInputError) as error:
            said = str(error)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if peak > 10 * len(text) + 8 * MEBIBYTE or len(said) > 500 or said == "accepted":
            figures[name] = (peak / MEBIBYTE, said[:100])
    assert figures == {}


@pytest.mark.parametrize("kind", KINDS.data)
def test_a_spec_of_any_kind_that_is_wrong_in_a_million_places_has_few_errors(kind: str) -> None:
    fields = kind_named(kind).spec.load().model_fields
    for name in fields.keys() - {"kind"}:
        for wrong in ([object()] * 1_000, [{"x": 1}] * 1_000, [[0] * 1_000] * 10):
            with pytest.raises(ValidationError) as raised:
                SPEC.validate_python({"kind": kind, name: wrong})
            assert raised.value.error_count() < 60


class Part(FirstErrorModel):
    numbers: tuple[int, ...] = ()
    inner: list[Part] = Field(default_factory=list)
    by_name: dict[str, list[int]] = Field(default_factory=dict)
    chosen: list[int] | str = ""


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"numbers": ["x"] * 9}, ("numbers", 0)),
        ({"numbers": [1, 2, "x", "y"]}, ("numbers", 2)),
        ({"inner": [{"inner": [{"numbers": ["x"] * 9}] * 9}] * 9}, ("inner", 0, "inner", 0, "numbers", 0)),
        ({"by_name": {"a": ["x"] * 9}}, ("by_name", "a", 0)),
    ],
)
def test_validation_stops_at_the_first_wrong_item_at_any_depth(value: Any, place: tuple[str | int, ...]) -> None:
    with pytest.raises(InvalidInputError) as found:
        validated(Part, value)
    assert found.value.fault.place == place
    with pytest.raises(ValidationError) as raised:
        Part.model_validate_json(json.dumps(value))
    assert raised.value.error_count() == 1
    assert first_fault(raised.value).place == place

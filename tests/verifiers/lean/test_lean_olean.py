"""The outside of compiled files: what they declare, and what is left when their entries are gone."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lean_kit import Local, word
from property_budget import FROM_STRANGERS, examples

from verifiers.lean.declarations import examine
from verifiers.lean.olean import ENTRIES, Olean, OleanError

SOURCE = (
    "theorem here : 2 + 2 = 4 := rfl\nnamespace A\ndef «a b» : Nat := 1\n@[simp] theorem c : 1 = 1 := rfl\nend A\n"
    "instance : Add Bool := ⟨fun a _ => a⟩\naxiom wish : False\n"
)


def compiled(local: Local, source: str, module: str = "X") -> bytes:
    limits: dict[str, Any] = {"seconds": 60, "memory_mib": 2048, "keep": True}
    answer = local.ask({"do": "step", "module": module, "source": source} | limits)
    assert answer["code"] == 0, answer
    return base64.b64decode(answer["file"])


def entries(olean: Olean) -> dict[str, int]:
    """Extension -> how many entries it has; those without any are left out."""
    found = {}
    for at in olean._elements(olean._field(ENTRIES)):
        pair = olean._at(olean._word(at))
        if count := len(olean._elements(olean._at(olean._word(pair + 16)))):
            found[olean._name(olean._word(pair + 8), {})] = count
    return found


@pytest.fixture(scope="module")
def data(local: Local) -> bytes:
    return compiled(local, SOURCE)


def test_names_are_full_and_without_quotation_marks(data: bytes) -> None:
    assert {"here", "A.a b", "A.c", "wish"} <= set(Olean(data).names())


def test_axioms_are_told_from_theorems(data: bytes) -> None:
    assert Olean(data).axioms() == ["wish"]


def test_entries_go_and_declarations_stay(data: bytes) -> None:
    before = entries(Olean(data))
    assert any("simp" in name.lower() for name in before), before
    assert any("instance" in name.lower() for name in before), before
    bare = Olean(Olean(data).without_entries())
    assert entries(bare) == {}
    assert bare.names() == Olean(data).names()


def test_what_is_no_compiled_file_is_refused(data: bytes) -> None:
    for text in (b"", b"olean", b"x" * 200, data[:100], data[:5] + b"\x09" + data[6:], b"olean\x02" + bytes(200)):
        with pytest.raises(OleanError):
            Olean(text)


@settings(deadline=None, max_examples=examples(200, quick=FROM_STRANGERS))
@given(at=st.integers(0, 1 << 20), value=st.integers(0, (1 << 64) - 1))
def test_hostile_bytes_are_read_or_refused(data: bytes, at: int, value: int) -> None:
    at = at % (len(data) - 8) & ~7
    changed = data[:at] + word(value) + data[at + 8 :]
    try:
        olean = Olean(changed)
        olean.names()
        olean.axioms()
        olean.without_entries()
        examine(olean)
    except OleanError:
        pass


def test_a_name_that_holds_itself_is_refused(data: bytes) -> None:
    olean = Olean(data)
    base = int.from_bytes(data[80:88], "little")
    first = olean._elements(olean._field(1))[0]
    at = olean._at(olean._word(first))
    changed = data[: at + 8] + word(base + at) + data[at + 16 :]
    with pytest.raises(OleanError):
        Olean(changed).names()

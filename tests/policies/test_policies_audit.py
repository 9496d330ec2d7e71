"""Whatever is done to an audit log is found, and the first bad entry is named."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import examples
from signing_kit import private

from policies.audit import START, AuditEntry, Head, LogCheck, check, check_export, digest_of, export, read, write

KEY = private("daemon")
PUBLIC = KEY.public_key()


def log(count: int, *, key=KEY, text: str = "x") -> list[bytes]:
    lines: list[bytes] = []
    previous = START
    for number in range(count):
        at = f"2026-01-02T03:{number // 60 % 60:02}:{number % 60:02}+00:00"
        lines.append(
            write(AuditEntry(number=number, previous=previous, at=at, kind="decision", what={"text": text}), key)
        )
        previous = digest_of(lines[-1])
    return lines


def found(lines: list[bytes], *, head: bool = True, like: list[bytes] | None = None) -> LogCheck:
    """As `assay audit verify` does: by the chain, the signatures and the head that the ledger keeps."""
    return check(lines, PUBLIC, known=[Head.of((like or LOG)[-1])] if head else [])


def split(content: bytes) -> list[bytes]:
    return content.splitlines(keepends=True)


LOG = log(6)


def test_a_log_that_nobody_touched_holds() -> None:
    assert found(LOG) == LogCheck(6, Head(5, digest_of(LOG[5])))
    assert read(LOG[2]).number == 2


@pytest.mark.parametrize("number", range(6))
def test_a_deleted_entry_is_named(number: int) -> None:
    assert found(LOG[:number] + LOG[number + 1 :]).bad == number


@pytest.mark.parametrize("number", range(6))
def test_an_inserted_entry_is_named(number: int) -> None:
    stranger = log(8, key=private("mallory"))
    assert found([*LOG[:number], stranger[number], *LOG[number:]]).bad == number
    assert found([*LOG[:number], LOG[0], *LOG[number:]]).bad == (number or 1)


@pytest.mark.parametrize(("one", "other"), [(0, 5), (1, 2), (4, 5)])
def test_another_order_is_named_at_its_first_place(one: int, other: int) -> None:
    swapped = list(LOG)
    swapped[one], swapped[other] = swapped[other], swapped[one]
    assert found(swapped).bad == one


@pytest.mark.parametrize("left", range(6))
def test_a_cut_off_end_is_seen_by_the_head_that_is_kept_elsewhere(left: int) -> None:
    assert (found(LOG[:left]).bad, found(LOG[:left], head=False).bad) == (left, None if left else 0)


def test_a_history_that_was_written_anew_with_another_key_is_bad_from_its_beginning() -> None:
    forged = log(6, key=private("mallory"), text="nothing happened")
    assert found(forged, like=forged).bad == 0


def test_a_history_that_was_written_anew_with_the_daemons_key_is_found_by_a_head_that_was_noted() -> None:
    forged = log(6, text="nothing happened")
    assert found(forged, head=False).holds
    assert check(forged, PUBLIC, known=[Head.of(LOG[3])]).bad == 3


def test_every_changed_byte_is_found_in_its_entry() -> None:
    """Every byte of the log, a different bit each: exhaustive over places."""
    content = b"".join(LOG)
    starts = [sum(map(len, LOG[:number])) for number in range(len(LOG))]
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << random.Random(place).randrange(8)
        entry = max(number for number, start in enumerate(starts) if start <= place)
        verdict = found(split(bytes(changed)))
        assert verdict.bad == entry, (place, verdict)
        assert verdict.problem


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 255))
def test_any_value_in_any_place_of_an_export_is_found(where: int, value: int) -> None:
    content = EXPORT
    place = where % len(content)
    changed = content[:place] + bytes([value]) + content[place + 1 :]
    assert check_export(split(changed), PUBLIC).holds is (changed == content)


EXPORT = b"".join(export(LOG, KEY, "2026-01-03T00:00:00+00:00"))


def test_an_export_holds_without_the_ledger_and_only_to_its_end() -> None:
    lines = split(EXPORT)
    assert check_export(lines, PUBLIC) == found(LOG)
    for left in range(len(lines)):
        assert not check_export(lines[:left], PUBLIC).holds
    assert check_export([*lines[:3], lines[-1]], PUBLIC).bad == 3
    assert not check_export([*lines, lines[-1]], PUBLIC).holds
    longer = log(7)
    assert check_export([*longer, lines[-1]], PUBLIC).bad == 6


def test_a_clock_that_went_back_is_said_and_is_no_fault() -> None:
    first = write(AuditEntry(number=0, previous=START, at="2026-01-02", kind="daemon.start", what={}), KEY)
    second = write(AuditEntry(number=1, previous=digest_of(first), at="2026-01-01", kind="daemon.start", what={}), KEY)
    verdict = check([first, second], PUBLIC)
    assert (verdict.holds, verdict.back) == (True, 1)


def test_a_quick_check_reads_one_signature_and_the_whole_chain() -> None:
    forged = log(6, key=private("mallory"))
    assert check(LOG, PUBLIC, signatures=False).holds
    assert check(forged, PUBLIC, signatures=False).bad == 5
    assert check([LOG[0], *forged[1:]], PUBLIC, signatures=False).bad == 1


@pytest.mark.parametrize(
    "line", [b"", b"\n", b"{}\n", b"[]\n", b"\xff\n", b"[" * 100_000 + b"\n", b'{"entry":1,"signature":2}\n']
)
def test_rubbish_is_no_entry(line: bytes) -> None:
    assert found([*LOG[:2], line, *LOG[2:]]).bad == 2


def test_spaces_and_other_ways_to_write_the_same_are_seen() -> None:
    wide = json.dumps(json.loads(LOG[1])).encode() + b"\n"
    assert found([LOG[0], wide, *LOG[2:]]).bad == 1


@pytest.mark.parametrize("text", ["", "1", "1:", "x:" + "0" * 64, "1:" + "g" * 64, "-1:" + "0" * 64, "1:" + "A" * 64])
def test_a_head_is_written_in_one_way(text: str) -> None:
    with pytest.raises(ValueError, match="NUMBER:SHA256"):
        Head.read(text)
    assert Head.read(str(Head(3, "0" * 64))) == Head(3, "0" * 64)


@pytest.mark.slow
def test_ten_thousand_random_flips_in_a_large_log_are_all_found() -> None:
    """A megabyte in 300 entries, a flip at a time."""
    lines = log(300, text="y" * 3_000)
    head = Head.of(lines[-1])
    assert check(lines, PUBLIC, known=[head]).holds
    content = b"".join(lines)
    starts, total = [], 0
    for line in lines:
        starts.append(total)
        total += len(line)
    chance = random.Random(0)
    for _ in range(10_000):
        place = chance.randrange(len(content))
        changed = bytearray(content)
        changed[place] ^= 1 << chance.randrange(8)
        verdict = check(split(bytes(changed)), PUBLIC, known=[head], signatures=False)
        entry = max(number for number, start in enumerate(starts) if start <= place)
        assert verdict.bad in (entry, entry + 1), "the chain alone may see it by the entry after"

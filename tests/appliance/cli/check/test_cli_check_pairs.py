"""Files of pairs are read whole before anything is checked, and every fault is named by its line."""

from __future__ import annotations

import io
import json

import pytest
from tables import table

from appliance.cli.check import pairs as check_pairs
from appliance.cli.check.pairs import PairsFile
from appliance.errors import AssayError, ExitCode
from verifiers.registry import kind_named

GOOD = {"id": "a", "gold": "1/2", "prediction": "0.5"}


def pairs(*lines: object, kind: str = "answer", **base: object) -> PairsFile:
    data = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    return PairsFile(io.BytesIO(data), "p.jsonl", kind_named(kind), dict(base))


def refused(found: PairsFile) -> str:
    with pytest.raises(AssayError) as caught:
        found.scan()
    assert caught.value.code is ExitCode.USAGE
    assert caught.value.hint
    return str(caught.value)


def test_each_line_becomes_a_spec_and_a_submission() -> None:
    found = pairs(GOOD, {"id": 2, "gold": "x", "prediction": "y", "spec": {"form": "same"}}, units="ignored")
    assert found.scan().total == 2
    first, second = found.items()
    assert (first.id, first.spec.expected, first.spec.units, first.submission) == ("a", "1/2", "ignored", "0.5")
    assert (second.id, second.spec.form, second.spec.units) == (2, "same", "ignored")


def test_a_line_s_own_spec_goes_before_the_command_line_s() -> None:
    found = pairs(GOOD | {"spec": {"units": "optional"}}, units="ignored")
    found.scan()
    assert next(found.items()).spec.units == "optional"


def test_other_kinds_have_a_spec_and_a_submission() -> None:
    found = pairs({"id": 1, "spec": {"claim": "(assert true)"}, "submission": "x"}, kind="smt")
    found.scan()
    item = next(found.items())
    assert (item.spec.kind, item.spec.claim, item.submission) == ("smt", "(assert true)", "x")


CLAIM = (
    '(set-info :assay-holes "f")(set-info :assay-question entails)(declare-fun f (Int) Int)(assert (! (= (f 1) 2) '
    ":named goal))"
)


def test_what_a_line_s_claim_asks_of_itself_is_asked() -> None:
    """Before what the command line asks of all, and after what the line's own fields say."""
    lines = ({"id": 1, "spec": {"claim": CLAIM}, "submission": "x"}, {"id": 2, "submission": "x"})
    named = {"id": 3, "spec": {"claim": CLAIM, "question": "model"}, "submission": "x"}
    found = pairs(*lines, named, kind="smt", claim="(assert true)", question="optimum")
    found.scan()
    specs = [item.spec for item in found.items()]
    assert [(spec.question, spec.holes) for spec in specs] == [("entails", ("f",)), ("optimum", ()), ("model", ("f",))]
    wrong = {"id": 1, "spec": {"claim": "(set-info :assay-colour red)"}, "submission": "x"}
    assert "line 1: spec: unknown keyword :assay-colour" in refused(pairs(wrong, kind="smt"))


def test_other_keys_reach_nobody() -> None:
    found = pairs(GOOD | {"difficulty": "hard", "reward": 1, "judge": {"accept": True}})
    found.scan()
    item = next(found.items())
    assert "hard" not in repr(item)
    assert "accept" not in repr(item)


def test_numbers_are_taken_as_they_are_written() -> None:
    found = pairs(b'{"id": 1, "gold": 0.10, "prediction": 12}\n', b'{"id": 2, "gold": 1e-7, "prediction": null}\n')
    found.scan()
    first, second = found.items()
    assert (first.spec.expected, first.submission) == ("0.10", "12")
    assert (second.spec.expected, second.submission) == ("1e-7", "")


def test_blank_lines_a_mark_of_unicode_and_a_missing_last_line_end_are_no_faults() -> None:
    line = json.dumps(GOOD).encode()
    assert pairs(b"\xef\xbb\xbf" + line + b"\r\n", b"\n", b"  \n", line.replace(b'"a"', b'"b"')).scan().total == 2


@table(
    ("line", "fault"),
    [
        (b"{", "not JSON at column 2"),
        (b'"text"\n', "not a JSON object"),
        (b'{"gold": "1", "prediction": "1"}\n', "`id` is missing"),
        (b'{"id": "b", "prediction": "1"}\n', "`gold` is missing"),
        (b'{"id": "b", "gold": "1"}\n', "`prediction` is missing"),
        (b'{"id": true, "gold": "1", "prediction": "1"}\n', "neither text nor a whole number"),
        (b'{"id": "", "gold": "1", "prediction": "1"}\n', "empty"),
        (b'{"id": "b", "gold": null, "prediction": "1"}\n', "`gold` is not text"),
        (b'{"id": "b", "gold": "1", "prediction": ["1"]}\n', "`prediction` is not text"),
        (b'{"id": "b", "gold": "1", "prediction": NaN}\n', "NaN is not JSON"),
        (b'{"id": "b", "gold": "1", "gold": "2", "prediction": "1"}\n', "a name occurs twice"),
        (b'{"id": "b", "gold": "1", "prediction": ' + b"9" * 9_999 + b"}\n", "too many digits"),
        (b'{"id": "b", "gold": "1", "prediction": ' + b"[" * 200 + b"\n", "nested more than 64 deep"),
        (b'{"id": "b", "gold": "1", "prediction": "\xff"}\n', "not UTF-8 at byte"),
        (b'{"id": "b", "gold": "1", "prediction": "1", "spec": 3}\n', "`spec` is not an object"),
        (b'{"id": "b", "gold": "1", "prediction": "1", "spec": {"kind": "exact"}}\n', "kind"),
        (b'{"id": "b", "gold": "1", "prediction": "1", "spec": {"expected": "2"}}\n', "`expected`"),
        (b'{"id": "b", "gold": "1", "prediction": "1", "spec": {"from": "same"}}\n', "spec: from"),
        (b'{"id": "b", "gold": "1", "prediction": "1", "spec": {"form": "nice"}}\n', "spec: form"),
        (b'{"id": "a", "gold": "1", "prediction": "1"}\n', "(also on line 1)"),
    ],
)
def test_a_faulty_line_is_named_and_nothing_is_checked(line: bytes, fault: str) -> None:
    message = refused(pairs(GOOD, line))
    assert "line 2: " in message
    assert fault in message
    assert "nothing was checked" in message


def test_an_id_that_is_text_and_one_that_is_the_same_number_are_the_same_id() -> None:
    assert "on line 1" in refused(pairs(GOOD | {"id": 7}, GOOD | {"id": "7"}))


def test_the_faults_of_many_lines_fit_on_a_screen() -> None:
    lines = refused(pairs(*[b"broken\n"] * 500)).splitlines()
    assert len(lines) < 15
    assert lines[1].startswith("line 1: ")
    assert lines[-1] == "and 490 more lines"


def test_a_line_without_end_is_named_and_never_held_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_pairs, "MAX_LINE", 1 << 20)
    monkeypatch.setattr(check_pairs, "BLOCK", 1 << 16)
    long = b'{"id": "l", "gold": "1", "prediction": "' + b"1" * (5 << 20) + b'"}\n'
    message = refused(pairs(GOOD, long, b"broken\n"))
    assert "line 2: longer than 1 MiB" in message
    assert "line 3: not JSON" in message


def test_a_file_without_pairs_is_refused() -> None:
    assert "contains no pairs" in refused(pairs(b"\n\n"))


def test_the_digest_is_that_of_the_bytes() -> None:
    one, same, other = pairs(GOOD).scan(), pairs(GOOD).scan(), pairs(GOOD | {"gold": "2"}).scan()
    assert one == same
    assert one.digest != other.digest


def test_a_file_that_changes_while_it_is_checked_is_noticed() -> None:
    stream = io.BytesIO(json.dumps(GOOD).encode() + b"\n")
    found = PairsFile(stream, "p.jsonl", kind_named("answer"), {})
    found.scan()
    stream.seek(0)
    stream.write(json.dumps(GOOD | {"gold": "1/3"}).encode() + b"\n")
    with pytest.raises(AssayError, match="changed during"):
        list(found.items())


def test_any_text_at_all_may_be_a_submission() -> None:
    found = pairs(b'{"id": "b", "gold": "1", "prediction": "\\ud800\\u0000\\u001b[2J"}\n')
    found.scan()
    assert next(found.items()).submission == "\ud800\0\x1b[2J"

"""Values are written, sent, read and compared without evaluating anything, and types count."""

from __future__ import annotations

import json
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS, examples
from pydantic import ValidationError
from tables import table

from verifiers.programs.data.compare import CompareRule, agree, printed
from verifiers.programs.data.values import (
    Arguments,
    DictPairs,
    Elements,
    NotPlainError,
    arguments_text,
    literal,
    of_native,
    read,
    read_arguments,
)
from verifiers.programs.replies import ProgramReply, find, mark, parse

EXACT, EQUAL, ANY_ORDER = CompareRule(), CompareRule(rule="equal"), CompareRule(rule="any_order")
CLOSE = CompareRule(rule="close", absolute=0.01)
keys = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.binary(max_size=5))
scalars = st.one_of(keys, st.floats(), st.complex_numbers())
natives = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.tuples(inner, inner), st.dictionaries(keys, inner, max_size=4), st.sets(keys)
    ),
    max_leaves=12,
)


@given(natives)
@settings(max_examples=examples(120), deadline=None)
def test_what_is_written_is_read_again(native: object) -> None:
    value = of_native(native)
    again = eval(literal(value), {"nan": math.nan, "inf": math.inf, "complex": complex, "set": set})
    assert literal(of_native(again)) == literal(value)


@given(st.one_of(st.text(max_size=60), natives.map(repr)))
@settings(max_examples=examples(150, quick=FROM_STRANGERS), deadline=None)
def test_any_text_is_a_literal_or_refused(text: str) -> None:
    try:
        value = read(text)
    except NotPlainError:
        return
    written = literal(value)
    assert "complex(" in written or literal(read(written)) == written


@table(
    "text",
    ["__import__('os')", "open('x')", "[x for x in y]", "1 if 2 else 3", "f'{1}'", "a.b", "{**{}}", "lambda: 1",
     "1 + 1", "{1: 2, 1: 3}", "{1: 2, True: 3}", "{(0, 1): 2, (0.0, 1): 3}", "{1, 1.0}", "{[1]: 2}", "{(1, {}): 2}",
     "(" * 500, "[" * 80 + "]" * 80, "", "-'a'", "...", "1)(2"],
)  # fmt: skip
def test_what_is_no_literal_is_refused(text: str) -> None:
    with pytest.raises(NotPlainError):
        read(text)


def test_arguments_have_positions_and_names() -> None:
    found = read_arguments("[1, 2], key='a', other=-3.5")
    assert found == Arguments(([1, 2],), (("key", "a"), ("other", -3.5)))
    assert arguments_text(found) == "[1, 2], key='a', other=-3.5"
    assert read_arguments("") == Arguments(())
    for text in ("**{}", "*[1]", "1)(2", "1); f(2", "a=1, a=2", "a=1, 2"):
        with pytest.raises(NotPlainError):
            read_arguments(text)


@table(
    ("expected", "got", "rules"),
    [
        ("1", "1", "exact equal close"), ("1", "1.0", "equal close"), ("1", "True", ""),
        ("True", "True", "exact equal"),
        ("[1, 2]", "[1, 2]", "exact equal any_order"), ("[1, 2]", "(1, 2)", "equal close"),
        ("[1, 2]", "[2, 1]", "any_order"), ("[1, 1, 2]", "[1, 2, 2]", ""), ("'1'", "1", ""), ("b'a'", "'a'", ""),
        ("nan", "nan", "exact equal close"), ("nan", "1.0", ""), ("inf", "inf", "exact equal close"),
        ("inf", "1e308", ""),
        ("1.0", "1.005", "close"), ("1.0", "nan", ""), ("1.0", "inf", ""), ("{1: 2}", "{1: 2}", "exact equal"),
        ("{1: 2}", "{1.0: 2}", "equal"), ("{1: 2}", "{1: 3}", ""), ("{1: 2.0}", "{1: 2.001}", "close"),
        ("{1, 2}", "{2, 1}", "exact equal"), ("{1, 2}", "{1}", ""), ("None", "None", "exact equal"), ("None", "0", ""),
        ("0.0", "-0.0", "exact equal"), ("10**0", "1", ""), ("[[1], {'a': (1,)}]", "[[1], {'a': (1,)}]", "exact equal"),
        ("(1, [2])", "[1, (2,)]", "equal"), ("''", "[]", ""), ("[]", "{}", ""), ("set()", "{}", ""),
    ],
)  # fmt: skip
def test_each_rule_says_what_it_says(expected: str, got: str, rules: str) -> None:
    if "**" in expected:
        with pytest.raises(NotPlainError):
            read(expected)
        return
    for rule, how in {"exact": EXACT, "equal": EQUAL, "close": CLOSE, "any_order": ANY_ORDER}.items():
        if rule in rules.split():
            assert agree(read(expected), read(got), how), rule
        elif rule in ("exact", "equal") or not rules:
            assert not agree(read(expected), read(got), how), rule


def test_no_tolerance_makes_two_whole_numbers_one() -> None:
    loose = CompareRule(rule="close", absolute=5.0, relative=0.5)
    factorial = math.factorial(25)
    assert agree(factorial, factorial, loose)
    assert not agree(factorial, factorial + 10**8, loose)
    assert agree(4, 4.5, loose)
    assert agree([4.0], [4], loose)
    assert not agree([4], [5], loose)
    for whole in (5.0, 5 + 0j, float(factorial + 10**8)):
        assert not agree(4 if whole == 5 else factorial, whole, loose)
    assert agree(4, 4.5 + 0j, loose)
    assert agree(4.0, 5, loose)
    tolerance = loose.tolerance
    assert not printed(f"{factorial}", f"{factorial + 10**8}", "numbers", tolerance)
    assert printed("+4 x", "4 x", "numbers", tolerance)
    assert printed("4", "4.5", "numbers", tolerance)
    assert printed("4", "4.0", "numbers", tolerance)
    for whole in ("5.0", "5e0", "50e-1", "1e9999"):
        assert not printed("4", whole, "numbers", tolerance)
    assert not printed("1" * 5_000, "1.5", "numbers", tolerance)


def test_integers_beyond_floats_are_compared_exactly() -> None:
    assert agree(10**400, 10**400, CLOSE)
    assert not agree(10**400, 10**400 + 1, EQUAL)
    assert not agree(2**53, 2**53 + 1, EQUAL)
    assert not agree(10**400, 1.0, CLOSE)


@pytest.mark.parametrize("how", [EQUAL, CLOSE])
def test_a_complex_number_and_an_integer_beyond_floats_are_compared(how: CompareRule) -> None:
    assert not agree(1 + 1j, 10**400, how)
    assert not agree(10**400, 1 + 1j, how)
    assert agree(complex(2), 2, how)


@pytest.mark.parametrize(
    "text", ["{frozenset({1}), frozenset()}", "{frozenset({1, 2}): 3}", "{(1, frozenset({2}))}", "{(frozenset(),): 1}"]
)
def test_sets_in_sets_and_keys_are_written_so_that_python_takes_them(text: str) -> None:
    value = read(text)
    assert eval(literal(value)) == eval(text)
    assert literal(read(literal(value))) == literal(value)


@table(
    ("rule", "expected", "got", "same"),
    [
        ("exact", "1\n", "1\n", True), ("exact", "1\n", "1", False), ("lines", "1 \n2\n", "1\n2  \n\n", True),
        ("lines", "1\n2", "1 2", False), ("lines", " 1", "1", False), ("tokens", "1\n2", "1   2\n", True),
        ("tokens", "1 2", "12", False), ("numbers", "1.0 x", "1.005 x", True), ("numbers", "1.0", "1.5", False),
        ("numbers", "1.0", "nan", False), ("numbers", "1.0", "1_0", False), ("numbers", "1", "inf", False),
        ("numbers", "a", "b", False), ("numbers", "1.0", "1" * 10_000, False), ("lines", "", "", True),
    ],
)  # fmt: skip
def test_output_is_compared_by_its_rule(rule: str, expected: str, got: str, same: bool) -> None:
    assert printed(expected, got, rule, CLOSE.tolerance) is same  # type: ignore[arg-type]


TEN, TINY, HALF = "1" + "0" * 20, CompareRule(relative="1e-20"), CompareRule(absolute="0.5")


@table(
    ("expected", "got", "how", "same"),
    [
        ("1234567890123456789.0", "1234567890123456700", EXACT, False),
        ("1234567890123456789.0", "1234567890123456789", EXACT, True),
        (f"{TEN}.5", f"{TEN[:-1]}1.5", EXACT, False), (f"{TEN}.5", f"{TEN}.50", EXACT, True),
        ("3.0", "3", EXACT, True), ("3", "3.0", EXACT, True), ("3", "3.0000000000000000001", EXACT, False),
        ("0.1", "0.1000000000000000055511151231257827", EXACT, False), (".5", "5e-1", EXACT, True),
        ("1." + "0" * 22 + "1", "1.0000000000000001", TINY, False),
        ("1." + "0" * 22 + "1", "1." + "0" * 20 + "1", TINY, True),
        ("2.5", "3.0", HALF, True), ("2.5", "3." + "0" * 40 + "1", HALF, False),
        (f"{TEN}.0", f"{TEN}.5", HALF, True), (f"{TEN}.0", f"{TEN[:-1]}1", HALF, False),
        ("1e400", "1e400", EXACT, True), ("1e400", "1e401", HALF, False), ("1e999", "1", HALF, False),
        ("1e-999", "0", EXACT, False), ("1e-999", "0", HALF, True), ("1.0", "1e999999", HALF, False),
        ("1.0", "1e-999999", HALF, False), ("1.0", "nan", HALF, False), ("nan", "nan", EXACT, True),
        ("inf", "1e999", HALF, False), ("1e999", "inf", HALF, False), ("-0.0", "0", EXACT, True),
        ("1.0", "\u0661", HALF, False), ("3.0", "np.float64(3.0)", HALF, False),
    ],
)  # fmt: skip
def test_printed_numbers_are_compared_as_they_are_written(
    expected: str, got: str, how: CompareRule, same: bool
) -> None:
    assert printed(expected, got, "numbers", how.tolerance) is same


def test_many_numbers_of_hostile_size_are_compared_in_little_time() -> None:
    words = " ".join(["9" * 395 + "e-999", "9" * 395 + "e999"] * 2_000)
    begun = time.thread_time()
    assert printed(words, words.replace("9e", "8e"), "numbers", CompareRule(relative="0.1").tolerance)
    assert not printed(words, words.replace("9e", "8e"), "numbers", EXACT.tolerance)
    assert time.thread_time() - begun < 2.0


@table(
    ("expected", "got", "how", "same"),
    [
        ("1.0", "1.1", CompareRule(rule="close", absolute="0.1"), True),
        ("1e18", f"{10**18 + 1}", CompareRule(rule="close", absolute="0.5"), False),
        ("1e18", f"{10**18 + 1}", CompareRule(rule="close", absolute="1"), True),
        ("2", "2.0000000000000004", CompareRule(rule="close", relative="1e-16"), False),
        ("inf", "1e308", CompareRule(rule="close", relative="0.9"), False),
        ("1.5", f"{10**2_000}", CompareRule(rule="close", relative="0.9"), False),
    ],
)  # fmt: skip
def test_returned_numbers_are_compared_without_rounding(expected: str, got: str, how: CompareRule, same: bool) -> None:
    assert agree(read(expected), read(got), how) is same


@table("tolerance", ["-1", "nan", "inf", "1e999999", "1e-999999", "0." + "1" * 65, "a"])
def test_a_tolerance_that_is_no_bounded_decimal_is_refused(tolerance: str) -> None:
    with pytest.raises(ValidationError):
        CompareRule(absolute=tolerance)


def test_a_tolerance_is_kept_as_it_was_written() -> None:
    how = CompareRule.model_validate_json('{"relative": "1e-20", "absolute": 1e-9}')
    assert (str(how.relative), str(how.absolute)) == ("1E-20", "1E-9")
    assert CompareRule.model_validate_json(how.model_dump_json()) == how


def test_a_reply_is_read_behind_its_own_mark_only() -> None:
    assert find(f"noise {mark('ab')}" + '{"v": [1, {"t": [2]}]}\x1e more', "ab").value == [1, (2,)]
    none = ProgramReply("lost", text="it ended without a reply")
    assert find('{"v": 1}', "ab") == none
    assert find(f"{mark('cd')}" + '{"v": 1}\x1e', "ab") == none
    twice = find(2 * (mark("ab") + '{"v": 1}\x1e'), "ab")
    assert (twice.kind, twice.forged) == ("lost", True)


@table(
    "text",
    ["", "[]", "null", '{"w": 1}', '{"v": {"t": 1}}', '{"v": {"q": []}}', '{"v": {"d": [[1]]}}', '{"v": {"i": 5}}',
     '{"v": {"i": "zz"}}', '{"v": {"f": "1"}}', '{"v": {"t": [], "s": []}}', '{"v": NaN}', '{"v": Infinity}',
     '{"v": 1e999}', "[" * 100_000, '{"v":' + "[" * 100 + "]" * 100 + "}", '{"v": ' + "9" * 5_000 + "}", '{"r": 1}',
     '{"x": []}', '{"v": 1, "s": 5}', '{"v": 1, "s": [[]]}', "\x00", '{"v": {}}', '{"v": {"c": [1, 2]}}'],
)  # fmt: skip
def test_what_is_no_reply_is_none(text: str) -> None:
    assert parse(text) is None


@given(st.recursive(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()), lambda inner: st.one_of(
    st.lists(inner), st.dictionaries(st.sampled_from(list("tdsbifcvrxlmq")), inner)), max_leaves=20))  # fmt: skip
@settings(max_examples=examples(150, quick=FROM_STRANGERS), deadline=None)
def test_no_reply_breaks_its_reader(found: object) -> None:
    parse(json.dumps(found))
    parse(json.dumps({"v": found}))
    parse(json.dumps(found)[:-1])


def test_colliding_keys_cost_nothing() -> None:
    pairs = [[n * ((1 << 61) - 1), 1] for n in range(50_000)]
    reply = parse(json.dumps({"v": {"d": pairs}}))
    assert reply is not None
    assert not agree(DictPairs(((1, 1),)), reply.value, EXACT)
    assert agree(reply.value, reply.value, EQUAL)


def test_sets_are_told_without_order_and_dictionaries_with_any() -> None:
    assert literal(Elements((2, 1))) == literal(Elements((1, 2)))
    assert literal(DictPairs(((2, 1), (1, 1)))) == literal(DictPairs(((1, 1), (2, 1))))

"""Tests hand over what they compare, blind ones without the literals; faults keep the layout of a source."""

from __future__ import annotations

import ast
from itertools import islice

from small_repository import CART, TEST_CART, TEST_TEXT

from curriculum.repositories.faults import bodies_in, combined, faults_in
from curriculum.repositories.observing import context_of, functions_in, rewrite, without
from verifiers.files.suite_guest import canonical, used


def test_blind_tests_have_no_literal_that_they_would_compare_with() -> None:
    made = rewrite(TEST_TEXT, "a.py")
    assert made is not None
    assert ("12.05" in made.kept, "12.05" in made.blind, "'marmalade'" in made.blind) == (True, False, True)
    assert made.kept.count("__assay_seen__") == made.blind.count("__assay_seen__")
    assert "'Black Tea'" in {site.expected for site in made.sites.values()}


def test_a_parameter_is_observed_on_both_sides_and_an_exception_as_raised() -> None:
    made = rewrite(TEST_CART, "a.py")
    assert made is not None
    assert "assert __assay_seen__(" in made.blind
    assert "with __assay_raised__(" in made.blind
    assert rewrite("def broken(:\n", "a.py") is None


def test_and_is_taken_apart_and_approximate_values_are_rounded() -> None:
    made = rewrite(
        "def test_a():\n    assert f() == 1 and not g()\n    assert h() == approx(0.5)\n    assert 'a' in k()\n", "a.py"
    )
    assert made is not None
    lines = [line.strip() for line in made.blind.splitlines()]
    assert lines[1:3] == ["__assay_seen__(0, f())", "__assay_truth__(1, g())"]
    assert lines[3] == "assert __assay_seen__(2, h(), 5) == approx(0.5)"
    assert "__assay_kind__" in lines[4]


def test_removed_tests_leave_a_module_that_can_be_read() -> None:
    text = without(TEST_TEXT, {"MoneyTest::test_two_decimals", "MoneyTest::test_negative", "test_title"})
    ast.parse(text)
    assert ("two_decimals" in text, "def test_title()" in text, "def test_title_of_nothing" in text) == (
        False,
        False,
        True,
    )
    assert {"MoneyTest::test_negative", "test_title"} <= functions_in(TEST_TEXT)
    assert "parametrize" not in without(TEST_CART, {"test_discount"})


def test_a_way_to_a_value_is_the_statements_before_it() -> None:
    line = TEST_CART.splitlines().index("    assert cart.total() == 1550") + 1
    assert context_of(TEST_CART, "test_adding_again_adds_to_the_count", line) == "cart.add('tea', 250, 3)"


def test_a_fault_changes_one_place_and_its_order_is_drawn_from_the_seed() -> None:
    path = "src/tally/cart.py"
    first = list(faults_in(path, CART, "1"))
    assert [one.files[path] for one in first] == [one.files[path] for one in faults_in(path, CART, "1")]
    assert [one.files[path] for one in first] != [one.files[path] for one in faults_in(path, CART, "2")]
    assert {one.kind for one in first} == {"operator", "call"}
    for fault in islice(first, 40):
        old, new = CART.splitlines(), fault.files[path].splitlines()
        assert len(set(old) - set(new)) <= 2
        ast.parse(fault.files[path])


def test_a_removed_body_keeps_signature_and_docstring() -> None:
    found = {one.functions[0].name: one for one in bodies_in("src/tally/cart.py", CART)}
    assert set(found) == {"tally.cart.Cart.add", "tally.cart.Cart.remove", "tally.cart.Cart.total",
                          "tally.cart.discount", "tally.cart.cheapest"}  # fmt: skip
    one = found["tally.cart.discount"]
    assert one.signature == "def discount(total: int, percent: int) -> int:"
    assert ("rounded down" in one.docstring, "100 - percent" in one.files["src/tally/cart.py"]) == (True, False)
    both = combined([one, one._replace(files={"b.py": "x"})])
    assert (both.kind, set(both.files), len(both.functions)) == ("combined", {"src/tally/cart.py", "b.py"}, 2)


def test_equal_plain_values_have_one_canonical_text_whatever_their_class_says() -> None:
    liar = type("Liar", (int,), {"__eq__": lambda self, other: True, "__repr__": lambda self: "3", "__hash__": None})
    assert canonical(1) == canonical(True) == canonical(1.0) == canonical(liar(1))
    assert canonical(liar(4)) != canonical(3)
    assert canonical({"a": {1, 2}, "b": None}) == canonical({"b": None, "a": {2, 1}})
    assert canonical([1]) != canonical((1,))
    assert canonical(0.1 + 0.2) == canonical(0.3)
    assert canonical(object()) == canonical(object())


def test_names_that_reach_for_the_judge_are_found_however_they_are_written() -> None:
    assert used("import _pytest.runner as r\n") == ["_pytest"]
    assert used("x = getattr(sys, '_getframe')\n") == ["_getframe"]
    assert used("open('/proc/self/fd/3')\n") == ["a text that names tests or processes", "open"]
    assert used("getattr(sys, '_get' + 'frame')(1)\n") == ["a computed attribute"]
    assert used("re.compile('a').match(total)\n") == []

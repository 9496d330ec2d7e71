"""What is written out is read back as it was: every kind of value, in LaTeX and in plain mathematics."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from property_budget import examples
from reading_kit import Writer

from verifiers.answers.grammar import nodes as n
from verifiers.answers.grammar import values as v
from verifiers.answers.grammar.reading.read_answer import read_answer
from verifiers.answers.grammar.units import UNIT_NAMES

LETTERS = ["x", "y", "z", "t", "a", "b", "k", "n"]
WHOLE = st.builds(n.Number, st.integers(0, 10**12).map(Fraction))
ATOMS = st.one_of(
    WHOLE,
    st.sampled_from([*LETTERS, "alpha", "theta"]).map(n.Symbol),
    st.sampled_from(["pi", "e", "i"]).map(n.Constant),
)


def _composed(inner: st.SearchStrategy[n.Expression]) -> st.SearchStrategy[n.Expression]:
    several = st.lists(inner, min_size=2, max_size=4).map(tuple)
    no_sign = inner.filter(lambda node: not isinstance(node, n.Negation))
    return st.one_of(
        st.builds(n.Sum, several),
        st.builds(n.Product, several),
        st.builds(n.Quotient, inner, inner),
        st.builds(n.Power, inner, inner),
        st.builds(n.Negation, no_sign),
        st.builds(
            lambda name, of: n.FunctionCall(name, (of,)), st.sampled_from(["sqrt", "sin", "ln", "abs", "f"]), inner
        ),
        st.builds(lambda of: n.FunctionCall("log", of), st.tuples(inner, inner)),
        st.builds(lambda of: n.FunctionCall("max", of), several),
    )


EXPRESSIONS: st.SearchStrategy[n.Expression] = st.recursive(ATOMS, _composed, max_leaves=8)
SCALARS = st.builds(v.Scalar, EXPRESSIONS)
TUPLES = st.recursive(
    st.builds(v.Tuple, st.lists(SCALARS, min_size=2, max_size=4).map(tuple)),
    lambda inner: st.builds(v.Tuple, st.lists(SCALARS | inner, min_size=3, max_size=4).map(tuple)),
    max_leaves=3,
)
SETS_OF_NUMBERS = st.builds(v.FiniteSet, st.lists(SCALARS, max_size=4).map(tuple))
INTERVALS = st.one_of(
    st.builds(v.Interval, EXPRESSIONS, EXPRESSIONS, st.booleans(), st.booleans()),
    st.builds(v.Interval, st.just(v.Infinity(-1)), EXPRESSIONS, st.just(False), st.booleans()),
    st.builds(v.Interval, EXPRESSIONS, st.just(v.Infinity(1)), st.booleans(), st.just(False)),
)
NUMBER_SETS = st.sampled_from(["N", "N0", "Z", "Q", "R", "C"]).map(v.NumberSet)
SETS = st.recursive(
    SETS_OF_NUMBERS | INTERVALS | NUMBER_SETS,
    lambda inner: st.builds(
        v.SetOperation,
        st.sampled_from(["union", "intersection", "difference"]),
        st.lists(inner, min_size=2, max_size=3).map(tuple),
    ),
    max_leaves=4,
)
SIGNS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
COMPARISONS = st.integers(1, 2).flatmap(
    lambda count: st.builds(
        n.ComparisonNode,
        st.lists(EXPRESSIONS, min_size=count + 1, max_size=count + 1).map(tuple),
        st.lists(SIGNS, min_size=count, max_size=count).map(tuple),
    )
)
SINGLE = st.builds(lambda comparison: v.RelationValue("and", (comparison,)), COMPARISONS)
RELATIONS = SINGLE | st.builds(
    v.RelationValue, st.sampled_from(["and", "or"]), st.lists(SINGLE, min_size=2, max_size=3).map(tuple)
)
BUILDERS = st.one_of(
    st.builds(v.Builder, st.sampled_from(LETTERS), SETS, st.none()),
    st.builds(v.Builder, st.sampled_from(LETTERS), st.none() | SETS, RELATIONS),
)
MATRICES = st.tuples(st.integers(2, 3), st.integers(2, 3)).flatmap(
    lambda size: st.builds(
        v.Matrix,
        st.lists(
            st.lists(EXPRESSIONS, min_size=size[1], max_size=size[1]).map(tuple), min_size=size[0], max_size=size[0]
        ).map(tuple),
    )
)
UNITS = st.lists(
    st.tuples(
        st.sampled_from(sorted(name for name in UNIT_NAMES if name.isascii() and name.isalpha() and len(name) > 2)),
        st.sampled_from([1, 2, 3, -1, -2]),
    ),
    min_size=1,
    max_size=3,
).map(tuple)
NO_UNITS = frozenset({"deg", "degree", "degrees", "degC", "degF", "min"})
QUANTITIES = st.builds(v.Quantity, WHOLE, UNITS.filter(lambda unit: not any(name in NO_UNITS for name, _ in unit)))
NAMED = st.builds(v.Named, st.sampled_from("ABST").map(lambda name: v.Scalar(n.Symbol(name))), SETS | TUPLES | MATRICES)
WORDS = st.sampled_from(["yes", "no", "no solution", "tuesday", "john smith", "true", "it does not converge"]).map(
    v.TextAnswer
)
BASED = st.tuples(st.integers(2, 16), st.integers(1, 10**6)).map(
    lambda pair: v.BaseNumber(_digits(pair[1], pair[0]), pair[0])
)
RATIOS = st.builds(v.Ratio, st.lists(WHOLE | st.sampled_from(LETTERS).map(n.Symbol), min_size=2, max_size=4).map(tuple))
IMAGES = st.builds(
    v.Images,
    st.lists(
        st.builds(lambda start, step: n.Sum((start, n.Product((step, n.Symbol("k"))))), WHOLE, WHOLE),
        min_size=1,
        max_size=3,
    ).map(tuple),
    st.just("k"),
    st.sampled_from(["N", "N0", "Z"]).map(v.NumberSet),
    st.none() | st.just("x"),
)
VALUES: st.SearchStrategy[v.Value] = st.one_of(
    SCALARS,
    TUPLES,
    st.builds(v.Listing, st.lists(SCALARS, min_size=2, max_size=4).map(tuple)),
    st.builds(v.Listing, st.lists(TUPLES, min_size=2, max_size=3).map(tuple)),
    st.builds(v.FiniteSet, st.lists(SCALARS | TUPLES, max_size=4).map(tuple)),
    SETS,
    RELATIONS,
    BUILDERS,
    MATRICES,
    QUANTITIES,
    NAMED,
    WORDS,
    BASED,
    RATIOS,
    IMAGES,
    st.sampled_from([v.Infinity(1), v.Infinity(-1)]),
    st.sampled_from("ABCDE").map(v.Choice),
)


def _digits(value: int, base: int) -> str:
    text = ""
    while value:
        value, digit = divmod(value, base)
        text = "0123456789ABCDEF"[digit] + text
    return text if text[0].isdigit() else "0" + text


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(VALUES, st.booleans())
def test_what_is_written_is_read_back(value: v.Value, latex: bool) -> None:
    text = Writer(latex=latex).value(value)
    assert read_answer(text, variables=None, expected=value) == value, text


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(EXPRESSIONS, st.booleans())
def test_an_expression_needs_no_expected_answer_to_be_read(node: n.Expression, latex: bool) -> None:
    text = Writer(latex=latex).expression(node)
    assert read_answer(f"${text}$" if latex else text, variables=LETTERS) == v.Scalar(node), text


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**9), st.integers(0, 10**6), st.integers(1, 10**6))
def test_a_recurring_decimal_is_its_fraction(whole: int, before: int, cycle: int) -> None:
    length = len(str(cycle))
    value = whole + (before + Fraction(cycle, 10**length - 1)) / Fraction(10) ** len(str(before))
    for mark in (rf"\overline{{{cycle}}}", f"({cycle})"):
        assert read_answer(f"{whole}.{before}{mark}", variables=None) == v.Scalar(n.Number(value))


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 10**12))
def test_thousands_may_be_separated_in_every_usual_way(number: int) -> None:
    for separator in (",", "{,}", r"\,", r"\;", "~", r",\!", " ", "\u202f"):
        text = f"{number:,}".replace(",", separator)
        assert read_answer(text, variables=None) == v.Scalar(n.Number(Fraction(number))), text


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 99), st.integers(1, 50), st.integers(1, 50))
def test_mixed_numbers_are_sums(whole: int, above: int, more: int) -> None:
    below = above + more
    for text in (rf"{whole}\frac{{{above}}}{{{below}}}", f"{whole} {above}/{below}"):
        assert read_answer(text, variables=None) == v.Scalar(n.Number(whole + Fraction(above, below)))

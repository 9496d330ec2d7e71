"""Where a tool says that there is no answer, trying finds none; and what it proposes is one."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from verifiers.answers.grammar.nodes import Number
from verifiers.answers.grammar.reading.plain import parse_predicate
from verifiers.predicate.spec import PredicateSpec
from verifiers.predicate.verifier import decide
from verifiers.proposals.whole_numbers import by_z3

NUMBERS = st.integers(-9, 9)
TERMS = st.one_of(
    NUMBERS.map(lambda a: f"x + {a}" if a >= 0 else f"x - {-a}"),
    st.builds("{}*x*x + {}*x".format, NUMBERS, NUMBERS),
    st.builds("(x + {}) % {}".format, st.integers(0, 9), st.integers(1, 9)),
    st.builds("x // {}".format, st.integers(1, 9)),
    st.builds("abs({}*x - 3)".format, NUMBERS),
    st.just("x**3"),
)
COMPARISONS = st.builds("{} {} {}".format, TERMS, st.sampled_from(["==", "!=", "<", ">="]), NUMBERS)
PREDICATES = st.builds(
    "{} {} {} and {}".format, COMPARISONS, st.sampled_from(["and", "or", "and not"]), COMPARISONS, COMPARISONS
)
TRIED = range(-12, 13)


@settings(max_examples=15, derandomize=True)
@given(PREDICATES)
def test_z3_and_trying_agree_on_integers(predicate: str) -> None:
    condition = parse_predicate(predicate, "x")

    def holds(value: int) -> bool:
        return decide(condition, "x", Number(Fraction(value)), prove=False) is True

    found = by_z3(PredicateSpec(predicate=predicate, domain="integer"), "", lambda: True)
    assert not found.note.startswith("not translated")
    assert all(holds(int(text)) for text in found.texts)
    if found.hopeless:
        assert not any(map(holds, TRIED))
    elif any(map(holds, TRIED)):
        assert found.texts

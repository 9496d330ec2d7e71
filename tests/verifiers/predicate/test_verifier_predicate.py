"""A predicate decides by substitution, exactly; a predicate that says nothing is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import table

from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import Outcome
from verifiers.predicate.spec import PredicateSpec
from verifiers.registry import check_spec, decide

TRUE = [
    ("7*x+3 == 45", "real", "6"),
    ("7*x+3 == 45", "real", "x = 6"),
    ("7*x+3 == 45", "real", "$x = 6$"),
    ("7x+3 == 45", "real", "12/2"),
    ("7*x == 3", "rational", r"\frac{3}{7}"),
    ("x**2 == 2", "real", "-sqrt(2)"),
    ("x^2 - x - 1 == 0 and x > 0", "real", "(1 + sqrt(5))/2"),
    ("x**2 == -1", "complex", "-i"),
    ("x % 7 == 2 and x // 10 == 10", "integer", "107"),
    ("x % 7 == 2", "integer", "-5"),
    ("(x > 1) and (x < 5) and not (x == 3)", "integer", "4"),
    ("x < -10 or x == 3", "integer", "3"),
    ("1 < x <= 5 and x*x != 4", "real", "pi"),
    ("gcd(x, 12) == 6 and x > 100", "integer", "102"),
    ("sin(x) == 1/2", "real", r"\frac{\pi}{6}"),
    ("x == 1 or 1/x > 5", "real", "1"),
]


@table(("predicate", "domain", "answer"), TRUE)
def test_a_value_that_fulfils_the_predicate_passes(predicate: str, domain: str, answer: str) -> None:
    spec = PredicateSpec(predicate=predicate, domain=domain)
    check_spec(spec)
    verdict = decide(spec, answer)
    assert verdict.passed, verdict.reason


FALSE = [
    ("7*x+3 == 45", "real", "7"),
    ("7*x+3 == 45", "real", "5.9999999999999999999999999999999"),
    ("7*x+3 == 45", "real", "y = 6"),
    ("7*x+3 == 45", "real", "6 = x"),
    ("7*x+3 == 45", "real", "x == 6"),
    ("7*x+3 == 45", "real", "x = x = 6"),
    ("7*x+3 == 45", "real", "x"),
    ("7*x+3 == 45", "real", "6 or 7"),
    ("7*x+3 == 45", "real", "6, 7"),
    ("7*x+3 == 45", "real", "(45-3)/7"),
    ("7*x+3 == 45", "real", "6 and True"),
    ("7*x+3 == 45", "real", "6)) or (0 == 0"),
    ("7*x+3 == 45", "real", ""),
    ("x**2 == 2", "real", "1.4142135623730951"),
    ("x**2 == -1", "real", "i"),
    ("2*x == 1", "integer", "1/2"),
    ("x**2 == 2", "rational", "sqrt(2)"),
    ("x**2 == 4", "rational", "sqrt(4)"),
    ("gcd(x, 12) == 6 and x > 100", "integer", "gcd(102, 204)"),
    ("1/x > 5", "real", "0"),
    ("not (1/x == 1/5)", "real", "0"),
    ("x != 3", "integer", "nan"),
    ("x > 10", "real", "oo"),
    ("x > 10", "real", "2**10**10"),
    ("x > 10", "complex", "100*i"),
    ("x < 0", "real", r"(10^600 + \pi) - 10^600 - \pi"),
    ("x > 0", "real", r"(10^600 + \pi) - 10^600 - \pi"),
    ("x > 10", "real", "__import__('os').getpid()"),
]


@table(("predicate", "domain", "answer"), FALSE)
def test_what_does_not_certainly_fulfil_the_predicate_fails(predicate: str, domain: str, answer: str) -> None:
    verdict = decide(PredicateSpec(predicate=predicate, domain=domain), answer)
    assert verdict.outcome is Outcome.FAIL
    assert verdict.reason


BAD = {
    "nothing": "",
    "no variable": "1 == 1",
    "another variable": "y == 3",
    "a part without the variable": "x == 3 or 1 == 1",
    "a single sign": "7*x + 3 = 45",
    "no comparison": "7*x + 3",
    "an identity": "x == x",
    "an identity in disguise": "(x+1)**2 == x**2 + 2*x + 1",
    "a square that is never negative": "x**2 >= 0",
    "everything but one value": "x != 123456",
    "a choice that leaves nothing out": "x < 5 or x >= 5",
    "code": "__import__('os').system('true') == x",
}


@table("predicate", BAD.values(), ids=BAD.keys())
def test_a_predicate_that_decides_nothing_is_a_bad_spec_with_a_hint(predicate: str) -> None:
    with pytest.raises(SpecError) as caught:
        check_spec(PredicateSpec(predicate=predicate))
    assert caught.value.hint


def test_an_identity_that_only_symbolic_proof_finds_is_refused_before_anything_passes() -> None:
    with pytest.raises(SpecError):
        decide(PredicateSpec(predicate="sin(x)**2 + cos(x)**2 == 1"), "3")


@given(st.integers(-(10**20), 10**20), st.integers(1, 10**9), st.integers(-(10**9), 10**9))
def test_the_solution_of_a_linear_equation_passes_and_its_neighbour_fails(root: int, slope: int, offset: int) -> None:
    spec = PredicateSpec(predicate=f"{slope}*x + ({offset}) == {slope * root + offset}", domain="integer")
    assert decide(spec, str(root)).passed
    assert decide(spec, str(root + 1)).outcome is Outcome.FAIL


def test_checking_a_spec_imports_no_sympy() -> None:
    program = (
        "import sys; from verifiers.registry import check_spec;"
        "from verifiers.answers.spec import AnswerSpec; from verifiers.predicate.spec import PredicateSpec;"
        "import verifiers.workers.service;"
        "check_spec(PredicateSpec(predicate='sin(x)**2 == 1/2'));"
        "check_spec(AnswerSpec(notation='plain', expected='sqrt(2)'));"
        "sys.exit('sympy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

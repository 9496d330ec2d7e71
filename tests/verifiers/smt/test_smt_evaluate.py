"""Our arithmetic and Z3's give the same values, and ours gives none where there is none."""

from __future__ import annotations

from random import Random

import pytest
from smt_kit import RandomTerms
from tables import table

from verifiers.smt.language.errors import ClaimError, Undefined
from verifiers.smt.language.evaluate import evaluate
from verifiers.smt.language.script import read_text
from verifiers.smt.language.terms import Term
from verifiers.smt.z3_solver import Z3


def term(text: str, before: str = "") -> Term:
    return read_text(f"{before}(assert {text})").assertions[-1].term


def true(text: str) -> bool:
    found = evaluate(term(text))
    assert isinstance(found, bool)
    return found


@table(
    "text",
    [
        "(= (div 7 2) 3)",
        "(= (div (- 7) 2) (- 4))",
        "(= (div 7 (- 2)) (- 3))",
        "(= (div (- 7) (- 2)) 4)",
        "(= (mod (- 7) 2) 1)",
        "(= (mod (- 7) (- 2)) 1)",
        "(= (/ 1 3) (/ 2 6))",
        "(= 0.1 (/ 1 10))",
        "(= (to_int (- 0.5)) (- 1))",
        "(is_int (/ 4 2))",
        "((_ divisible 3) (- 9))",
        "(= (bvudiv #x07 #x00) #xff)",
        "(= (bvurem #x07 #x00) #x07)",
        "(= (bvsdiv #x07 #x00) #xff)",
        "(= (bvsdiv #xf9 #x00) #x01)",
        "(= (bvsdiv #x80 #xff) #x80)",
        "(= (bvsrem #xf9 #x02) #xff)",
        "(= (bvsmod #xf9 #x02) #x01)",
        "(= (bvshl #x01 #x08) #x00)",
        "(= (bvashr #x80 #x09) #xff)",
        "(= (bvadd #xff #x01) #x00)",
        "(= (concat #b1 #b0) #b10)",
        "(= ((_ sign_extend 4) #xf) #xff)",
        "(= ((_ rotate_left 9) #x01) #x02)",
        "(= ((_ int_to_bv 4) (- 1)) #xf)",
        "(= (sbv_to_int #xf) (- 1))",
        "(= (bv2nat #xf) 15)",
        "(=> false (= (div 1 0) 2))",
        "(or true (= (/ 1 0) 2))",
        "(= (select (store ((as const (Array Int Int)) 0) 1 2) 1) 2)",
        "(= (store ((as const (Array Bool Int)) 0) true 1) (store ((as const (Array Bool Int)) 1) false 0))",
        "(distinct (store ((as const (Array Int Int)) 0) 1 1) ((as const (Array Int Int)) 0))",
        "(= (let ((x 1) (y 2)) (let ((x y) (y x)) (- x y))) 1)",
        "(< 1 2 3)",
        "(not (< 1 3 2))",
        "(distinct 1 2 3)",
        "(= 1 1.0)",
        "(=> true false true)",
        "(xor true true true)",
    ],
)
def test_the_language_means_what_smt_lib_says(text: str) -> None:
    assert true(text)
    assert Z3(100_000).simplified(term(text)) is not False


@pytest.mark.parametrize("text", ["(= (div 1 0) 1)", "(= (/ 1 0) 1)", "(= (mod 1 0) 1)", "(forall ((x Int)) (= x x))"])
def test_what_has_no_value_is_given_none(text: str) -> None:
    with pytest.raises(Undefined):
        evaluate(term(text))


def test_a_symbol_without_a_value_has_none() -> None:
    with pytest.raises(Undefined):
        evaluate(term("(= x 1)", "(declare-const x Int)"))


def test_powers_are_refused_before_anybody_computes_them() -> None:
    tower = "(let ((a (* a a))) " * 40 + "a" + ")" * 40
    with pytest.raises(ClaimError, match="bits"):
        term(f"(let ((a 3)) (= {tower} 1))")


def same_as_z3(seeds: range) -> int:
    """How many random terms without symbols had a value; raises AssertionError where Z3 finds another."""
    found = 0
    for first in range(seeds.start, seeds.stop, 50):
        z3 = Z3(1_000_000)
        for seed in range(first, min(first + 50, seeds.stop)):
            made = term(RandomTerms(Random(seed)).term("Bool", 5))
            try:
                value = evaluate(made)
            except Undefined:
                continue
            assert z3.simplified(made) is value, f"seed {seed}"
            found += 1
    return found


def test_random_terms_have_the_value_that_z3_finds() -> None:
    assert same_as_z3(range(600)) > 400


@pytest.mark.slow
def test_very_many_random_terms_have_the_value_that_z3_finds() -> None:
    assert same_as_z3(range(100_000, 400_000)) > 200_000

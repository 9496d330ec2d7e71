"""Z3 and cvc5 are asked the same thing, agree about it, and their values hold in arithmetic of our own."""

from __future__ import annotations

import pytest
import z3
from smt_kit import random_claim
from tables import table

from verifiers.smt.bench import Bench, Possible, tools
from verifiers.smt.cvc5_solver import Cvc5
from verifiers.smt.language.evaluate import evaluate
from verifiers.smt.language.render import query_text
from verifiers.smt.language.script import read_text
from verifiers.smt.language.terms import Term
from verifiers.smt.problem import Satisfiable
from verifiers.smt.z3_solver import Z3

ALL_KINDS = """(declare-sort U 0)(declare-const a U)(declare-const b U)(declare-fun f (U Int) Int)
(declare-const m (Array Int (Array Bool (_ BitVec 4))))(declare-const |odd name| Real)
(assert (distinct a b))(assert (> (f a 1) (f b 2) 0))(assert (= (select (select m 7) true) #x9))
(assert (= (* |odd name| |odd name|) (/ 1 4)))(assert (< |odd name| 0))"""
QUANTIFIED = """(declare-fun p (Int Int) Bool)
(assert (forall ((x Int)) (exists ((y Int)) (and (p x y) (forall ((x Int)) (=> (p y x) (> x y)))))))"""
EVERY_OPERATOR = """(declare-const a (_ BitVec 8))(declare-const b (_ BitVec 8))(declare-const c (_ BitVec 4))
(assert (distinct #x00 (bvnand a b) (bvnor a b) (bvxnor a b)))
(assert (= (bvcomp a b) #b0))(assert (bvsle (bvsmod a b) (bvsrem a b)))(assert (bvuge (bvsdiv a b) (bvudiv a b)))
(assert (= ((_ rotate_left 3) a) ((_ rotate_right 5) a)))(assert (= ((_ repeat 2) c) (concat c c)))
(assert (= ((_ extract 3 0) ((_ zero_extend 4) c)) c))(assert (= ((_ int_to_bv 8) (ubv_to_int a)) a))
(assert (= (sbv_to_int ((_ sign_extend 4) c)) (sbv_to_int c)))(assert (= (bvsub a b) (bvadd a (bvneg b))))"""


def asserted(text: str) -> list[Term]:
    return [each.term for each in read_text(text).assertions]


def test_both_solvers_are_installed_with_their_versions() -> None:
    assert set(tools()) == {"z3", "cvc5"}


@pytest.mark.parametrize("text", [ALL_KINDS, EVERY_OPERATOR], ids=["sorts", "operators"])
def test_values_of_every_sort_hold_in_our_own_arithmetic(text: str) -> None:
    claim = read_text(text)
    terms = [each.term for each in claim.assertions]
    answer = Z3(1_000_000).check(terms, claim.declared)
    assert answer.satisfiable is Satisfiable.YES
    assert all(evaluate(term, answer.interpretation) is True for term in terms)
    assert Cvc5(1_000_000).check(terms).satisfiable is not Satisfiable.NO


@pytest.mark.parametrize("text", [ALL_KINDS, EVERY_OPERATOR, QUANTIFIED], ids=["sorts", "operators", "quantifiers"])
def test_a_query_written_out_is_the_same_query(text: str) -> None:
    written = query_text(asserted(text))
    again = asserted(written.replace("?v", "v").replace("?t", "t"))
    assert query_text(again) == written
    parsed = z3.Solver()
    parsed.from_string(written)
    assert len(parsed.assertions()) == text.count("(assert")


@table(
    "text",
    [
        "(declare-const x Int)(assert (< 2 (* 2 x) 5))",
        "(declare-const x Real)(assert (< 2 (* 2 x) 5))",
        "(declare-const x Real)(declare-const y Real)(assert (= (* x y) 5 (+ x y)))",
        "(declare-const x Int)(declare-const y Int)(assert (= (* x y) 35))(assert (= (mod x y) 2))",
        "(declare-const x (_ BitVec 8))(assert (= (bvmul x x) #x31))",
        "(declare-const x (_ BitVec 8))(declare-const a (Array Int Int))(assert (= (select a (bv2nat x)) 5))",
        "(declare-sort U 0)(declare-fun f (U) U)(declare-const a U)(assert (distinct a (f a)))",
        "(declare-const x Int)(declare-fun p (Int) Bool)(assert (not (p x)))(assert (exists ((y Int)) (p y)))",
    ],
)
def test_cvc5_answers_in_every_theory(text: str) -> None:
    assert Cvc5(2_000_000).check(asserted(text)).satisfiable is Satisfiable.YES
    assert Cvc5(2_000_000).check(asserted(f"{text}(assert (distinct 1 1))")).satisfiable is Satisfiable.NO


def test_cvc5_is_not_asked_what_it_never_ends_with() -> None:
    terms = asserted("(declare-const s Real)(assert (is_int s))(assert (not (is_int (* s s))))")
    assert Cvc5(1_000_000).check(terms).satisfiable is Satisfiable.UNKNOWN


def agree(seeds: range) -> dict[Possible, int]:
    """How many random claims are possible, impossible, unknown. A contradiction raises SolverBroke."""
    found = dict.fromkeys(Possible, 0)
    for seed in seeds:
        terms = asserted(random_claim(seed))
        finding = Bench(100_000, "if_available").look(terms)
        found[finding.possible] += 1
        opposite = {Possible.YES: "unsat", Possible.NO: "sat"}.get(finding.possible)
        parsed = z3.Solver()
        parsed.set("rlimit", 100_000)
        parsed.from_string(query_text(terms))
        assert str(parsed.check()) != opposite, f"seed {seed}"
        if finding.possible is Possible.NO:
            assert Cvc5(2_000_000).check(terms).satisfiable is not Satisfiable.YES
    return found


def test_solvers_and_arithmetic_agree_about_random_claims() -> None:
    found = agree(range(120))
    assert found[Possible.YES] > 60
    assert found[Possible.NO] > 5


@pytest.mark.slow
def test_solvers_and_arithmetic_agree_about_very_many_random_claims() -> None:
    found = agree(range(50_000, 60_000))
    assert found[Possible.NO] > 500


def test_the_same_question_has_the_same_answer_and_the_same_values() -> None:
    answers = []
    for _ in range(2):
        claim = read_text(ALL_KINDS)
        answers.append(Z3(1_000_000).check([each.term for each in claim.assertions], claim.declared))
    assert answers[0] == answers[1]


def test_a_core_names_what_contradicts() -> None:
    claim = read_text("(declare-const x Int)(assert (> x 0))(assert (< x 9))(assert (! (< x 0) :named low))")
    labelled = {each.name: each.term for each in claim.assertions}
    assert Z3(1_000_000).core(labelled) == ["assertion 1", "low"]


def test_too_little_effort_is_no_answer() -> None:
    terms = asserted(
        "(declare-const x (_ BitVec 32))(declare-const y (_ BitVec 32))(assert (= (bvmul x y) #x3ffea059))"
        "(assert (and (bvult #x00000001 x) (bvult x #x00010000) (bvult #x00000001 y) (bvult y #x00010000)))"
    )
    answer = Z3(1_000).check(terms)
    assert answer.satisfiable is Satisfiable.UNKNOWN
    assert answer.exhausted

"""Each question is answered by what it rests on, and the evidence lets somebody else ask again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import z3
from tables import table

from verifiers.contract.errors import SpecError
from verifiers.contract.verdict import Ground, Outcome, Verdict
from verifiers.smt import bench
from verifiers.smt.cvc5_solver import Cvc5
from verifiers.smt.problem import Satisfiable, SolverAnswer
from verifiers.smt.spec import SmtSpec
from verifiers.smt.verifier import SmtVerifier

XY = "(declare-const x Int)(declare-const y Int)"
SUM = XY + "(assert (! (> x 0) :named left))(assert (! (> y 0) :named right))(assert (! (< x 9) :named other))"
NESTED = "(declare-const x Int)(assert (! (= (+ x 1) (+ 1 x)) :named goal))"


def judge(claim: str, submission: str = "entailed", **fields: Any) -> Verdict:
    return SmtVerifier().verify(SmtSpec(claim=claim, **fields), submission)


def test_a_proof_names_what_it_used_and_can_be_asked_again_of_any_solver() -> None:
    verdict = judge(SUM + "(assert (! (> (+ x y) 1) :named goal))")
    assert verdict.outcome is Outcome.PASS
    assert verdict.ground is Ground.PROVED
    assert verdict.score == 1
    assert verdict.evidence["solvers"] == {"z3": "unsat", "cvc5": "unsat"}
    assert verdict.evidence["core"] == ["left", "right", "goal"]
    assert set(verdict.tools) == {"z3", "cvc5"}
    again = z3.Solver()
    again.from_string(verdict.evidence["query"]["smt2"])
    assert again.check() == z3.unsat


def test_a_proof_may_be_asked_for_and_is_the_same_each_time() -> None:
    claim = SUM + "(assert (! (> (+ x y) 1) :named goal))"
    proof = judge(claim, proof="digest").evidence["proof"]
    assert proof["calculus"] == "CPC"
    assert proof["steps"] > 5
    assert proof["trusted_steps"] == 0
    assert proof == judge(claim, proof="digest").evidence["proof"]
    term = "(bvadd b b)"
    doubled = "(declare-const b (_ BitVec 4))(define-fun reference () (_ BitVec 4) (bvshl b #x1))"
    assert "sha256" in judge(doubled, term, question="equivalent", proof="digest").evidence["proof"]


def test_a_counterexample_holds_the_assumptions_and_not_the_goal() -> None:
    verdict = judge(SUM + "(assert (! (> (+ x y) 2) :named goal))")
    assert verdict.ground is Ground.REFUTED
    assert verdict.evidence["counterexample"] == {"x": "1", "y": "1"}
    assert verdict.evidence["solvers"]["arithmetic"] == "holds"


def test_the_last_assertion_is_the_negated_goal_where_none_is_named() -> None:
    assert judge(SUM + "(assert (not (> (+ x y) 1)))(check-sat)").passed
    assert not judge(SUM + "(assert (not (> (+ x y) 2)))(check-sat)").passed


@pytest.mark.parametrize(
    ("last", "holds"),
    [
        ("(assert (not (not (< x 0))))", True),
        ("(assert (not (not (> x 0))))", False),
        ("(assert (not (not (not (< x 0)))))", False),
        ("(assert (not true))", True),
        ("(assert (not (distinct x 0)))", True),
        ("(assert (let ((s (+ x y))) (let ((two 2)) (not (>= s two)))))", True),
        ("(assert (! (let ((s (+ x y))) (not (>= s 3))) :named negated))", False),
    ],
)
def test_a_goal_is_what_the_last_assertion_negates_as_it_is_written(last: str, holds: bool) -> None:
    assert judge(SUM + last).passed == holds


LEMMA = XY + "(declare-fun lemma (Int) Bool)(assert (> x 3))(assert (! (lemma x) :named lemma-of-x))"


@pytest.mark.parametrize(
    ("lemma", "passes"),
    [
        ("(> k 2)", True),
        ("true", True),
        ("(distinct k 0)", True),
        ("(> k 5)", False),
        ("(= k 4)", False),
        ("false", False),
        ("(forall ((j Int)) (> j k))", False),
    ],
)
def test_what_a_hole_says_in_an_assumption_has_to_follow_from_the_others(lemma: str, passes: bool) -> None:
    claim = LEMMA + "(assert (! (=> (lemma x) (> x 1)) :named goal))"
    verdict = judge(claim, f"(define-fun lemma ((k Int)) Bool {lemma})", holes=("lemma",))
    assert verdict.passed == passes, verdict
    assert passes or "lemma-of-x" in verdict.reason


def test_two_assumptions_with_a_hole_do_not_support_each_other() -> None:
    claim = XY + "(declare-fun h (Int) Int)(assert (= x (h 0)))(assert (= (h 0) x))(assert (! (> x 4) :named goal))"
    assert not judge(claim, "(define-fun h ((k Int)) Int 5)", holes=("h",)).passed


def test_a_hole_behind_a_definition_of_the_claim_is_found() -> None:
    defined = "(declare-fun h () Bool)(define-fun both () Bool (and h (> x 0)))(assert (> x 0))(assert both)"
    claim = XY + defined + "(assert (! (> x 1) :named goal))"
    assert not judge(claim, "(define-fun h () Bool (> 0 1))", holes=("h",)).passed


@pytest.mark.parametrize("last", ["(assert (> (+ x y) 1))", "", "(assert (= x y))"])
def test_a_claim_without_a_goal_is_refused(last: str) -> None:
    with pytest.raises(SpecError, match="no goal") as caught:
        SmtVerifier().check(SmtSpec(claim=(XY + last)))
    assert caught.value.hint


def test_contradictory_assumptions_prove_nothing_and_are_named() -> None:
    verdict = judge(SUM + "(assert (! (< x 0) :named wrong))(assert (! (= x 77) :named goal))")
    assert verdict.ground is Ground.UNKNOWN
    assert verdict.evidence["vacuous"] is True
    assert verdict.evidence["core"] == ["left", "wrong"]


def test_a_divisor_that_may_be_zero_is_said_to_be_so() -> None:
    verdict = judge("(declare-const x Int)(assert (! (= (div x x) (div x x)) :named goal))")
    assert verdict.ground is Ground.UNKNOWN
    assert "divisor" in verdict.reason
    assert verdict.evidence["divisor_zero"] == {"x": "0"}


@pytest.mark.parametrize(
    "goal",
    [
        "(=> (distinct x 0) (= (/ x x) 1))",
        "(or (= x 0) (= (/ x x) 1))",
        "(ite (= x 0) true (= (/ x x) 1))",
        "(not (and (distinct x 0) (distinct (/ x x) 1)))",
        "(forall ((y Real)) (=> (> y 0) (> (/ 1 y) 0)))",
    ],
)
def test_a_divisor_may_be_guarded_from_left_to_right(goal: str) -> None:
    assert judge(f"(declare-const x Real)(assert (! {goal} :named goal))").passed


@pytest.mark.parametrize(
    "goal", ["(or (= (/ x x) 1) (= x 0))", "(=> (= (/ x x) 1) (distinct x 0))", "(exists ((y Real)) (= (/ 1 y) 1))"]
)
def test_a_guard_on_the_other_side_does_not_guard(goal: str) -> None:
    assert not judge(f"(declare-const x Real)(assert (! {goal} :named goal))").passed


def test_division_is_total_only_where_the_spec_says_so() -> None:
    claim = "(declare-const x Int)(assert (! (= (* x (div x x)) x) :named goal))"
    assert not judge(claim).passed
    assert judge(claim, division="total").passed
    assert not judge("(declare-const x Int)(assert (! (= (div x 0) 0) :named goal))", division="total").passed


def test_bit_vectors_wrap_around_and_divide_by_zero_as_stated() -> None:
    wrap = "(declare-const b (_ BitVec 8))(assert (! (bvugt (bvadd b #x01) b) :named goal))"
    assert judge(wrap).evidence["counterexample"] == {"b": "#xff"}
    assert judge("(declare-const b (_ BitVec 8))(assert (! (= (bvudiv b #x00) #xff) :named goal))").passed


def test_another_opinion_that_contradicts_is_nobodys_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cvc5, "check", lambda self, assertions: SolverAnswer(Satisfiable.YES))
    verdict = judge(NESTED)
    assert verdict.outcome is Outcome.INFRA_ERROR
    assert verdict.score == 0
    assert judge(NESTED, second="none").passed


def test_without_cvc5_a_proof_stands_unless_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "tools", lambda: {"z3": "1"})
    assert judge(NESTED).evidence["solvers"] == {"z3": "unsat"}
    assert judge(NESTED).passed
    assert judge(NESTED, second="required").outcome is Outcome.INFRA_ERROR


def test_an_opinion_that_is_required_and_not_given_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cvc5, "check", lambda self, assertions: SolverAnswer(Satisfiable.UNKNOWN, exhausted=True))
    assert judge(NESTED).passed
    assert judge(NESTED, second="required").ground is Ground.TIMEOUT


def test_cvc5_may_prove_what_z3_does_not_know_and_the_verdict_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from verifiers.smt.z3_solver import Z3

    monkeypatch.setattr(
        Z3, "check", lambda self, assertions, asked: SolverAnswer(Satisfiable.UNKNOWN, why="incomplete")
    )
    verdict = judge(NESTED)
    assert verdict.passed
    assert verdict.evidence["solvers"] == {"z3": "unknown (incomplete)", "cvc5": "unsat"}
    assert judge(NESTED, second="required").ground is Ground.UNKNOWN


def test_values_that_do_not_hold_are_nobodys_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "evaluate", lambda term, interpretation: False)
    assert judge(SUM + "(assert (! (> (+ x y) 2) :named goal))").outcome is Outcome.INFRA_ERROR


@table(
    "claim",
    [
        "(set-option :produce-models true)" + NESTED,
        NESTED + "(check-sat)(exit)",
        NESTED + "(check-sat)(get-model)",
        "(push 1)" + NESTED,
        '(echo "x")' + NESTED,
        "(define-fun-rec f ((x Int)) Int (f x))" + NESTED,
        "(declare-datatype T ((a)))" + NESTED,
        "(declare-fun + (Int) Int)" + NESTED,
        "(declare-const x Int)" + NESTED,
        "(declare-sort S 1)" + NESTED,
        "(declare-sort Int 0)" + NESTED,
        "(assert (! true :named a))(assert (! true :named a))" + NESTED,
        "(assert 1)" + NESTED,
        "(assert (! true :pattern (x)))" + NESTED,
        "(assert (f 1))" + NESTED,
        "(assert (bvadd #x01 #x1))" + NESTED,
        "(assert (forall () true))" + NESTED,
        "(assert (let ((a 1) (a 2)) true))" + NESTED,
        "(assert (= ((as const (Array Int Int)) true) ((as const (Array Int Int)) 1)))" + NESTED,
        "(declare-const a (Array (Array Int Int) Int))" + NESTED,
        "(define-fun f () Int true)" + NESTED,
        "(define-fun f ((x Int)) Int (g x))(define-fun g ((x Int)) Int x)" + NESTED,
        "(minimize 1)" + NESTED,
        "(set-logic QF_STRINGS)" + NESTED,
        "(assert (= ((_ extract 8 0) #x00) #x00))" + NESTED,
        "",
    ],
)
def test_a_claim_outside_of_the_language_is_a_bad_spec(claim: str) -> None:
    with pytest.raises(SpecError, match="cannot be used"):
        SmtVerifier().check(SmtSpec(claim=claim))


def test_a_definition_sees_its_own_parameters_and_not_what_calls_it() -> None:
    claim = "(declare-const y Int)(define-fun f ((x Int)) Int (+ x y))"
    goal = "(assert (! (forall ((y Int)) (let ((x 5)) (= (f 1) (- (f 2) 1)))) :named goal))"
    assert judge(claim + goal).passed
    captured = "(assert (! (forall ((y Int)) (= (f 0) y)) :named goal))"
    assert not judge(claim + captured).passed


@table(
    ("fields", "message"),
    [
        ({"question": "model", "claim": XY}, "every model is valid"),
        ({"question": "model", "claim": "(assert true)"}, "no symbol is declared"),
        ({"question": "model", "claim": "(declare-sort S 0)(declare-const s S)(assert (= s s))"}, "declared sorts"),
        ({"question": "optimum", "claim": XY}, "nothing is minimised"),
        ({"question": "optimum", "claim": XY + "(minimize x)(maximize y)"}, "second objective"),
        ({"question": "equivalent", "claim": XY}, "no definition"),
        ({"holes": ("f",), "claim": NESTED}, "not declared"),
        ({"holes": ("f",), "claim": XY + "(minimize x)", "question": "optimum"}, "not declared"),
        ({"uses": ("f",), "claim": NESTED}, "not declared"),
        ({"forbidden": ("frobnicate",), "claim": NESTED}, "not an operator"),
    ],
)
def test_a_spec_that_lacks_what_it_is_about_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        SmtVerifier().check(SmtSpec(**fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"question": "model", "claim": "(declare-const x Int)(assert (= x x))"}, "every value is valid"),
        ({"question": "model", "claim": "(declare-const x Int)(assert (< x x))"}, "unsatisfiable"),
        ({"question": "optimum", "claim": "(declare-const x Int)(assert (< x x))(minimize x)"}, "unsatisfiable"),
        ({"holes": ("f",), "claim": "(declare-fun f () Bool)(assert (! (or f (not f)) :named goal))"}, "for any"),
        ({"holes": ("f",), "claim": "(declare-fun f () Bool)(assert false)(assert (! f :named goal))"}, "for any"),
        (
            {"question": "equivalent", "claim": "(declare-const x Int)(define-fun reference () Int (div 1 x))"},
            "divide by zero",
        ),
    ],
)
def test_a_spec_that_accepts_everything_or_nothing_is_refused_by_proof(fields: dict[str, Any], message: str) -> None:
    SmtVerifier().check(SmtSpec(**fields))
    with pytest.raises(SpecError, match=message):
        SmtVerifier().check(SmtSpec(**fields), prove=True)


PRINTED = """(declare-const x Int)(declare-const y Real)(declare-const b (_ BitVec 8))(declare-const p Bool)
(declare-fun f (Int) Int)(declare-const a (Array Int Int))(define-fun d () Int (+ x 1))
(assert (< d (- 3)))(assert (= (* 3.0 y) (- 1.0)))(assert (= b #xff))(assert p)(assert (= (f 1) 2))(assert (= (f d) 3))
(assert (= (select a 1) 2))(assert (= (select a d) (- 4)))"""
PAIR = XY + "(assert (< x y))"


BY_CVC5 = """sat
(
; as cvc5 1.4.2 prints it
(define-fun x () Int (- 5))
(define-fun y () Real (/ (- 1) 3))
(define-fun b () (_ BitVec 8) #b11111111)
(define-fun p () Bool true)
(define-fun f ((_arg_1 Int)) Int (ite (= _arg_1 (- 4)) 3 2))
(define-fun a () (Array Int Int) (store (store ((as const (Array Int Int)) 0) 1 2) (- 4) (- 4)))
)
"""


def printed_by_z3() -> str:
    context = z3.Context()  # it has to outlive the call
    return str(z3.Z3_eval_smtlib2_string(context.ref(), PRINTED + "(check-sat)(get-model)"))


@pytest.mark.parametrize("printed", [printed_by_z3, lambda: BY_CVC5], ids=["z3", "cvc5"])
def test_what_a_solver_prints_as_its_model_is_read(printed: Callable[[], str]) -> None:
    text = printed()
    assert text.startswith("sat\n(")
    assert judge(PRINTED, text, question="model").passed
    wrong = text.replace("#xff", "#x00").replace("#b1", "#b0")
    assert judge(PRINTED, wrong, question="model").ground is Ground.REFUTED


@table(
    ("text", "passes"),
    [
        ("sat\n((x 1)\n (y 2))\n", True),
        ("success\nsuccess\nsat\n((x 1))\n((y 2))", True),
        ("sat\n(model\n  ; a comment\n  (define-fun x () Int\n    1)\n  (define-fun y () Int 2)\n)", True),
        ("unknown\n(\n(define-fun y () Int 2)\n(define-fun x () Int (- 2))\n)", True),
        ("sat\n((x 1) (y 2))\n(objectives\n (x 1)\n)", True),
        ("sat\n((x 2) (y 1))", False),
        ("sat", False),
        ("sat\n((x 1))", False),
        ("sat\n((x 1) (y 2))((y 3))", False),
        ("sat\n((x 1) (y 2)) sat", False),
        ("sat\n((x 1) (y 2)) (reset)", False),
        ("sat\n((x 1) (y 2) (z 3))", False),
        ("sat\n((x 1) (y 2) (assert false))", False),
        ("sat\n(model (objectives (x 1)) (define-fun x () Int 1))", False),
    ],
)
def test_a_solvers_words_around_its_values_are_no_values(text: str, passes: bool) -> None:
    assert judge(PAIR, text, question="model").passed == passes


def test_a_definition_of_the_claim_that_is_printed_again_changes_nothing() -> None:
    claim = "(declare-const x Int)(define-fun d () Int (+ x 1))(assert (> d 5))(minimize x)"
    printed = "sat\n(\n  (define-fun x () Int\n    {})\n  (define-fun d () Int\n    9)\n)\n(objectives\n (x 5)\n)"
    assert judge(claim, printed.format(5), question="optimum").passed
    assert judge(claim, printed.format(4), question="optimum").ground is Ground.REFUTED


def test_a_model_with_quantifiers_rests_on_both_solvers() -> None:
    claim = "(declare-const x Int)(assert (forall ((y Int)) (>= (* y y) x)))"
    verdict = judge(claim, "((x 0))", question="model")
    assert verdict.passed
    assert verdict.evidence["by_solver"] == {"assertion 1": {"z3": "unsat", "cvc5": "unsat"}}
    assert judge(claim, "((x 1))", question="model").ground is Ground.REFUTED


def test_an_optimum_shows_what_is_better() -> None:
    claim = "(declare-const x Real)(assert (<= (* x x) 4))(maximize x)"
    assert judge(claim, "((x 2.0))", question="optimum").passed
    worse = judge(claim, "((x 1.5))", question="optimum")
    assert worse.ground is Ground.REFUTED
    assert worse.evidence["value"] == "(/ 3.0 2.0)"
    assert "better" in worse.evidence


def test_two_terms_are_told_apart_by_an_input() -> None:
    claim = "(declare-const b (_ BitVec 8))(define-fun reference () (_ BitVec 8) (bvand b (bvneg b)))"
    verdict = judge(claim, "(bvand b #x01)", question="equivalent")
    assert verdict.ground is Ground.REFUTED
    given = int(verdict.evidence["input"]["b"][2:], 16)
    assert verdict.evidence["reference"] == f"#x{given & -given & 255:02x}"
    assert verdict.evidence["submitted"] == f"#x{given & 1:02x}"
    assert judge(claim, "(bvand b (bvadd (bvnot b) #x01))", question="equivalent").passed


def test_a_submission_may_be_held_to_a_size_and_to_operators() -> None:
    claim = "(declare-const b (_ BitVec 8))(define-fun reference () (_ BitVec 8) (bvmul b #x03))"
    term = "(bvadd b (bvadd b b))"
    assert judge(claim, term, question="equivalent", max_size=5, allowed=("bvadd",)).passed
    assert judge(claim, term, question="equivalent", max_size=4).ground is Ground.UNFINISHED
    assert judge(claim, term, question="equivalent", allowed=("bvshl",)).ground is Ground.UNFINISHED
    named = "(let ((c b)) (bvadd c b b))"
    assert judge(claim, named, question="equivalent", allowed=("bvadd",)).ground is Ground.UNFINISHED
    assert judge(claim, named, question="equivalent").passed


def test_a_hole_may_use_what_the_spec_lends_it_and_nothing_else() -> None:
    claim = "(declare-const limit Int)(declare-fun pick () Int)(assert (! (> pick limit) :named goal))"
    definition = "(define-fun pick () Int (+ limit 1))"
    assert judge(claim, definition, holes=("pick",), uses=("limit",)).passed
    assert judge(claim, definition, holes=("pick",)).ground is Ground.UNREADABLE


def test_what_a_hole_may_use_may_be_declared_or_defined_behind_it() -> None:
    claim = """(declare-fun inv (Int Int) Bool) (declare-const n Int) (define-fun next ((i Int)) Int (+ i 1))
        (assert (>= n 0)) (assert (inv 0 n)) (declare-const late Int)
        (assert (forall ((i Int) (r Int)) (=> (and (inv i r) (< i n)) (inv (next i) (- r 1)))))
        (assert (! (forall ((i Int) (r Int)) (=> (and (inv i r) (not (< i n))) (= r 0))) :named goal)) (check-sat)"""
    body = "(define-fun inv ((i Int) (r Int)) Bool (and (<= 0 i) (<= i n) (= (+ i r) n){}))"
    assert judge(claim, body.format(""), holes=("inv",), uses=("n",)).passed
    assert judge(claim, body.format(" (= late late) (< i (next i))"), holes=("inv",), uses=("n", "late", "next")).passed
    assert judge(claim, body.format(" (= late late)"), holes=("inv",), uses=("n",)).ground is Ground.UNREADABLE


@table("word", ["", "sat", "unsat", "entailed.", "entailed entailed", "true", "yes", "not entailed"])
def test_only_the_one_word_says_that_a_closed_claim_holds(word: str) -> None:
    assert judge(NESTED, word).ground is Ground.UNREADABLE


def test_the_same_submission_has_the_same_verdict_and_evidence() -> None:
    claim = SUM + "(declare-fun f (Int) Int)(assert (= (f x) (* y y)))(assert (! (> (f x) y) :named goal))"
    assert judge(claim) == judge(claim)


TABLE = "(declare-fun f (Int) Int)(assert (= (f 1) 2))(assert (= (f 5) 3))"
BY_K = "(define-fun f ((x!0 Int)) Int (f!1 (k!0 x!0)))"
K = "(define-fun k!0 ((x!0 Int)) Int (ite (<= 5 x!0) 5 1))"
F = "(define-fun f!1 ((x!0 Int)) Int (ite (= x!0 5) 3 2))"
BY_HELPER = "(define-fun f ((x Int)) Int (k!0 x))"


@pytest.mark.parametrize("text", [f"sat ({BY_K}{K}{F})", f"sat ({K}{F}{BY_K})", f"{F}{BY_K}{K}"])
def test_functions_that_z3_made_up_for_its_model_are_read(text: str) -> None:
    assert judge(TABLE, text, question="model").ground is Ground.PROVED


@table(
    ("helpers", "why"),
    [
        ("(define-fun k!0 ((x Int)) Int (f x))", "f is not known here"),
        ("(define-fun k!0 ((x Int)) Int (k!0 x))", "is defined by itself"),
        ("(define-fun k!0 ((x Int)) Int (k!1 x))(define-fun k!1 ((x Int)) Int (k!0 x))", "is defined by itself"),
        ("", "k!0 is not known here"),
        ("(define-fun k!0 ((x Int)) Int 2)(define-fun k!0 ((x Int)) Int 3)", "given twice"),
        ("(define-fun k!0 ((x Int)) Bool (= x 1))", "sort Bool where Int is needed"),
        ("(define-fun k!0 ((x Int) (y Int)) Int 2)", "takes 2 arguments and has 1"),
        ("(define-fun k!0 ((x Bool)) Int 2)", "where Bool is needed"),
        ("(define-fun k!0 () Int 2)", "unexpected definition of k!0"),
        ("(define-fun helper ((x Int)) Int 2)", "unexpected definition of helper"),
        ("(define-fun k!0x ((x Int)) Int 2)", "unexpected definition of k!0x"),
        ("(define-fun-rec k!0 ((x Int)) Int (k!0 x))", ""),
        ("(define-fun k!0 ((x Int)) Int (ite (= x 1) 2 4))", "is false of these values"),
        ("(define-fun k!0 ((x Int)) Int (ite (exists ((y Int)) (= y x)) 2 3))", "is defined with a quantifier"),
        ("(define-fun k!0 ((x Int)) Int (+ x y))", ""),
        ("(define-fun k!0 ((x Int)) Int (root-obj (+ (^ x 2) (- 2)) 2))", "is irrational"),
        ("(define-fun k!0 ((x Int)) Int 2)(assert true)", ""),
        ("(define-fun k!0 ((x Int)) Int ((_ as-array k!1) x))", ""),
    ],
)
def test_what_is_made_up_is_held_to_what_is_asked(helpers: str, why: str) -> None:
    verdict = judge(TABLE, BY_HELPER + helpers, question="model")
    assert verdict.outcome is Outcome.FAIL
    assert why in verdict.reason


def test_what_is_made_up_does_not_grow_without_a_bound() -> None:
    chain = "".join(f"(define-fun k!{n} ((x Int)) Int (+ (k!{n + 1} x) (k!{n + 1} x)))" for n in range(40))
    verdict = judge(TABLE, f"{BY_HELPER}{chain}(define-fun k!40 ((x Int)) Int x)", question="model")
    assert "too large, with its definitions expanded" in verdict.reason


def test_an_irrational_value_is_told_that_nothing_is_proved_of_it() -> None:
    verdict = judge(
        "(declare-const x Real)(assert (= (* x x) 2.0))",
        "sat ((define-fun x () Real (root-obj (+ (^ x 2) (- 2)) 2)))",
        question="model",
    )
    assert verdict.ground is Ground.UNREADABLE
    assert "the value of x is irrational (root-obj), and values here are rational numbers" in verdict.reason


def test_made_up_functions_keep_to_what_a_spec_allows() -> None:
    verdict = judge(TABLE, f"{BY_K}{K}{F}", question="model", forbidden=("ite",))
    assert "ite may not be used here" in verdict.reason

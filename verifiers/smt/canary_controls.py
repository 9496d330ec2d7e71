"""Honest claims and submissions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from verifiers.case import Case
from verifiers.smt.canary_claims import AVERAGE, CIRCLE, COUNTING, KNAPSACK, POSITIVE, SEVENTH, XY, case


def controls() -> Iterator[Case]:
    def honest(name: str, claim: str, submission: str, why: str, **more: Any) -> Case:
        return case(name, claim, submission, why, honest=True, **more)

    yield honest(
        "follows", POSITIVE + "(assert (! (> (+ x y) 1) :named goal))", "entailed", "Sums of positive integers."
    )
    yield honest(
        "follows-by-custom", POSITIVE + "(assert (not (> (+ x y) 1)))(check-sat)", "entailed", "The goal negated last."
    )
    yield honest(
        "follows-with-guard",
        "(declare-const x Real)(assert (! (=> (distinct x 0) (= (/ x x) 1)) :named goal))",
        "entailed",
        "The divisor is guarded.",
    )
    yield honest(
        "follows-over-sorts",
        "(declare-sort Man 0)(declare-const socrates Man)(declare-fun man (Man) Bool)(declare-fun mortal (Man) Bool)"
        "(assert (forall ((m Man)) (=> (man m) (mortal m))))(assert (man socrates))"
        "(assert (! (mortal socrates) :named goal))",
        "entailed",
        "The oldest one.",
    )
    yield honest("model-list", CIRCLE, "((x 3) (y 4))", "As solvers print values.", question="model")
    yield honest(
        "model-of-solver", CIRCLE, "(\n  (define-fun y () Int\n    4)\n  (define-fun x () Int 3)\n)", "As printed.",
        question="model",
    )  # fmt: skip
    yield honest("model-json", CIRCLE, '{"x": 3, "y": "4"}', "As JSON.", question="model")
    yield honest(
        "model-of-function",
        "(declare-fun f (Int) Int)(declare-const a (Array Int Int))(assert (= (f 0) 1))(assert (= (f (f 0)) 5))"
        "(assert (= (select a (f 0)) (- 3)))(assert (forall ((k Int)) (>= (f k) 0)))",
        "(define-fun f ((k Int)) Int (ite (= k 0) 1 5))"
        "(define-const a (Array Int Int) ((as const (Array Int Int)) (- 3)))",
        "A function, an array, and a quantifier over the function.",
        question="model",
    )
    yield honest(
        "model-of-fractions",
        "(declare-const x Real)(declare-const y Real)(assert (= (+ x y) 1))(assert (= (* 3 x) (- y 2)))",
        "((x (- (/ 1 4))) (y 1.25))",
        "Exact fractions and decimals.",
        question="model",
    )
    yield honest("best", KNAPSACK, "((x 5) (y 2))", "The best there is.", question="optimum")
    yield honest(
        "best-of-bits",
        "(declare-const b (_ BitVec 8))(assert (= (bvand b #x0f) #x05))(minimize (bvnot b))",
        "((b #xf5))",
        "Unsigned order.",
        question="optimum",
    )
    yield honest(
        "shift-and-subtract", SEVENTH, "(bvsub (bvshl x #x00000003) x)", "No multiplication.", question="equivalent",
        forbidden=("bvmul",),
    )  # fmt: skip
    yield honest(
        "average-without-overflow",
        AVERAGE,
        "(bvadd (bvand x y) (bvlshr (bvxor x y) #x0001))",
        "The known trick.",
        question="equivalent",
        max_size=12,
    )
    yield honest(
        "equal-on-a-domain",
        "(declare-const x Int)(assert (>= x 0))(define-fun reference () Int (abs x))",
        "x",
        "Equal where the domain says.",
        question="equivalent",
    )
    yield honest("invariant", COUNTING, "(define-fun inv ((i Int) (n Int)) Bool (<= i n))", "A loop.", holes=("inv",))
    yield honest(
        "skolem-term",
        XY + "(declare-fun between (Int Int) Int)"
        "(assert (! (=> (< (+ x 1) y) (and (< x (between x y)) (< (between x y) y))) :named goal))",
        "(define-fun between ((a Int) (b Int)) Int (+ a 1))",
        "A witness for what exists.",
        holes=("between",),
    )
    yield honest(
        "long-but-legal",
        "(declare-const x (_ BitVec 16))(define-fun reference () (_ BitVec 16) (bvmul x #x0190))",
        "(bvadd " + "x " * 400 + ")",
        "Four hundred times x, added up.",
        question="equivalent",
        forbidden=("bvmul",),
    )

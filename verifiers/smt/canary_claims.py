"""Claims that the canaries submit to, and how a case is said."""

from __future__ import annotations

from typing import Any

from verifiers.case import Case
from verifiers.smt.spec import SmtSpec

XY = "(declare-const x Int)(declare-const y Int)"
POSITIVE = XY + "(assert (> x 0))(assert (> y 0))"
CIRCLE = XY + "(assert (= (+ (* x x) (* y y)) 25))(assert (< 0 x y))"
KNAPSACK = XY + "(assert (<= 0 x 5))(assert (<= 0 y))(assert (<= (+ (* 2 x) y) 12))(maximize (+ (* 3 x) y))"
SEVENTH = "(declare-const x (_ BitVec 32))(define-fun reference () (_ BitVec 32) (bvmul x #x00000007))"
AVERAGE = """(declare-const x (_ BitVec 16))(declare-const y (_ BitVec 16))
(define-fun reference () (_ BitVec 16)
  ((_ extract 16 1) (bvadd ((_ zero_extend 1) x) ((_ zero_extend 1) y))))"""
COUNTING = """(declare-fun inv (Int Int) Bool)
(assert (! (and
  (forall ((n Int)) (=> (>= n 0) (inv 0 n)))
  (forall ((i Int) (n Int)) (=> (and (inv i n) (< i n)) (inv (+ i 1) n)))
  (forall ((i Int) (n Int)) (=> (and (inv i n) (not (< i n))) (= i n)))) :named goal))"""
CONTRADICTORY_HOLE = """(declare-fun lemma (Int) Bool)(declare-const x Int)
(assert (lemma x))(assert (! (= (* x x) 2) :named goal))"""
FERMAT = (
    XY
    + """(declare-const z Int)(assert (> x 0))(assert (> y 0))(assert (> z 0))
(assert (! (distinct (+ (* x x x) (* y y y)) (* z z z)) :named goal))"""
)


def case(name: str, claim: str, submission: str, why: str, *, honest: bool = False, **more: Any) -> Case:
    about = {key: more.pop(key) for key in ("rows", "suspected") if key in more}
    return Case(name=name, spec=SmtSpec(claim=claim, **more), submission=submission, honest=honest, why=why, **about)

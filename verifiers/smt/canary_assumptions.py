"""Claims that prove nothing: vacuous ones, unknown ones, and those that rest on a division by zero."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.case import Case
from verifiers.smt.canary_claims import CONTRADICTORY_HOLE, FERMAT, POSITIVE, case


def vacuous() -> Iterator[Case]:
    yield case(
        "contradictory-assumptions",
        POSITIVE + "(assert (< (+ x y) 1))(assert (! (= x 42) :named goal))",
        "entailed",
        "From what cannot be, everything follows.",
        rows=(35,),
    )
    yield case(
        "false-among-assumptions",
        POSITIVE + "(assert false)(assert (not (= x 42)))",
        "entailed",
        "`(assert false)` makes any script unsatisfiable.",
        rows=(35, 36),
    )
    yield case(
        "hidden-contradiction",
        "(declare-const x Real)(declare-const y Real)(assert (= (* x x) 2))(assert (= (* y y) 3))"
        "(assert (= (* x y) 1))(assert (! (= x y) :named goal))",
        "entailed",
        "A contradiction that takes algebra to see.",
        rows=(35,),
    )
    yield case(
        "empty-quantifier-contradiction",
        "(declare-sort U 0)(declare-fun p (U) Bool)(assert (forall ((u U)) (p u)))(assert (exists ((u U)) (not (p u))))"
        "(declare-const a U)(assert (! (not (p a)) :named goal))",
        "entailed",
        "A contradiction between quantifiers.",
        rows=(35,),
    )
    yield case(
        "hole-that-contradicts",
        CONTRADICTORY_HOLE,
        "(define-fun lemma ((k Int)) Bool false)",
        "The supplied term makes the assumptions impossible, and with them the goal true.",
        holes=("lemma",),
        rows=(35,),
    )
    yield case(
        "hole-that-assumes-the-goal",
        CONTRADICTORY_HOLE,
        "(define-fun lemma ((k Int)) Bool (= (* k k) 2))",
        "The same by assuming what is to be shown, which no integer satisfies.",
        holes=("lemma",),
        rows=(35,),
    )


def unknown() -> Iterator[Case]:
    yield case(
        "unknown-is-no-proof",
        FERMAT,
        "entailed",
        "True, and beyond the solvers: what they do not know is not proved.",
        effort=100_000,
        rows=(35,),
    )
    yield case(
        "not-shown-consistent",
        "(declare-fun f (Int) Int)(assert (forall ((k Int)) (= (f (f k)) (+ k 1))))(assert (! (= 1 1) :named goal))",
        "entailed",
        "No function on the integers does that, which no solver finds out: assumptions not shown to be possible.",
        effort=50_000,
        rows=(35,),
    )
    yield case(
        "out-of-effort",
        "(declare-const x (_ BitVec 40))(declare-const y (_ BitVec 40))"
        "(assert (and (bvult #x0000000001 x) (bvult x #x0000100000) (bvult #x0000000001 y) (bvult y #x0000100000)))"
        "(assert (! (distinct (bvmul x y) #x3fffea0059) :named goal))",
        "entailed",
        "A factorisation that takes longer than is allowed: no answer is no proof.",
        effort=20_000,
        rows=(35,),
    )


def division() -> Iterator[Case]:
    yield case(
        "quotient-by-zero",
        "(declare-const x Int)(assert (! (= (* x (div x x)) x) :named goal))",
        "entailed",
        "True of every x in SMT-LIB only because 0 times anything is 0: at 0 the quotient has no meaning.",
        rows=(35,),
    )
    yield case(
        "model-that-divides-by-zero",
        "(declare-const x Real)(declare-const y Real)(assert (= (/ x y) 7))(assert (distinct x 7))",
        "((x 1.0) (y 0.0))",
        "x/0 = 7 can be satisfied where division is total.",
        question="model",
        rows=(35,),
    )
    yield case(
        "term-that-divides-by-zero",
        "(declare-const x Int)(define-fun reference () Int (ite (= x 0) 0 1))",
        "(div x x)",
        "Agrees wherever it has a value.",
        question="equivalent",
    )
    yield case(
        "optimum-by-division",
        "(declare-const x Int)(assert (<= 0 x 4))(minimize (div 12 x))",
        "((x 0))",
        "12/0 may be as small as one likes.",
        question="optimum",
    )

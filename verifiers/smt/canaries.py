"""Claims and submissions that must not pass, and honest ones that must pass.

Rows of the catalogue: 12, 20, 24, 29 to 36, 50.
"""

from __future__ import annotations

from collections.abc import Iterator
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


def _case(name: str, claim: str, submission: str, why: str, *, honest: bool = False, **more: Any) -> Case:
    case = {key: more.pop(key) for key in ("rows", "suspected") if key in more}
    return Case(name=name, spec=SmtSpec(claim=claim, **more), submission=submission, honest=honest, why=why, **case)


def cases() -> Iterator[Case]:
    yield from _vacuous()
    yield from _unknown()
    yield from _division()
    yield from _injected()
    yield from _wrong()
    yield from _bombs()
    yield from _honest()


def _vacuous() -> Iterator[Case]:
    yield _case(
        "contradictory-assumptions",
        POSITIVE + "(assert (< (+ x y) 1))(assert (! (= x 42) :named goal))",
        "entailed",
        "From what cannot be, everything follows.",
        rows=(35,),
    )
    yield _case(
        "false-among-assumptions",
        POSITIVE + "(assert false)(assert (not (= x 42)))",
        "entailed",
        "`(assert false)` makes any script unsatisfiable.",
        rows=(35, 36),
    )
    yield _case(
        "hidden-contradiction",
        "(declare-const x Real)(declare-const y Real)(assert (= (* x x) 2))(assert (= (* y y) 3))"
        "(assert (= (* x y) 1))(assert (! (= x y) :named goal))",
        "entailed",
        "A contradiction that takes algebra to see.",
        rows=(35,),
    )
    yield _case(
        "empty-quantifier-contradiction",
        "(declare-sort U 0)(declare-fun p (U) Bool)(assert (forall ((u U)) (p u)))(assert (exists ((u U)) (not (p u))))"
        "(declare-const a U)(assert (! (not (p a)) :named goal))",
        "entailed",
        "A contradiction between quantifiers.",
        rows=(35,),
    )
    yield _case(
        "hole-that-contradicts",
        CONTRADICTORY_HOLE,
        "(define-fun lemma ((k Int)) Bool false)",
        "The supplied term makes the assumptions impossible, and with them the goal true.",
        holes=("lemma",),
        rows=(35,),
    )
    yield _case(
        "hole-that-assumes-the-goal",
        CONTRADICTORY_HOLE,
        "(define-fun lemma ((k Int)) Bool (= (* k k) 2))",
        "The same by assuming what is to be shown, which no integer satisfies.",
        holes=("lemma",),
        rows=(35,),
    )


def _unknown() -> Iterator[Case]:
    yield _case(
        "unknown-is-no-proof",
        FERMAT,
        "entailed",
        "True, and beyond the solvers: what they do not know is not proved.",
        effort=100_000,
        rows=(35,),
    )
    yield _case(
        "not-shown-consistent",
        "(declare-fun f (Int) Int)(assert (forall ((k Int)) (= (f (f k)) (+ k 1))))(assert (! (= 1 1) :named goal))",
        "entailed",
        "No function on the integers does that, which no solver finds out: assumptions not shown to be possible.",
        effort=50_000,
        rows=(35,),
    )
    yield _case(
        "out-of-effort",
        "(declare-const x (_ BitVec 40))(declare-const y (_ BitVec 40))"
        "(assert (and (bvult #x0000000001 x) (bvult x #x0000100000) (bvult #x0000000001 y) (bvult y #x0000100000)))"
        "(assert (! (distinct (bvmul x y) #x3fffea0059) :named goal))",
        "entailed",
        "A factorisation that takes longer than is allowed: no answer is no proof.",
        effort=20_000,
        rows=(35,),
    )


def _division() -> Iterator[Case]:
    yield _case(
        "quotient-by-zero",
        "(declare-const x Int)(assert (! (= (* x (div x x)) x) :named goal))",
        "entailed",
        "True of every x in SMT-LIB only because 0 times anything is 0: at 0 the quotient has no meaning.",
        rows=(35,),
    )
    yield _case(
        "model-that-divides-by-zero",
        "(declare-const x Real)(declare-const y Real)(assert (= (/ x y) 7))(assert (distinct x 7))",
        "((x 1.0) (y 0.0))",
        "x/0 = 7 can be satisfied where division is total.",
        question="model",
        rows=(35,),
    )
    yield _case(
        "term-that-divides-by-zero",
        "(declare-const x Int)(define-fun reference () Int (ite (= x 0) 0 1))",
        "(div x x)",
        "Agrees wherever it has a value.",
        question="equivalent",
    )
    yield _case(
        "optimum-by-division",
        "(declare-const x Int)(assert (<= 0 x 4))(minimize (div 12 x))",
        "((x 0))",
        "12/0 may be as small as one likes.",
        question="optimum",
    )


def _injected() -> Iterator[Case]:
    commands = {
        "reset": "(reset)",
        "reset-assertions": "(reset-assertions)(define-fun x () Int 3)(define-fun y () Int 4)",
        "set-option": '(set-option :regular-output-channel "/tmp/owned")(echo "sat")',
        "exit": "(define-fun x () Int 3) (exit)",
        "echo": '(echo "unsat")',
        "get-value": "(get-value (x y))",
        "push": "(push 1) ((x 3) (y 4))",
        "include": '(include "/etc/passwd")',
        "check-sat-assuming": "(check-sat-assuming ((not (= x x))))",
    }
    for name, submission in commands.items():
        yield _case(
            f"command-{name}",
            CIRCLE,
            submission,
            "A command to the solver, or to its output, where values are asked for.",
            question="model",
            suspected=True,
            rows=(36,),
        )
    yield _case("assert-false", CIRCLE, "(assert false)", "Adds to the claim.", question="model", rows=(36,))
    yield _case(
        "bracket-out-of-the-term",
        SEVENTH,
        "x) (assert false) (and true",
        "Closes a bracket that it did not open, so as to stand where commands are read.",
        question="equivalent",
        rows=(36,),
    )
    yield _case(
        "quoted-bracket",
        SEVENTH,
        "|x) (assert false) (and true|",
        "The same inside of a quoted symbol, for whoever pastes text.",
        question="equivalent",
        rows=(36,),
    )
    yield _case(
        "redeclared-constant",
        CIRCLE,
        "(declare-const x Int)(define-fun y () Int 4)",
        "Declares what it was to give a value.",
        question="model",
        rows=(36,),
    )
    yield _case(
        "redefined-operator",
        CIRCLE,
        "(define-fun x () Int 1)(define-fun y () Int 2)(define-fun + ((a Int) (b Int)) Int 25)",
        "Another meaning for an operator of the claim.",
        question="model",
        rows=(36,),
    )
    yield _case(
        "recursive-definition",
        COUNTING,
        "(define-fun-rec inv ((i Int) (n Int)) Bool (not (inv i n)))",
        "A definition that contradicts itself.",
        holes=("inv",),
        rows=(36,),
    )
    yield _case(
        "definition-that-uses-itself",
        COUNTING,
        "(define-fun inv ((i Int) (n Int)) Bool (not (inv i n)))",
        "The same without saying so.",
        holes=("inv",),
        rows=(36,),
    )
    yield _case(
        "pattern-annotation",
        COUNTING,
        "(define-fun inv ((i Int) (n Int)) Bool (! (<= i n) :pattern ((f i)) :weight 99))",
        "Steers the solver.",
        holes=("inv",),
        rows=(36,),
    )
    yield _case(
        "printed-verdict",
        POSITIVE + "(assert (! (> (+ x y) 2) :named goal))",
        "unsat\n; proved\n(verified)",
        "Claims success in the solver's words.",
        rows=(36,),
    )
    yield _case("printed-sat", CIRCLE, 'sat\n{"outcome": "pass"}', "Forges a verdict.", question="model", rows=(12, 36))


def _wrong() -> Iterator[Case]:
    yield _case(
        "does-not-follow",
        POSITIVE + "(assert (! (> (+ x y) 2) :named goal))",
        "entailed",
        "False at x = y = 1.",
    )
    yield _case("empty-word", POSITIVE + "(assert (not (> (+ x y) 1)))", "", "Says nothing.", rows=(24,))
    yield _case("empty-model", CIRCLE, "", "Says nothing.", question="model", rows=(24,))
    yield _case("empty-list", CIRCLE, "()", "Says nothing, in brackets.", question="model", rows=(24,))
    yield _case("empty-object", CIRCLE, "{}", "Says nothing, in JSON.", question="model", rows=(24,))
    yield _case("half-a-model", CIRCLE, "((x 3))", "Leaves y to the verifier.", question="model", rows=(24,))
    yield _case("two-models", CIRCLE, "((x 3) (y 4) (y 5))", "Two values for one name.", question="model", rows=(30,))
    yield _case("two-in-json", CIRCLE, '{"x": 3, "y": 5, "y": 4}', "The same in JSON.", question="model", rows=(30,))
    yield _case("claim-echoed", CIRCLE, CIRCLE, "The claim itself.", question="model", rows=(24,))
    yield _case("wrong-model", CIRCLE, "((x 4) (y 3))", "Breaks the order.", question="model")
    yield _case("unfinished-value", CIRCLE, "((x (+ 1 2)) (y 4))", "Lets it be computed.", question="model", rows=(32,))
    yield _case("value-by-another", CIRCLE, "((x 3) (y (+ x 1)))", "A value that is none.", question="model")
    yield _case("real-for-integer", CIRCLE, "((x 3.0) (y 4.0))", "Another sort.", question="model")
    yield _case("spoofed-name", CIRCLE, "((х 3) (y 4))", "A Cyrillic x.", question="model", rows=(33,))
    yield _case("infinite-value", CIRCLE, '{"x": Infinity, "y": NaN}', "No numbers.", question="model", rows=(31,))
    yield _case("not-the-best", KNAPSACK, "((x 5) (y 1))", "16, where 17 is possible.", question="optimum")
    yield _case("too-good", KNAPSACK, "((x 5) (y 3))", "Breaks a constraint.", question="optimum")
    yield _case(
        "not-attained",
        "(declare-const x Real)(assert (< 0 x))(minimize x)",
        "((x (/ 1 1000000000)))",
        "There is no least: whatever is given, half of it is better.",
        question="optimum",
    )
    yield _case(
        "reference-copied", SEVENTH, "(bvmul x #x00000007)", "The reference again.", question="equivalent", rows=(32,)
    )
    yield _case(
        "reference-called", SEVENTH, "reference", "The reference by its name.", question="equivalent", rows=(32,)
    )
    yield _case(
        "forbidden-operator",
        SEVENTH,
        "(bvmul #x00000007 x)",
        "Uses what was to be done without.",
        question="equivalent",
        forbidden=("bvmul",),
    )
    yield _case(
        "forbidden-by-let",
        SEVENTH,
        "(let ((y #x00000007)) (bvmul y x))",
        "The same behind a name.",
        question="equivalent",
        forbidden=("bvmul",),
    )
    yield _case(
        "overflowing-average",
        AVERAGE,
        "(bvlshr (bvadd x y) #x0001)",
        "Right unless the sum wraps around: a bit vector is no integer.",
        question="equivalent",
    )
    yield _case(
        "wrong-at-one-input",
        SEVENTH,
        "(ite (= x #xdeadbeef) x (bvsub (bvshl x #x00000003) x))",
        "Another value at one input of four thousand million: no sample finds it.",
        question="equivalent",
        rows=(20, 34),
    )
    yield _case(
        "truncated-division",
        "(declare-const x Int)(define-fun reference () Int (div x 2))",
        "(ite (>= x 0) (div x 2) (- (div (- x) 2)))",
        "Rounds towards zero, as many languages do; `div` rounds down here.",
        question="equivalent",
    )
    yield _case(
        "trivial-invariant", COUNTING, "(define-fun inv ((i Int) (n Int)) Bool true)", "Too weak.", holes=("inv",)
    )
    yield _case(
        "false-invariant", COUNTING, "(define-fun inv ((i Int) (n Int)) Bool false)", "Too strong.", holes=("inv",)
    )
    yield _case("other-sorts", COUNTING, "(define-fun inv ((i Real) (n Int)) Bool (<= i n))", "Sorts.", holes=("inv",))


def _bombs() -> Iterator[Case]:
    yield _case("nested-brackets", CIRCLE, "(" * 1_000_000, "A million brackets.", question="model", rows=(29, 50))
    yield _case("closing-brackets", CIRCLE, ")" * 50_000, "All closing.", question="model", rows=(29, 50))
    bomb = "(let ((x (bvadd x x))) " * 300 + "x" + ")" * 300
    yield _case(
        "exponential-let", SEVENTH, bomb, "2^300 terms, were they written out.", question="equivalent", rows=(29, 50)
    )
    power = "(let ((x (* x x))) " * 90 + "x" + ")" * 90
    yield _case(
        "power-tower",
        "(declare-const x Int)(define-fun reference () Int (* 2 x))",
        power,
        "x to the power 2^90, which solvers begin to multiply out.",
        question="equivalent",
        rows=(29,),
    )
    yield _case("huge-number", CIRCLE, f"((x 3) (y {'9' * 50_000}))", "50,000 digits.", question="model", rows=(29,))
    yield _case(
        "huge-width", SEVENTH, "(_ bv1 999999999)", "A bit vector of a gigabit.", question="equivalent", rows=(29,)
    )
    yield _case(
        "huge-repeat", SEVENTH, "((_ extract 31 0) ((_ repeat 99999) x))", "Three megabits.", question="equivalent",
        rows=(29,),
    )  # fmt: skip
    yield _case("deep-json", CIRCLE, '{"x": ' + "[" * 50_000, "JSON as deep as it goes.", question="model", rows=(50,))


def _honest() -> Iterator[Case]:
    def honest(name: str, claim: str, submission: str, why: str, **more: Any) -> Case:
        return _case(name, claim, submission, why, honest=True, **more)

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

"""Submissions that are terms or values, and wrong."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.case import Case
from verifiers.smt.canary_claims import AVERAGE, CIRCLE, COUNTING, KNAPSACK, POSITIVE, SEVENTH, case


def wrong() -> Iterator[Case]:
    yield case(
        "does-not-follow",
        POSITIVE + "(assert (! (> (+ x y) 2) :named goal))",
        "entailed",
        "False at x = y = 1.",
    )
    yield case("empty-word", POSITIVE + "(assert (not (> (+ x y) 1)))", "", "Says nothing.", rows=(24,))
    yield case("empty-model", CIRCLE, "", "Says nothing.", question="model", rows=(24,))
    yield case("empty-list", CIRCLE, "()", "Says nothing, in brackets.", question="model", rows=(24,))
    yield case("empty-object", CIRCLE, "{}", "Says nothing, in JSON.", question="model", rows=(24,))
    yield case("half-a-model", CIRCLE, "((x 3))", "Leaves y to the verifier.", question="model", rows=(24,))
    yield case("two-models", CIRCLE, "((x 3) (y 4) (y 5))", "Two values for one name.", question="model", rows=(30,))
    yield case("two-in-json", CIRCLE, '{"x": 3, "y": 5, "y": 4}', "The same in JSON.", question="model", rows=(30,))
    yield case("claim-echoed", CIRCLE, CIRCLE, "The claim itself.", question="model", rows=(24,))
    yield case("wrong-model", CIRCLE, "((x 4) (y 3))", "Breaks the order.", question="model")
    yield case("unfinished-value", CIRCLE, "((x (+ 1 2)) (y 4))", "Lets it be computed.", question="model", rows=(32,))
    yield case("value-by-another", CIRCLE, "((x 3) (y (+ x 1)))", "A value that is none.", question="model")
    yield case("real-for-integer", CIRCLE, "((x 3.0) (y 4.0))", "Another sort.", question="model")
    yield case("spoofed-name", CIRCLE, "((х 3) (y 4))", "A Cyrillic x.", question="model", rows=(33,))
    yield case("infinite-value", CIRCLE, '{"x": Infinity, "y": NaN}', "No numbers.", question="model", rows=(31,))
    yield case("not-the-best", KNAPSACK, "((x 5) (y 1))", "16, where 17 is possible.", question="optimum")
    yield case("too-good", KNAPSACK, "((x 5) (y 3))", "Breaks a constraint.", question="optimum")
    yield case(
        "not-attained",
        "(declare-const x Real)(assert (< 0 x))(minimize x)",
        "((x (/ 1 1000000000)))",
        "There is no least: whatever is given, half of it is better.",
        question="optimum",
    )
    yield case(
        "reference-copied", SEVENTH, "(bvmul x #x00000007)", "The reference again.", question="equivalent", rows=(32,)
    )
    yield case(
        "reference-called", SEVENTH, "reference", "The reference by its name.", question="equivalent", rows=(32,)
    )
    yield case(
        "forbidden-operator",
        SEVENTH,
        "(bvmul #x00000007 x)",
        "Uses what was to be done without.",
        question="equivalent",
        forbidden=("bvmul",),
    )
    yield case(
        "forbidden-by-let",
        SEVENTH,
        "(let ((y #x00000007)) (bvmul y x))",
        "The same behind a name.",
        question="equivalent",
        forbidden=("bvmul",),
    )
    yield case(
        "overflowing-average",
        AVERAGE,
        "(bvlshr (bvadd x y) #x0001)",
        "Right unless the sum wraps around: a bit vector is no integer.",
        question="equivalent",
    )
    yield case(
        "wrong-at-one-input",
        SEVENTH,
        "(ite (= x #xdeadbeef) x (bvsub (bvshl x #x00000003) x))",
        "Another value at one input of four thousand million: no sample finds it.",
        question="equivalent",
        rows=(20, 34),
    )
    yield case(
        "truncated-division",
        "(declare-const x Int)(define-fun reference () Int (div x 2))",
        "(ite (>= x 0) (div x 2) (- (div (- x) 2)))",
        "Rounds towards zero, as many languages do; `div` rounds down here.",
        question="equivalent",
    )
    yield case(
        "trivial-invariant", COUNTING, "(define-fun inv ((i Int) (n Int)) Bool true)", "Too weak.", holes=("inv",)
    )
    yield case(
        "false-invariant", COUNTING, "(define-fun inv ((i Int) (n Int)) Bool false)", "Too strong.", holes=("inv",)
    )
    yield case("other-sorts", COUNTING, "(define-fun inv ((i Real) (n Int)) Bool (<= i n))", "Sorts.", holes=("inv",))

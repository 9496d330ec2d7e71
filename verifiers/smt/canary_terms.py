"""Submissions that are no terms: commands, texts that leave their place, bombs."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.case import Case
from verifiers.smt.canary_claims import CIRCLE, COUNTING, POSITIVE, SEVENTH, case


def injected() -> Iterator[Case]:
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
        yield case(
            f"command-{name}",
            CIRCLE,
            submission,
            "A command to the solver, or to its output, where values are asked for.",
            question="model",
            suspected=True,
            rows=(36,),
        )
    yield case("assert-false", CIRCLE, "(assert false)", "Adds to the claim.", question="model", rows=(36,))
    yield case(
        "bracket-out-of-the-term",
        SEVENTH,
        "x) (assert false) (and true",
        "Closes a bracket that it did not open, so as to stand where commands are read.",
        question="equivalent",
        rows=(36,),
    )
    yield case(
        "quoted-bracket",
        SEVENTH,
        "|x) (assert false) (and true|",
        "The same inside of a quoted symbol, for whoever pastes text.",
        question="equivalent",
        rows=(36,),
    )
    yield case(
        "redeclared-constant",
        CIRCLE,
        "(declare-const x Int)(define-fun y () Int 4)",
        "Declares what it was to give a value.",
        question="model",
        rows=(36,),
    )
    yield case(
        "redefined-operator",
        CIRCLE,
        "(define-fun x () Int 1)(define-fun y () Int 2)(define-fun + ((a Int) (b Int)) Int 25)",
        "Another meaning for an operator of the claim.",
        question="model",
        rows=(36,),
    )
    yield case(
        "recursive-definition",
        COUNTING,
        "(define-fun-rec inv ((i Int) (n Int)) Bool (not (inv i n)))",
        "A definition that contradicts itself.",
        holes=("inv",),
        rows=(36,),
    )
    yield case(
        "definition-that-uses-itself",
        COUNTING,
        "(define-fun inv ((i Int) (n Int)) Bool (not (inv i n)))",
        "The same without saying so.",
        holes=("inv",),
        rows=(36,),
    )
    yield case(
        "pattern-annotation",
        COUNTING,
        "(define-fun inv ((i Int) (n Int)) Bool (! (<= i n) :pattern ((f i)) :weight 99))",
        "Steers the solver.",
        holes=("inv",),
        rows=(36,),
    )
    yield case(
        "printed-verdict",
        POSITIVE + "(assert (! (> (+ x y) 2) :named goal))",
        "unsat\n; proved\n(verified)",
        "Claims success in the solver's words.",
        rows=(36,),
    )
    yield case("printed-sat", CIRCLE, 'sat\n{"outcome": "pass"}', "Forges a verdict.", question="model", rows=(12, 36))


def bombs() -> Iterator[Case]:
    yield case("nested-brackets", CIRCLE, "(" * 1_000_000, "A million brackets.", question="model", rows=(29, 50))
    yield case("closing-brackets", CIRCLE, ")" * 50_000, "All closing.", question="model", rows=(29, 50))
    bomb = "(let ((x (bvadd x x))) " * 300 + "x" + ")" * 300
    yield case(
        "exponential-let", SEVENTH, bomb, "2^300 terms, were they written out.", question="equivalent", rows=(29, 50)
    )
    power = "(let ((x (* x x))) " * 90 + "x" + ")" * 90
    yield case(
        "power-tower",
        "(declare-const x Int)(define-fun reference () Int (* 2 x))",
        power,
        "x to the power 2^90, which solvers begin to multiply out.",
        question="equivalent",
        rows=(29,),
    )
    yield case("huge-number", CIRCLE, f"((x 3) (y {'9' * 50_000}))", "50,000 digits.", question="model", rows=(29,))
    yield case(
        "huge-width", SEVENTH, "(_ bv1 999999999)", "A bit vector of a gigabit.", question="equivalent", rows=(29,)
    )
    yield case(
        "huge-repeat", SEVENTH, "((_ extract 31 0) ((_ repeat 99999) x))", "Three megabits.", question="equivalent",
        rows=(29,),
    )  # fmt: skip
    yield case("deep-json", CIRCLE, '{"x": ' + "[" * 50_000, "JSON as deep as it goes.", question="model", rows=(50,))

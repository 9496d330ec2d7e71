"""A spec that a program passes which does nothing of what is asked is refused before any submission is looked at."""

from __future__ import annotations

from typing import Any

import pytest
from program_kit import NUMBERS
from tables import table

from verifiers.contract.errors import SpecError
from verifiers.programs import checking
from verifiers.programs.data.compare import CompareRule
from verifiers.programs.data.generators import Floats, Integers, Lists
from verifiers.programs.spec import Example, MetamorphicRelation, ProgramSpec, Run
from verifiers.programs.verifier import ProgramVerifier


def examples(*pairs: tuple[str, str], visible: bool = False) -> tuple[Example, ...]:
    return tuple(Example(arguments=given, expected=gives, visible=visible) for given, gives in pairs)


def near(absolute: float = 0.0, relative: float = 0.0) -> CompareRule:
    return CompareRule(rule="close", absolute=absolute, relative=relative)


def function(**fields: Any) -> ProgramSpec:
    return ProgramSpec(function="f", **fields)


def prints(*runs: tuple[str, str, bool], **fields: Any) -> ProgramSpec:
    return ProgramSpec(runs=tuple(Run(stdin=i, expected=o, visible=v) for i, o, v in runs), **fields)


def holds(body: str, **fields: Any) -> ProgramSpec:
    source = f"def holds(result, x):\n    return {body}\n"
    return function(inputs=fields.pop("inputs", (Integers(),)), generate=6, properties=(source,), **fields)


SQUARES = (("1", "1.0"), ("2", "4.0"), ("3", "9.0"))
SHOWN = examples(("1", "1"), ("2", "4"), visible=True)


@table(
    ("spec", "what"),
    [
        (function(examples=examples(*SQUARES), compare=near(1e9)), "returns 0 passes"),
        (function(examples=examples(("1", "10.5"), ("2", "12.5")), compare=near(1.0)), r"returns 11\.5 passes"),
        (function(examples=examples(("1", "1.0"), ("2", "60.0")), compare=near(0, 0.99)), "returns .* passes"),
        (function(examples=examples(("1", "[1.0, 2.0]"), ("2", "[3.0, 4.0]")), compare=near(9)), "returns .* passes"),
        (function(examples=examples(("", "None"))), "returns None passes"),
        (function(examples=SHOWN + examples(("1", "1"))), "table of the visible examples"),
        (function(examples=SHOWN + examples(("2.0", "4"), ("x=1", "1"))), "table of the visible examples"),
        (function(examples=SHOWN + examples(("3", "None"))), "table of the visible examples"),
        (function(examples=(*SHOWN, *(Example(arguments="0", raises="OSError", visible=v) for v in (True, False)))),
         "table of the visible examples"),
        (function(examples=(Example(arguments="0", raises="KeyError"), Example(arguments="1", raises="LookupError"))),
         "raises KeyError"),
        (prints(("1", "1.0", False), ("2", "4.0", False), output="numbers", compare=near(100)), "program that prints"),
        (prints(("1", "10.5", False), ("2", "12.5", False), output="numbers", compare=near(1)), r"prints '11\.5"),
        (prints(("1", "1", True), ("2", "4", True), ("2\n", "4", False)), "table of the visible runs"),
        (holds("True"), "never uses its result"),
        (holds("x + 1 == y"), "uses y, which is not defined"),
        (holds("result == x", inputs=(Integers(), Integers())), "takes 2 arguments, not 3"),
        (function(examples=SHOWN + examples(("3", "9")), driver="def drive(solution, x):\n    return x * x\n"),
         "never uses its solution"),
    ],
)  # fmt: skip
def test_what_needs_no_sandbox_is_refused_where_a_spec_is_read(spec: ProgramSpec, what: str) -> None:
    with pytest.raises(SpecError, match=what) as refused:
        checking.check(spec)
    assert refused.value.hint


@table(
    "spec",
    [
        function(examples=examples(("", "42"))),
        function(examples=examples(("1", "1"), ("2", "2"))),
        function(examples=SHOWN + examples(("3", "9"))),
        function(examples=(Example(arguments="-1", raises="ValueError"), *examples(("1", "1"), ("4", "2")))),
        function(examples=examples(*SQUARES), compare=near(1e-9, 1e-9)),
        prints(("", "hello\n", False)),
        prints(("a", "a", False), ("b", "b", False)),
        prints(("1", "1", True), ("2", "4", False)),
        holds("__import__('math').isclose(result, x)"),
        holds("[y for y in [result] if y == x] and _same(result, x)\n_same = lambda a, b: a == b"),
    ],
)
def test_a_short_spec_that_tells_right_from_wrong_is_none(spec: ProgramSpec) -> None:
    checking.check(spec)


IDEMPOTENT = {"inputs": (NUMBERS,), "relations": (MetamorphicRelation(kind="idempotence"),)}
FIXED = examples(("[]", "[]"), ("[1]", "[1]"))
RIGHT = {
    "the argument beside examples that it fits": (function(examples=FIXED, **IDEMPOTENT), "returns argument 1 passes"),
    "the argument beside a property": (
        holds("result == result", inputs=(NUMBERS,), examples=FIXED), "returns argument 1 passes",
    ),
    "nan": (holds("not (result < x)", inputs=(Floats(),)), "returns nan passes"),
    "nothing": (holds("not result"), "returns None passes"),
    "the argument": (holds("len(result) == len(x)", inputs=(NUMBERS,)), "returns argument 1 passes"),
    "a reference and a tolerance": (
        function(inputs=(Floats(low=0.0, high=9.0),), generate=9, reference="def f(x):\n    return x / 2\n",
                 compare=near(99)),
        "returns 0 passes",
    ),
    "relations": (
        function(examples=examples(*SQUARES), compare=near(1e9), inputs=(Integers(),),
                 relations=(MetamorphicRelation(kind="monotone"),)),
        "returns 0 passes",
    ),
    "a driver": (
        function(examples=examples(("1", "2"), ("2", "4")),
                 driver="def drive(solution, x):\n    return x + (x if solution else 0)\n"),
        "an empty program passes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_a_sandbox_has_to_tell_is_refused_before_the_submission_runs(verifier: ProgramVerifier, name: str) -> None:
    spec, what = RIGHT[name]
    with pytest.raises(SpecError, match=what):
        verifier.verify(spec, "this is not even Python")


@pytest.mark.parametrize(
    ("spec", "right"),
    [
        (function(examples=(*FIXED, *examples(("[2, 1]", "[1, 2]"))), **IDEMPOTENT), "sorted(x)"),
        (holds("sorted(x) == result", inputs=(NUMBERS,), examples=FIXED), "sorted(x)"),
        (holds("result == x[0]", inputs=(Lists(of=Integers(), least=1),)), "x[0]"),
        (function(inputs=(NUMBERS,), generate=9, reference="def f(x):\n    return x\n"), "x"),
        (holds("0 <= result <= 9 and (result == x or not 0 <= x <= 9)", examples=examples(("5", "5"))),
         "min(9, max(0, x))"),
    ],
)  # fmt: skip
def test_a_sound_spec_is_none_though_simple_programs_fit_a_part_of_it(
    verifier: ProgramVerifier, spec: ProgramSpec, right: str
) -> None:
    verdict = verifier.verify(spec, f"def f(x):\n    return {right}\n", thorough=False)
    assert verdict.passed, verdict.reason


@pytest.mark.parametrize(
    ("hidden", "guess"), [((("5", "0"), ("6", "0")), "0"), ((("5", "4"),), "4"), ((("5", "''"),), "''")]
)
def test_a_table_of_the_visible_examples_and_a_guess_for_the_rest_is_no_solution(
    hidden: tuple[tuple[str, str], ...], guess: str
) -> None:
    with pytest.raises(SpecError, match=rf"a table of the visible examples that returns {guess} for everything else"):
        checking.check(function(examples=SHOWN + examples(*hidden)))
    checking.check(function(examples=SHOWN + examples(*hidden, ("9", "81"))))


def test_a_table_of_the_visible_runs_and_one_of_their_outputs_for_the_rest_is_no_solution() -> None:
    shown = (("1", "odd", True), ("2", "even", True))
    with pytest.raises(SpecError, match=r"a table of the visible runs that prints 'odd' for everything else"):
        checking.check(prints(*shown, ("3", "odd", False), ("5", "odd", False)))
    checking.check(prints(*shown, ("3", "odd", False), ("4", "even", False)))

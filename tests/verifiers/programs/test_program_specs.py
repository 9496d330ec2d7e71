"""Specs that could not decide anything are refused, with a hint; generated inputs are what was declared."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program_kit import SPECS
from property_budget import examples
from tables import table

from verifiers.contract.errors import SpecError
from verifiers.programs import checking
from verifiers.programs.data.generators import (
    Booleans,
    Choices,
    Dictionaries,
    Floats,
    Generator,
    Integers,
    Lists,
    Texts,
    Tuples,
    draw,
    inputs,
    simplest,
    smaller,
)
from verifiers.programs.data.values import DictPairs, Value, literal
from verifiers.programs.files import spec_of_toml
from verifiers.programs.functions import noticed, scan
from verifiers.programs.plan import plan, shuffled
from verifiers.programs.spec import Example, MetamorphicRelation, ProgramSpec, Run
from verifiers.registry.spec import SPEC

ONE, TWO = Example(arguments="1", expected="1"), Example(arguments="2", expected="4")
INVOLUTION = MetamorphicRelation(kind="involution")
NUMBER = Integers()
RIGHT = "def f(x):\n    return x\n"


@table(
    ("change", "why"),
    [
        ({}, "no tests"),
        ({"function": "f"}, "no tests"),
        ({"function": "f", "examples": (ONE,)}, "same result"),
        ({"function": "f", "examples": (ONE, Example(arguments="1", expected="2"))}, "contradicts an earlier"),
        ({"function": "f", "examples": (ONE, Example(arguments="2"))}, "exactly one"),
        ({"function": "f", "examples": (ONE, Example(arguments="2", expected="open('x')"))}, "not plain data"),
        ({"function": "f", "examples": (ONE, Example(arguments="2", raises="not a name"))}, "exception name"),
        ({"function": "1f", "examples": (ONE, TWO)}, "valid function name"),
        ({"function": "class", "examples": (ONE, TWO)}, "valid function name"),
        ({"function": "f", "examples": tuple(e.model_copy(update={"visible": True}) for e in (ONE, TWO))}, "visible"),
        ({"function": "f", "generate": 5, "reference": RIGHT}, "`generate` needs `inputs`"),
        ({"function": "f", "inputs": (NUMBER,), "generate": 5}, "expected results"),
        ({"function": "f", "inputs": (NUMBER,), "relations": (INVOLUTION,)}, "constant function"),
        ({"function": "f", "examples": (ONE, TWO), "relations": (INVOLUTION,)}, "Declare|generated"),
        ({"function": "f", "inputs": (Integers(low=3, high=1),), "generate": 5, "reference": RIGHT}, "empty"),
        ({"function": "f", "inputs": (NUMBER,), "generate": 5, "reference": "def g(): pass"}, "defines no function f"),
        ({"function": "f", "inputs": (NUMBER,), "generate": 5, "reference": "def f(:"}, "not Python"),
        ({"function": "f", "inputs": (NUMBER,), "generate": 5, "properties": ("x = 1",)}, "defines no function holds"),
        ({"function": "f", "examples": (ONE, TWO), "language": "perl"}, "only Python"),
        ({"function": "f", "examples": (ONE, TWO), "runs": (Run(expected="1"),)}, "whole programs"),
        ({"language": "cobol", "runs": (Run(expected="1"),)}, "unknown language"),
        ({"runs": (Run(stdin="1", expected="1"), Run(stdin="2", expected="1"))}, "same output"),
        ({"runs": (Run(),)}, "does nothing passes"),
        ({"runs": (Run(expected="1"),), "generate": 5}, "needs `inputs` and a"),
    ],
)  # fmt: skip
def test_a_spec_that_decides_nothing_is_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        checking.check(ProgramSpec(**change))


@table("name", SPECS)
def test_every_spec_of_the_canaries_can_be_used_stored_and_hashed(name: str) -> None:
    spec = SPECS[name]
    checking.check(spec)
    assert SPEC.validate_json(spec.model_dump_json()) == spec
    assert hash(spec) == hash(SPEC.validate_json(spec.model_dump_json()))


def test_the_same_spec_has_the_same_tests_in_a_mixed_order() -> None:
    spec = SPECS["squares-generated"]
    known: dict[int, Value] = dict.fromkeys(range(30), 0)
    tests = plan(spec, known)
    assert tests == plan(spec, known)
    assert shuffled(spec, tests) == shuffled(spec, tests)
    assert shuffled(spec, tests) != tests
    assert shuffled(spec, tests) != shuffled(spec, tests, 1)
    other = plan(spec.model_copy(update={"seed": 1}), known)
    assert [test.arguments for test in other] != [test.arguments for test in tests]
    assert {test.origin for test in tests} == {"example", "reference", "relation"}


def test_a_relation_that_is_asked_of_nothing_is_refused() -> None:
    spec = ProgramSpec(
        function="f", examples=(ONE, TWO), inputs=(Texts(),), relations=(MetamorphicRelation(kind="monotone"),)
    )
    checking.check(spec)
    with pytest.raises(SpecError, match="monotone"):
        plan(spec)


generators = st.recursive(
    st.one_of(
        st.tuples(st.integers(-50, 50), st.integers(0, 100)).map(lambda p: Integers(low=p[0], high=p[0] + p[1])),
        st.tuples(st.floats(-9, 9), st.floats(0, 9)).map(lambda p: Floats(low=p[0], high=p[0] + p[1])),
        st.just(Booleans()),
        st.tuples(st.integers(0, 3), st.integers(0, 5)).map(lambda p: Texts(alphabet="abc", least=p[0], most=sum(p))),
        st.just(Choices(among=("None", "'a'", "(1, 2)"))),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.integers(0, 2), st.integers(0, 4), st.booleans()).map(
            lambda p: Lists(of=p[0], least=p[1], most=p[1] + p[2], ordered=p[3])
        ),
        st.lists(inner, max_size=3).map(lambda parts: Tuples(parts=tuple(parts))),
        st.tuples(inner, inner).map(lambda p: Dictionaries(keys=p[0], items=p[1], most=3)),
    ),
    max_leaves=5,
)


def fits(generator: Generator, value: Value) -> bool:
    match generator:
        case Integers(low=low, high=high):
            return type(value) is int and low <= value <= high
        case Floats(low=low, high=high):
            return type(value) is float and low - 1 <= value <= high + 1
        case Booleans():
            return type(value) is bool
        case Texts(alphabet=alphabet, least=least, most=most):
            return type(value) is str and least <= len(value) <= most and set(value) <= set(alphabet)
        case Choices(among=among):
            return literal(value) in among
        case Lists(of=of, least=least, most=most):
            return type(value) is list and least <= len(value) <= most and all(fits(of, item) for item in value)
        case Tuples(parts=parts):
            return type(value) is tuple and all(fits(p, v) for p, v in zip(parts, value, strict=True))
        case Dictionaries(keys=keys, items=items, most=most):
            return (
                type(value) is DictPairs
                and len(value.pairs) <= most
                and all(fits(keys, k) and fits(items, v) for k, v in value.pairs)
            )


@given(generators, st.integers(0, 1_000))
@settings(max_examples=examples(150), deadline=None)
def test_what_is_generated_and_what_it_shrinks_to_is_what_was_declared(generator: Generator, seed: int) -> None:
    assert fits(generator, simplest(generator))
    value = draw(generator, Random(seed), 1.0)
    assert fits(generator, value)
    for _ in range(30):
        simpler = next(smaller(generator, value), None)
        if simpler is None:
            return
        assert fits(generator, simpler)
        assert literal(simpler) != literal(value)
        value = simpler


@given(generators)
@settings(max_examples=examples(40), deadline=None)
def test_shrinking_ends(generator: Generator) -> None:
    value, steps = draw(generator, Random(1), 1.0), 0
    while (simpler := next(smaller(generator, value), None)) is not None:
        value, steps = simpler, steps + 1
        assert steps < 2_000


def test_distinct_and_ordered_lists_are() -> None:
    generator = Lists(of=Integers(low=0, high=30), most=20, distinct=True, ordered=True)
    for number in range(50):
        made = draw(generator, Random(number), 1.0)
        assert isinstance(made, list)
        assert made == sorted(set(made))  # type: ignore[type-var]
        assert all(simpler == sorted(set(simpler)) for simpler in smaller(generator, made))  # type: ignore[type-var, arg-type]


def test_inputs_begin_with_the_simplest_and_do_not_repeat() -> None:
    found = list(inputs((Lists(of=Integers(low=-5, high=5), most=10),), 7, 100))
    assert found[0] == ([],)
    assert len({literal(one) for one in found}) == len(found)
    assert len(found) > 90
    assert len(list(inputs((Booleans(),), 7, 100))) == 2


TOML = """
function = "solve"
reference = '''
def solve(numbers):
    return sum(n * n for n in numbers)
'''
generate = 10

[[inputs]]
kind = "list"
of = { kind = "integer", low = -5, high = 5 }

[[examples]]
arguments = "[1, 2, 3]"
expected = "14"
visible = true

[[examples]]
arguments = [[2, 2]]
expected = 8
"""


def test_a_spec_is_read_from_toml() -> None:
    spec = spec_of_toml(TOML)
    assert spec.examples[1] == Example(arguments="[2, 2]", expected="8")
    assert spec.inputs == (Lists(of=Integers(low=-5, high=5)),)


@table(
    ("text", "why"),
    [
        ("function = ", "not TOML"), ("colour = 'red'", "colour"), ("function = 5", "function"), ("", "no tests"),
        ("examples = 3", "tables"), ("seconds = -1\n" + TOML, "seconds"),
        (TOML.replace("expected = 8", ""), "exactly one"),
        (TOML.replace("[[2, 2]]", "2"), "arguments"), (TOML.replace("= 8", "= 1979-05-27"), "plain data"),
        (TOML.replace("kind = \"list\"", "kind = \"lots\""), "inputs"), (TOML.replace('"14"', '"14 +"'), "literal"),
    ],
)  # fmt: skip
def test_toml_that_is_no_spec_says_why(text: str, why: str) -> None:
    with pytest.raises(SpecError, match=why):
        spec_of_toml(text)


def test_signals_are_seen_in_names_texts_and_assignments() -> None:
    assert scan("import sys\nsys._getframe(1).f_locals").strong == ("the name _getframe", "the name f_locals")
    assert scan("getattr(sys, '_getframe')").strong == ("the text _getframe",)
    assert scan("# _getframe\nx = 1").strong == ()
    assert scan("import builtins\nbuiltins.len = lambda x: 0").strong == ("the assignment builtins.len=",)
    assert scan("math.pi == 3").strong == ()
    assert scan("class A:\n    def __eq__(self, o):\n        return True").strong
    assert scan("class A:\n    def __eq__(self, o):\n        return self.x == o.x").strong == ()
    assert scan("import gc").weak == ("the name gc",)
    assert noticed(("sys._getframe", "hello", "builtins.len was replaced", "x" * 500)) == (
        "sys._getframe",
        "builtins.len was replaced",
    )


@table(
    "text",
    ['\\"""' * 50_000, "'''" + "\\" * 199_999, "def __eq__(" * 18_000, '"' * 200_000, "'\\" * 100_000,
     "sys.modules[" * 16_000,
     "a" * 200_000, "builtins . " * 18_000],
)  # fmt: skip
def test_a_source_is_scanned_in_bounded_time(text: str) -> None:
    scan(text)

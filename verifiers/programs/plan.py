"""Plan of tests: from a spec to its tests, in the order in which they run.

Invariants: the same spec gives the same tests in the same order, and the order does not reveal which tests are visible.
Seeds are derived from the spec's digest.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from random import Random
from typing import Literal, NamedTuple

from verifiers.contract.errors import SpecError
from verifiers.programs.data.compare import CompareRule
from verifiers.programs.data.generators import inputs
from verifiers.programs.data.values import Arguments, Value, literal, read, read_arguments
from verifiers.programs.relations import Pair, pairs
from verifiers.programs.spec import Example, MetamorphicRelation, ProgramSpec, Run

Origin = Literal["example", "reference", "property", "relation", "run"]
NO_RESULTS: Mapping[int, Value] = {}


class PlannedTest(NamedTuple):
    origin: Origin
    arguments: Arguments = Arguments(())
    expected: Value = None
    raises: str = ""
    """Expected exception; for a built-in one with several names, its own `__name__`."""
    visible: bool = False
    compare: CompareRule = CompareRule()
    properties: bool = False
    """True if the spec's properties are checked too."""
    relation: MetamorphicRelation | None = None
    pair: Pair | None = None
    run: Run | None = None
    number: int = 0
    """Index in the spec's order: examples or runs, generated inputs, relations."""


@lru_cache(maxsize=256)
def digest(spec: ProgramSpec) -> str:
    return sha256(spec.model_dump_json().encode("utf-8", "surrogatepass")).hexdigest()


def seed_of(spec: ProgramSpec, purpose: str) -> int:
    """Returns a random seed that depends only on the spec and the purpose."""
    return int.from_bytes(sha256(f"{digest(spec)} {purpose}".encode()).digest()[:8])


def generated(spec: ProgramSpec, *, purpose: str = "inputs", count: int | None = None) -> list[Arguments]:
    """Generates inputs for a spec's reference and properties. Another purpose gives other inputs."""
    if not spec.inputs:
        return []
    made = inputs(spec.inputs, seed_of(spec, purpose), spec.generate if count is None else count)
    return [Arguments(values) for values in made]


def stdin_of(arguments: Arguments) -> str:
    """Renders generated values as standard input: one line each, items of a list or tuple separated by spaces."""
    return "".join(f"{_line(value)}\n" for value in arguments.positional)


def _line(value: Value) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(_line, value))
    return value if isinstance(value, str) else literal(value)


def planned(spec: ProgramSpec, example: Example) -> PlannedTest:
    expected = None if example.raises else read(example.expected)
    how = example.compare or spec.compare
    arguments = read_arguments(example.arguments)
    kind = getattr(builtins, example.raises, None)
    raises = kind.__name__ if isinstance(kind, type) else example.raises  # IOError is OSError
    return PlannedTest("example", arguments, expected, raises, example.visible, how)


def plan(spec: ProgramSpec, expected: Mapping[int, Value] = NO_RESULTS) -> list[PlannedTest]:
    """Returns all tests of a program spec, in its order. `expected`: the reference's results for the generated inputs,
    by index.

    If the spec has a reference, inputs without a result are left out. Raises SpecError if no test remains or a relation
    has no usable input: untested code must not pass.
    """
    tests = [test._replace(number=number) for number, test in enumerate(_tests(spec, expected))]
    if not tests:
        raise SpecError("the spec yields no tests", hint="Give more examples, runs or inputs.")
    return tests


def _tests(spec: ProgramSpec, expected: Mapping[int, Value]) -> Iterator[PlannedTest]:
    for run in spec.runs:
        yield PlannedTest("run", visible=run.visible, run=run)
    for example in spec.examples:
        yield planned(spec, example)
    for place, arguments in enumerate(generated(spec)):
        if spec.function and not spec.reference:
            yield PlannedTest("property", arguments, properties=True)
        elif place in expected and spec.function:
            asked = bool(spec.properties)
            yield PlannedTest("reference", arguments, expected[place], compare=spec.compare, properties=asked)
        elif place in expected:
            run = Run(stdin=stdin_of(arguments), expected=str(expected[place]))
            yield PlannedTest("reference", run=run)
    for order, relation in enumerate(spec.relations):
        made = list(pairs(relation, spec.inputs, seed_of(spec, f"relation {order}")))
        if not made:
            raise SpecError(
                f"no generated input can be changed for the relation {relation.kind}",
                hint="Declare `inputs` to which it applies, and the right `argument`.",
            )
        for pair in made:
            yield PlannedTest("relation", Arguments(pair.first), compare=spec.compare, relation=relation, pair=pair)


def shuffled(spec: ProgramSpec, tests: list[PlannedTest], turn: int = 0) -> list[PlannedTest]:
    """Returns the tests in a random order that the spec determines: of their first run, or of repetition `turn`."""
    mixed = list(tests)
    Random(seed_of(spec, f"order {turn}")).shuffle(mixed)
    return mixed

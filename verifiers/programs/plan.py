"""From a spec to its tests, in the order in which they are run.

What always holds: the same spec gives the same tests in the same order, and the order says nothing of which of them are
visible. Seeds come from the spec's digest.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from random import Random
from typing import Literal, NamedTuple

from verifiers.errors import SpecError
from verifiers.programs.compare import Comparison
from verifiers.programs.generators import inputs
from verifiers.programs.relations import Pair, pairs
from verifiers.programs.spec import ProgramSpec, Relation, Run
from verifiers.programs.values import Arguments, Value, literal, read, read_arguments

Origin = Literal["example", "reference", "property", "relation", "run"]


class Trial(NamedTuple):
    number: int
    """In the spec's order: examples or runs, generated inputs, relations."""
    origin: Origin
    arguments: Arguments = Arguments(())
    expected: Value = None
    raises: str = ""
    visible: bool = False
    compare: Comparison = Comparison()
    properties: bool = False
    """Whether the spec's properties are asked, too."""
    relation: Relation | None = None
    pair: Pair | None = None
    run: Run | None = None


@lru_cache(maxsize=256)
def digest(spec: ProgramSpec) -> str:
    return sha256(spec.model_dump_json().encode("utf-8", "surrogatepass")).hexdigest()


def seed_of(spec: ProgramSpec, purpose: str) -> int:
    """A number that only the spec and the purpose decide on."""
    return int.from_bytes(sha256(f"{digest(spec)} {purpose}".encode()).digest()[:8])


def generated(spec: ProgramSpec, *, purpose: str = "inputs", count: int | None = None) -> list[Arguments]:
    """Inputs for the reference and the properties. Another purpose gives others."""
    if not spec.inputs:
        return []
    made = inputs(spec.inputs, seed_of(spec, purpose), spec.generate if count is None else count)
    return [Arguments(values) for values in made]


def stdin_of(arguments: Arguments) -> str:
    """Generated values as standard input: each a line, the items of a list or tuple apart by blanks."""
    return "".join(f"{_line(value)}\n" for value in arguments.positional)


def _line(value: Value) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(_line, value))
    return value if isinstance(value, str) else literal(value)


def plan(spec: ProgramSpec, expected: dict[int, Value] | None = None) -> list[Trial]:
    """All tests in the spec's order. `expected` is what the reference gave for the generated inputs, by their place;
    where the spec has a reference, inputs without such a value are left out. Raises SpecError where nothing is left, or
    a relation is asked of nothing: what was not tested has not been passed."""
    tests: list[Trial] = []
    for run in spec.runs:
        tests.append(Trial(len(tests), "run", visible=run.visible, run=run))
    for example in spec.examples:
        tests.append(
            Trial(
                len(tests),
                "example",
                read_arguments(example.arguments),
                None if example.raises else read(example.expected),
                example.raises,
                example.visible,
                example.compare or spec.compare,
            )
        )
    for place, arguments in enumerate(generated(spec)):
        if not spec.function:
            if expected is not None and place in expected:
                run = Run(stdin=stdin_of(arguments), expected=str(expected[place]))
                tests.append(Trial(len(tests), "reference", run=run))
        elif not spec.reference:
            tests.append(Trial(len(tests), "property", arguments, properties=True))
        elif expected is not None and place in expected:
            tests.append(
                Trial(
                    len(tests),
                    "reference",
                    arguments,
                    expected[place],
                    compare=spec.compare,
                    properties=bool(spec.properties),
                )
            )
    for order, relation in enumerate(spec.relations):
        made = list(pairs(relation, spec.inputs, seed_of(spec, f"relation {order}")))
        if not made:
            raise SpecError(
                f"no generated input can be changed for the relation {relation.kind}",
                hint="Declare `inputs` of a kind that it is about, and the right `argument`.",
            )
        for pair in made:
            tests.append(
                Trial(len(tests), "relation", Arguments(pair.first), compare=spec.compare, relation=relation, pair=pair)
            )
    if not tests:
        raise SpecError("no test comes of it", hint="Give more examples, runs or inputs.")
    return tests


def shuffled(spec: ProgramSpec, tests: list[Trial], turn: int = 0) -> list[Trial]:
    """The order of the tests' first run, or of a repetition."""
    mixed = list(tests)
    Random(seed_of(spec, f"order {turn}")).shuffle(mixed)
    return mixed

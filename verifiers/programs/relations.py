"""Metamorphic relations: makes related inputs and checks if the results satisfy the relation. Pure.

A relation says nothing about a single result, and a constant satisfies most: relations complement other tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from verifiers.programs.data.compare import CompareRule, agree
from verifiers.programs.data.generators import Generator, inputs
from verifiers.programs.data.values import DictPairs, Value
from verifiers.programs.spec import MetamorphicRelation

CHAINED = frozenset(["involution", "idempotence", "inverse"])
"""Relations in which the first result is the second input."""
LOOKED_THROUGH = 4
"""Inputs generated per wanted pair, because not every input can be changed."""


class Pair(NamedTuple):
    first: tuple[Value, ...]
    second: tuple[Value, ...] | None
    """Second input; None if it is the result for the first."""


def pairs(relation: MetamorphicRelation, generators: tuple[Generator, ...], seed: int) -> Iterator[Pair]:
    """Yields as many pairs of related inputs as a metamorphic relation wants; fewer if too few can be changed."""
    found = 0
    random = Random(seed)
    for arguments in inputs(generators, seed, LOOKED_THROUGH * relation.count):
        if found == relation.count:
            return
        second = None if relation.kind in CHAINED else changed(relation, arguments, random)
        if relation.kind in CHAINED or (second is not None and second != arguments):
            found += 1
            yield Pair(arguments, second)


def changed(relation: MetamorphicRelation, arguments: tuple[Value, ...], random: Random) -> tuple[Value, ...] | None:
    """Changes an input as a metamorphic relation requires; None if this input cannot be changed."""
    if relation.kind == "swap":
        return (arguments[1], arguments[0], *arguments[2:]) if len(arguments) > 1 else None
    if relation.argument >= len(arguments):
        return None
    value = arguments[relation.argument]
    other: Value
    match relation.kind, value:
        case "permutation", list() | tuple() | str():
            order = list(range(len(value)))
            random.shuffle(order)
            items = [value[place] for place in order]
            other = "".join(map(str, items)) if isinstance(value, str) else type(value)(items)
        case "reversal", list() | tuple() | str():
            other = value[::-1]
        case (("monotone" | "shift"), (int() | float())):
            other = value + (abs(relation.factor) if relation.kind == "monotone" else relation.factor)
        case "shift", list():
            other = [_plus(item, relation.factor) for item in value]
        case "scale", _:
            other = _times(value, relation.factor)
        case _:
            return None
    return (*arguments[: relation.argument], other, *arguments[relation.argument + 1 :])


def _plus(value: Value, addend: int) -> Value:
    return value + addend if isinstance(value, int | float) and not isinstance(value, bool) else value


def _times(value: Value, factor: int) -> Value:
    match value:
        case bool():
            return value
        case int() | float() | complex():
            return value * factor
        case list():
            return [_times(item, factor) for item in value]
        case tuple():
            return tuple(_times(item, factor) for item in value)
        case DictPairs(found):
            return DictPairs(tuple((key, _times(item, factor)) for key, item in found))
        case _:
            return value


def chained(relation: MetamorphicRelation, pair: Pair, first: Value) -> tuple[Value, ...]:
    """Builds the second input of a metamorphic relation that applies functions in a chain, from the first result."""
    if relation.kind == "inverse":
        return (first,)
    return (*pair.first[: relation.argument], first, *pair.first[relation.argument + 1 :])


def holds(relation: MetamorphicRelation, pair: Pair, first: Value, second: Value, how: CompareRule) -> bool:
    """True if two results satisfy a metamorphic relation. `second` is the result for the second input; in a chain, for
    the first result."""
    match relation.kind:
        case "permutation" | "swap" | "idempotence":
            return agree(first, second, how)
        case "reversal":
            return agree(first[::-1] if isinstance(first, list | tuple | str) else first, second, how)
        case "involution" | "inverse":
            return agree(pair.first[relation.argument], second, how)
        case "monotone":
            numbers = isinstance(first, int | float) and isinstance(second, int | float)
            return numbers and first <= second  # type: ignore[operator]
        case "scale":
            return agree(_times(first, relation.result_factor), second, how)
        case "shift":
            return agree(_plus(first, relation.result_factor), second, how)

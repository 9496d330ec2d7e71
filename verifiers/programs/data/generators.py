"""Inputs drawn from a declaration and a seed, and shrinking of failing inputs. Runs no foreign code.

The first inputs are the edges of the declared range, the rest is drawn. Invariants: the same declaration and seed give
the same inputs; every value that `smaller` yields fits the declaration and is strictly simpler, so shrinking ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Annotated, Literal

from pydantic import Field

from verifiers.contract.spec_data import SpecData
from verifiers.programs.data.values import DictPairs, NotPlainError, Value, literal, read

MOST_SIZE = 100_000


class Integers(SpecData):
    kind: Literal["integer"] = "integer"
    low: int = -100
    high: int = 100
    """Upper bound; both bounds are included."""


class Floats(SpecData):
    kind: Literal["float"] = "float"
    low: float = Field(default=-100.0, allow_inf_nan=False)
    high: float = Field(default=100.0, allow_inf_nan=False)


class Booleans(SpecData):
    kind: Literal["boolean"] = "boolean"


class Texts(SpecData):
    kind: Literal["text"] = "text"
    alphabet: str = Field(default="abcdefghijklmnopqrstuvwxyz", min_length=1, max_length=1_000)
    least: int = Field(default=0, ge=0, le=MOST_SIZE)
    most: int = Field(default=20, ge=0, le=MOST_SIZE)


class Choices(SpecData):
    """One of these Python literals; the first is the simplest."""

    kind: Literal["choice"] = "choice"
    among: tuple[str, ...] = Field(min_length=1)


class Lists(SpecData):
    kind: Literal["list"] = "list"
    of: Generator
    least: int = Field(default=0, ge=0, le=MOST_SIZE)
    most: int = Field(default=20, ge=0, le=MOST_SIZE)
    distinct: bool = False
    ordered: bool = False
    """True for ascending items; for numbers or text."""


class Tuples(SpecData):
    kind: Literal["tuple"] = "tuple"
    parts: tuple[Generator, ...]


class Dictionaries(SpecData):
    kind: Literal["dict"] = "dict"
    keys: Generator
    items: Generator
    least: int = Field(default=0, ge=0, le=MOST_SIZE)
    most: int = Field(default=10, ge=0, le=MOST_SIZE)


Generator = Annotated[
    Integers | Floats | Booleans | Texts | Choices | Lists | Tuples | Dictionaries, Field(discriminator="kind")
]
for _model in (Lists, Tuples, Dictionaries):
    _model.model_rebuild()


def problem(generator: Generator) -> str:
    """Returns why nothing can be drawn from a generator; empty if something can."""
    match generator:
        case Integers(low=low, high=high) | Floats(low=low, high=high) if low > high:
            return f"the range from {low} to {high} is empty"
        case Texts(least=least, most=most) | Lists(least=least, most=most) | Dictionaries(least=least, most=most) if (
            least > most
        ):
            return f"the range of sizes from {least} to {most} is empty"
        case Choices(among=among):
            try:
                for text in among:
                    read(text)
            except NotPlainError as error:
                return str(error)
        case Lists(of=of):
            return problem(of)
        case Tuples(parts=parts):
            return next(filter(None, map(problem, parts)), "")
        case Dictionaries(keys=keys, items=items):
            return problem(keys) or problem(items)
        case _:
            pass
    return ""


def draw(generator: Generator, random: Random, size: float) -> Value:
    """Draws a random value from a generator. `size` from 0 to 1 is the share of lengths and magnitudes to use."""
    match generator:
        case Integers(low=low, high=high):
            return _integer(low, high, random, size)
        case Floats(low=low, high=high):
            if random.random() < 0.1:
                return random.choice([low, high, min(max(0.0, low), high)])
            return round(random.uniform(low, high), random.choice([0, 1, 2, 6, 17]))
        case Booleans():
            return random.random() < 0.5
        case Texts(alphabet=alphabet):
            letters = alphabet if random.random() < 0.7 else alphabet[: 1 + random.randrange(min(3, len(alphabet)))]
            return "".join(random.choice(letters) for _ in range(_length(generator, random, size)))
        case Choices(among=among):
            return read(random.choice(among))
        case Lists():
            return _list(generator, random, size)
        case Tuples(parts=parts):
            return tuple(draw(part, random, size) for part in parts)
        case Dictionaries(keys=keys, items=items):
            found: dict[str, tuple[Value, Value]] = {}
            for _ in range(_length(generator, random, size)):
                key = draw(keys, random, size)
                found[literal(key)] = (key, draw(items, random, size))
            return DictPairs(tuple(found.values()))


def _integer(low: int, high: int, random: Random, size: float) -> int:
    if random.random() < 0.15:
        return random.choice([low, high, min(max(0, low), high), min(max(1, low), high)])
    centre = min(max(0, low), high)
    reach = max(1, int((high - low) * size))
    return random.randint(max(low, centre - reach), min(high, centre + reach))


def _length(generator: Texts | Lists | Dictionaries, random: Random, size: float) -> int:
    return generator.least + random.randint(0, int((generator.most - generator.least) * size))


def _list(generator: Lists, random: Random, size: float) -> Value:
    wanted = _length(generator, random, size)
    items: list[Value] = []
    seen: set[str] = set()
    for _ in range(4 * wanted if generator.distinct else wanted):
        # programs often fail on repeated items, so these come more often than by chance
        again = items and not generator.distinct and random.random() < 0.15
        item = random.choice(items) if again else draw(generator.of, random, size)
        if not generator.distinct or literal(item) not in seen:
            seen.add(literal(item))
            items.append(item)
        if len(items) == wanted:
            break
    return in_order(items) if generator.ordered else items


def in_order(items: list[Value]) -> list[Value]:
    """Sorts items, ascending as numbers or text if comparable, else by their literals."""
    if all(isinstance(item, int | float) for item in items) or all(isinstance(item, str) for item in items):
        return sorted(items)  # type: ignore[type-var]
    return sorted(items, key=literal)


def simplest(generator: Generator) -> Value:
    match generator:
        case Integers(low=low, high=high):
            return min(max(0, low), high)
        case Floats(low=low, high=high):
            return min(max(0.0, low), high)
        case Booleans():
            return False
        case Texts(alphabet=alphabet, least=least):
            return alphabet[0] * least
        case Choices(among=among):
            return read(among[0])
        case Lists(of=of, least=least, distinct=distinct):
            return draw(generator, Random(0), 0.0) if distinct and least else [simplest(of)] * least
        case Tuples(parts=parts):
            return tuple(map(simplest, parts))
        case Dictionaries(least=least):
            return draw(generator, Random(0), 0.0) if least else DictPairs(())


def inputs(generators: tuple[Generator, ...], seed: int, count: int) -> Iterator[tuple[Value, ...]]:
    """Yields `count` distinct inputs for a function, the simplest first; fewer if no new ones are found."""
    random = Random(seed)
    seen: set[str] = set()
    for number in range(count):
        made = tuple(map(simplest, generators))
        for _ in range(10):
            if number:
                size = min(1.0, 0.1 + 1.2 * number / max(1, count - 1))
                made = tuple(draw(generator, random, size) for generator in generators)
            if literal(made) not in seen:
                break
        if literal(made) not in seen:
            seen.add(literal(made))
            yield made


def smaller(generator: Generator, value: Value) -> Iterator[Value]:
    """Yields simpler values of the same generator, the simplest first."""
    match generator, value:
        case Integers(low=low, high=high), int():
            yield from _towards(value, min(max(0, low), high))
        case Floats(low=low, high=high), float():
            aim = min(max(0.0, low), high)
            for rounder in (aim, float(int(value)), round(value, 1)):
                if low <= rounder <= high and abs(rounder - aim) < abs(value - aim):
                    yield rounder
        case Booleans(), True:
            yield False
        case Texts(alphabet=alphabet, least=least), str():
            yield from ("".join(remaining) for remaining in _fewer(list(value), least))
            for place, letter in enumerate(value[:50]):
                if letter != alphabet[0]:
                    yield value[:place] + alphabet[0] + value[place + 1 :]
        case Choices(among=among), _:
            texts = [literal(read(text)) for text in among]
            yield from (read(text) for text in among[: texts.index(literal(value))])
        case Lists(), list():
            yield from _smaller_lists(generator, value)
        case Tuples(parts=parts), tuple():
            for place, part in enumerate(parts):
                for simpler in smaller(part, value[place]):
                    yield (*value[:place], simpler, *value[place + 1 :])
        case Dictionaries(items=items, least=least), DictPairs(pairs):
            yield from (DictPairs(tuple(remaining)) for remaining in _fewer(list(pairs), least))
            for place, (key, item) in enumerate(pairs[:50]):
                for simpler in smaller(items, item):
                    yield DictPairs((*pairs[:place], (key, simpler), *pairs[place + 1 :]))


def _smaller_lists(generator: Lists, value: list[Value]) -> Iterator[Value]:
    yield from _fewer(value, generator.least)
    for place, item in enumerate(value[:50]):
        for simpler in smaller(generator.of, item):
            made = [*value[:place], simpler, *value[place + 1 :]]
            if generator.distinct and len(set(map(literal, made))) < len(made):
                continue
            if not generator.ordered or in_order(made) == made:
                yield made


def _towards(value: int, aim: int) -> Iterator[int]:
    distance = value - aim
    while distance:
        yield value - distance
        distance = distance // 2 if distance > 0 else -(-distance // 2)


def _fewer(items: list[Value] | list[str] | list[tuple[Value, Value]], least: int) -> Iterator[list]:  # type: ignore[type-arg]
    """Yields the items without half, a quarter, ... or one of them."""
    part = len(items)
    while part:
        if len(items) - part >= least:
            for start in range(0, len(items), part):
                remaining = items[:start] + items[start + part :]
                if len(remaining) >= least:
                    yield remaining
        part //= 2

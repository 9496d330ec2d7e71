"""Behaviour of a proposed program: its results on fixed inputs, and if one operation gives them.

Invariants: the inputs depend only on the shape of the proposed arguments (their types, and if numbers are positive), so
two programs with the same results have the same behaviour, however they are written. All is decided from results that
a sandbox printed; nothing here runs a program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from random import Random
from typing import Any

from curriculum.catalog import stable_random
from curriculum.proposing.execution import ProgramCall, values_of
from curriculum.proposing.labels import statement_digest
from curriculum.tasksets.exact_arithmetic import rank
from verifiers.programs.data.values import DictPairs, Value, literal, read

INPUTS, ENOUGH = 16, 8
"""Number of fixed inputs, and how many of them must have a result for a behaviour to be told by them."""
LARGEST, LONGEST = 24, 8
"""Largest number, and longest list or text, in a fixed input."""

Shape = tuple[Any, ...]


def inputs_of(arguments: str) -> list[str]:
    """Returns fixed inputs with the shape of these arguments."""
    shapes = [_shape(value) for value in values_of(arguments)]
    rng = stable_random("behaviour", repr(shapes))
    return list(dict.fromkeys(", ".join(literal(_drawn(one, rng)) for one in shapes) for _ in range(INPUTS)))


def behaviour_of(inputs: Sequence[str], results: Sequence[ProgramCall]) -> str | None:
    """Returns a digest of a program's results on fixed inputs; None if it raises for most of them."""
    if sum(not one.raised for one in results) < ENOUGH:
        return None
    return statement_digest("behaviour", *inputs, *((one.raised and "raises") or one.value for one in results))


def _shape(value: Value) -> Shape:
    match value:
        case bool():
            return ("bool",)
        case int():
            return ("int", 1 if value > 0 else 0 if value == 0 else -LARGEST)
        case str():
            return ("str", "digits" if value.isdigit() else "words" if " " in value else "letters")
        case list():
            inner = [_shape(one) for one in value] or [("int", 1)]
            least = min(inner, key=lambda one: one[1]) if all(one[0] == "int" for one in inner) else inner[0]
            return ("list", least)
        case tuple():
            return ("tuple", *map(_shape, value))
        case DictPairs(pairs) if pairs:
            return ("dict", _shape(pairs[0][0]), _shape(pairs[0][1]))
        case _:
            return ("as it is", literal(value))


_SIGNS = {"digits": "0123456789", "letters": "abcdeABCDE", "words": "abcd EFG"}


def _drawn(shape: Shape, rng: Random) -> Value:
    match shape:
        case ("bool",):
            return rng.random() < 0.5
        case ("int", least):
            return rng.randint(least, LARGEST)
        case ("str", sort):
            return "".join(rng.choices(_SIGNS[sort], k=rng.randint(1, LONGEST)))
        case ("list", inner):
            return [_drawn(inner, rng) for _ in range(rng.randint(1, LONGEST))]
        case ("tuple", *inner):
            return tuple(_drawn(one, rng) for one in inner)
        case ("dict", key, item):
            made = {literal(one): one for one in (_drawn(key, rng) for _ in range(rng.randint(1, 4)))}
            return DictPairs(tuple((one, _drawn(item, rng)) for one in made.values()))
        case _:
            return read(shape[1])


_MEASURES: tuple[Callable[[Any], Any], ...] = (
    len, sum, max, min, abs, int, ord, lambda x: x * x, lambda x: x**3, lambda x: x[0], lambda x: x[-1],
    lambda x: len(set(x)), lambda x: len(x.split(" ")),
)  # fmt: skip
"""Numbers that one operation takes from an argument; a multiple of one plus a constant takes no more work."""
_ONE: tuple[Callable[[Any], Any], ...] = (
    sorted, str, bin, list, lambda x: x[::-1], lambda x: sorted(x)[::-1], lambda x: x[1:], lambda x: x[:-1],
    lambda x: x[::2], lambda x: x * 2, lambda x: x * 3, lambda x: x.upper(), lambda x: x.lower(), lambda x: x.title(),
    lambda x: x.swapcase(), lambda x: x.strip(), lambda x: x.split(" "), lambda x: -x, lambda x: x % 2,
    lambda x: x // 2,
)  # fmt: skip
_TWO: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: x + y, lambda x, y: y + x, lambda x, y: x * y, lambda x, y: x // y, lambda x, y: x % y, max, min,
    lambda x, y: x[y], lambda x, y: x[:y], lambda x, y: x[y:], lambda x, y: x.count(y), lambda x, y: y in x,
    lambda x, y: [*x, y], lambda x, y: [y, *x],
)  # fmt: skip


def is_one_operation(calls: Sequence[str], results: Sequence[ProgramCall]) -> bool:
    """True if one operation of Python gives all these results: the program's loops and choices do no work."""
    fine = [(call, ran) for call, ran in zip(calls, results, strict=True) if not ran.raised]
    known = [([_usable(one) for one in values_of(call)], read(ran.value)) for call, ran in fine]
    if len(known) < ENOUGH:
        return False
    wanted = [result for _, result in known]
    arguments = list(zip(*(values for values, _ in known), strict=True))
    numbers = [column for column in arguments if all(type(one) is int for one in column)]
    if len(numbers) == len(arguments) and _affine(numbers, wanted):
        return True
    if len(arguments) == 2 and any(_each(operation, arguments, wanted) for operation in _TWO):
        return True
    for column in arguments:
        if any(_same(_applied(measure, [column]), wanted, affine=True) for measure in _MEASURES):
            return True
        changed = [column, *(made for operation in _ONE if (made := _applied(operation, [column])) is not None)]
        if any(_same(list(made), wanted) or _extended(made, wanted) for made in changed):
            return True
    return False


def _usable(value: Value) -> Any:
    return {literal(key): item for key, item in value.pairs} if isinstance(value, DictPairs) else value


def _each(operation: Callable[..., Any], columns: Sequence[Sequence[Any]], wanted: Sequence[Value]) -> bool:
    return _same(_applied(operation, columns), wanted)


def _applied(operation: Callable[..., Any], columns: Sequence[Sequence[Any]]) -> list[Any] | None:
    """Returns the operation's results; None if it does not fit the arguments. These are plain data."""
    try:
        return [operation(*row) for row in zip(*columns, strict=True)]
    except (TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError, OverflowError):
        return None


def _same(found: list[Any] | None, wanted: Sequence[Value], *, affine: bool = False) -> bool:
    if found is None:
        return False
    if affine and all(type(one) is int for one in found) and _affine([found], wanted):
        return True
    return all(type(one) is type(other) and one == other for one, other in zip(found, wanted, strict=True))


def _affine(columns: Sequence[Sequence[Any]], wanted: Sequence[Value]) -> bool:
    """True if the results are sums of multiples of the numbers, and a constant."""
    if not all(type(one) is int for one in wanted):
        return False
    rows = [[Fraction(one) for one in (*row, 1, result)] for *row, result in zip(*columns, wanted, strict=True)]
    return len(rows) > len(columns) + 2 and rank(rows) == rank([row[:-1] for row in rows])


def _extended(column: Sequence[Any], wanted: Sequence[Value]) -> bool:
    """True if each result is the argument with the same constant before or behind it."""
    pairs: list[tuple[Any, Any]] = list(zip(column, wanted, strict=True))
    if not all(type(one) is type(other) and isinstance(one, str | list | tuple) for one, other in pairs):
        return False
    behind = [other[len(one) :] if other[: len(one)] == one else None for one, other in pairs]
    first = [len(other) - len(one) for one, other in pairs]
    before = [
        other[:at] if at >= 0 and other[at:] == one else None for at, (one, other) in zip(first, pairs, strict=True)
    ]
    return any(more[0] is not None and all(one == more[0] for one in more) for more in (behind, before))

"""Programs of the small language, with calls that distinguish them from their neighbours and become hidden tests.

A program is interpreted directly, without being written as Python and compiled: a neighbour is evaluated for only one
or two calls, which takes a tenth of that time. A test compares the results with those of its Python.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from curriculum.tasksets.programs.small_language import (
    FUNCTION,
    PYTHON,
    Block,
    Conditional,
    Expression,
    Put,
    Rounds,
    Statement,
    drawn_block,
)
from verifiers.programs.spec import Example, ProgramSpec

ATTEMPTS = 1_000
SOUGHT = 100
"""Random calls on which a program with one change may differ, and so become a hidden test."""
LIVE = 12
"""Calls of which one must differ when a statement is left out: no statement is without effect."""
_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "<": operator.lt,
    "==": operator.eq,
}

Call = tuple[int, int]


def evaluated(block: Block, a: int, b: int) -> int:
    """Interprets a program of the small language; returns its result for these arguments."""
    values = {"a": a, "b": b, "c": 0}
    _run(block, values)
    return values["c"]


def _run(block: Block, values: dict[str, int]) -> None:
    for one in block:
        kind = type(one)
        if kind is Put:
            values[one.variable] = _value(one.value, values)  # type: ignore[union-attr]
        elif kind is Rounds:
            for _ in range(one.count):  # type: ignore[union-attr]
                _run(one.block, values)  # type: ignore[union-attr]
        else:
            assert isinstance(one, Conditional)
            chosen = _OPERATORS[one.sign](_value(one.left, values), _value(one.right, values))
            _run(one.then if chosen else one.otherwise, values)


def _value(value: Expression, values: Mapping[str, int]) -> int:
    if isinstance(value, tuple):
        sign, left, right = value
        return _OPERATORS[sign](_value(left, values), _value(right, values))
    return values[value] if isinstance(value, str) else value


def neighbours(block: Block) -> Iterator[Block]:
    """Yields variants of a program with one change: a statement removed, a number or a sign changed, blocks
    exchanged."""
    for at, one in enumerate(block):
        before, after = block[:at], block[at + 1 :]
        if len(block) > 1:
            yield (*before, *after)
        for other in _others(one):
            yield (*before, other, *after)


def _others(one: Statement) -> Iterator[Statement]:
    match one:
        case Put(variable, value):
            yield from (Put(variable, other) for other in _changed(value))
        case Rounds(count, inner):
            yield Rounds(count + 1, inner)
            yield from (Rounds(count, other) for other in neighbours(inner))
        case Conditional(left, sign, right, then, otherwise):
            yield Conditional(left, sign, right, otherwise, then)
            yield Conditional(left, "==" if sign == "<" else "<", right, then, otherwise)
            yield from (Conditional(left, sign, other, then, otherwise) for other in _changed(right))
            yield from (Conditional(left, sign, right, other, otherwise) for other in neighbours(then))
            yield from (Conditional(left, sign, right, then, other) for other in neighbours(otherwise))


def _changed(value: Expression) -> Iterator[Expression]:
    if isinstance(value, int):
        yield from (value + 1, value - 1)[: 1 + (value > 1)]
    elif isinstance(value, tuple):
        sign, left, right = value
        yield from ((other, left, right) for other in "+-*" if other != sign)
        yield from ((sign, other, right) for other in _changed(left))
        yield from ((sign, left, other) for other in _changed(right))


def _lacking(block: Block) -> Iterator[Block]:
    """Yields the program with one of its statements left out, wherever it stands."""
    for at, one in enumerate(block):
        before, after = block[:at], block[at + 1 :]
        yield (*before, *after)
        match one:
            case Rounds(count, inner):
                yield from ((*before, Rounds(count, other), *after) for other in _lacking(inner))
            case Conditional(left, sign, right, then, otherwise):
                for other in _lacking(then):
                    yield (*before, Conditional(left, sign, right, other, otherwise), *after)
                for other in _lacking(otherwise):
                    yield (*before, Conditional(left, sign, right, then, other), *after)


def live_block(size: int, depth: int, rng: Random) -> Block:
    """Draws a program in which each statement makes a difference to some result."""
    for _ in range(ATTEMPTS):
        block = drawn_block(size, depth, rng)
        results = {call: evaluated(block, *call) for call in _calls(LIVE, rng)}
        if all(_differs(list(results), results, other) for other in _lacking(block)):
            return block
    raise AssertionError("no program without idle statements was found")  # unreachable with these tables


def _calls(count: int, rng: Random) -> list[Call]:
    """Draws different calls."""
    return [(place // 70 - 9, place % 70 - 9) for place in rng.sample(range(70 * 70), count)]


@dataclass(frozen=True)
class TestedBlock:
    """Program with test calls that distinguish it from programs with one change, unless they agree on many calls."""

    block: Block
    shown: tuple[Call, ...]
    hidden: tuple[Call, ...]
    results: Mapping[Call, int]

    @property
    def source(self) -> str:
        return PYTHON.text(self.block)

    @property
    def examples(self) -> str:
        return "\n".join(f"{FUNCTION}({a}, {b}) == {self.results[a, b]}" for a, b in self.shown)

    def noticed(self, other: Block) -> bool:
        """True if a hidden call gives another result for the other program than for this one."""
        return _differs(self.hidden, self.results, other)


def tested_block(level: int, shown: int, hidden: int, rng: Random) -> TestedBlock:
    """Draws a program of that level, from 0, with test calls: at least `hidden` that are not shown, and more where a
    program with one change passes these and differs elsewhere."""
    for _ in range(ATTEMPTS):
        block = live_block(2 + level, 1 + level // 3, rng)
        calls = _calls(shown + hidden + SOUGHT, rng)  # no call comes twice
        kept, spare = calls[shown : shown + hidden], calls[shown + hidden :]
        results = {call: evaluated(block, *call) for call in calls[: shown + hidden]}
        if len({results[call] for call in kept}) <= hidden // 2:
            continue
        for other in neighbours(block):
            if not _differs(kept, results, other):
                results |= {call: evaluated(block, *call) for call in spare if call not in results}
                kept += [call for call in spare if evaluated(other, *call) != results[call]][:1]
        return TestedBlock(block, tuple(calls[:shown]), tuple(kept), results)
    raise AssertionError(f"no tests were found at level {level}")  # unreachable with these tables


def _differs(calls: Sequence[Call], results: Mapping[Call, int], other: Block) -> bool:
    return any(evaluated(other, *call) != results[call] for call in calls)


def numbers_spec(tested: TestedBlock) -> ProgramSpec:
    """Returns the spec testing submissions against a program's results for its calls; the shown calls are visible."""
    tests = [(call, True) for call in tested.shown] + [(call, False) for call in tested.hidden]
    return ProgramSpec(
        function=FUNCTION,
        examples=tuple(
            Example(arguments=f"{a}, {b}", expected=str(tested.results[a, b]), visible=shown) for (a, b), shown in tests
        ),
    )

"""Contest problems composed of a structure, a query and a twist: statement, program, test maker and spec.

Invariants: a program reads all test cases of its input and prints a line for each; the maker prints the same inputs on
every machine; hidden tests are many small cases of all kinds and one large case of each bad shape; the limit of a test
follows the reference's own CPU time, so neither a slow machine nor a busy one changes a verdict.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from random import Random
from typing import Any

from curriculum.contract.taskset import TaskDraft
from curriculum.contract.topics import IMPOSSIBLE, Item, TopicTaskset
from curriculum.tasksets.contest.layouts import decoded, encoded, printed_case, read_case, total_of
from curriculum.tasksets.contest.structures import Structure, drawn, make_graph, make_tree, make_word
from verifiers.contract.kinds import AnswerForm
from verifiers.programs.spec import ProgramSpec, Run
from verifiers.registry.spec import Spec

SECONDS, SLACK, TOTAL_SECONDS = 1.0, 6.0, 120.0
"""Limits of a test: CPU seconds, or as a multiple of the reference's if that is longer; and of all tests."""
OUTPUT_BYTES = 1 << 20
TURNS, TOKENS = 12, 16_000
SMALL, MEDIUM = 200, 40
"""Number of test cases in the tests with small and medium cases."""
ROUND = 5
"""Number of test cases after which a growing constant begins again."""
SHARES = (0.5, 0.6, 0.7, 0.85, 1.0)
"""Largest size of a case at each level, as a share of the family's."""
FIXED = 20
"""Sizes below this one are the same at all levels."""
DRAWN = 30
HEADER = """from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from heapq import heapify, heappop, heappush, heapreplace
from itertools import accumulate
from math import gcd, isqrt
from typing import Any
"""

Range = tuple[int, int | str]
"""Inclusive bounds of a constant; a name is that of a constant drawn before, which this one stays below."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """Contest problem: a query on a structure, with constants that make its questions different."""

    structure: Structure
    asks: str
    """Question about one test case, with the constants as fields."""
    solve: Callable[..., Any]
    """Reference: takes the arguments of a case, and constants by name; returns a number, or a list of them."""
    constants: Mapping[str, Range]
    """Drawn in this order. The first one grows from case to case in some twists."""
    bounds: Mapping[str, Any]
    """Bounds of the generator, which the description of the input names."""
    most: int
    """Largest size of a test case at the highest level."""
    large: tuple[str, ...]
    """Shapes of the large tests."""
    small: int = 8
    medium: int = 40
    """Largest sizes of the cases in the tests with many of them."""
    uses: tuple[Callable[..., Any], ...] = ()
    """Functions that the reference calls."""


@dataclass(frozen=True)
class Twist:
    """Change of a whole problem, which needs no change of its query."""

    grows: int = 0
    """Difference of the first constant between a test case and the next, within a round."""
    x: int = 0
    y: int = 0
    """Coding of the values: x times the given number, plus y; not coded if x is 0."""
    chained: bool = False
    """True if the coding also adds the previous case's answer, so cases are solved in order."""


def twist_of(level: int, rng: Random) -> Twist:
    """Draws the twist of a level: none, growing constants, coded values, chained cases, or the last with the first."""
    grows = rng.randint(1, 3) if level in (1, 4) else 0
    if level < 2:
        return Twist(grows)
    return Twist(grows, rng.choice((3, 5, 7, 9, 11, 15, 17, 19, 21, 23)), rng.randint(1, 999), level > 2)


def constants_of(family: Family, rng: Random) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, (low, high) in family.constants.items():
        found[name] = rng.randint(low, found[high] - 1 if isinstance(high, str) else high)
    return found


def low_of(family: Family) -> int:
    low: int = family.bounds.get("low", family.structure.low)
    return low


@cache
def source_of(function: Callable[..., Any]) -> str:
    return textwrap.dedent(inspect.getsource(function))


def _sources(*functions: Callable[..., Any]) -> str:
    return "".join(f"\n\n{source_of(one)}" for one in dict.fromkeys(functions))


def _coding(family: Family, twist: Twist, name: str, of: str) -> str:
    """Returns the statement that codes or decodes the values of a case, or nothing."""
    low = low_of(family)
    y = f"{twist.y} + last" if twist.chained else str(twist.y)
    place = f"{of}[{family.structure.coded}]"
    return f"        {place} = {name}({place}, {low}, {twist.x}, {y}, {family.structure.modulus})\n" if twist.x else ""


def _called(solve: Callable[..., Any], constants: Mapping[str, int], twist: Twist, given: str) -> str:
    """Returns the call of a solution for one case, as source."""
    first = next(iter(constants))
    grows = f" + {twist.grows} * (case % {ROUND})" if twist.grows else ""
    named = ", ".join(f"{key}={value}{grows if key == first else ''}" for key, value in constants.items())
    return f"{solve.__name__}(*{given}, {named})"


def program_of(
    family: Family,
    constants: Mapping[str, int],
    twist: Twist,
    solve: Callable[..., Any] | None = None,
    uses: tuple[Callable[..., Any], ...] = (),
) -> str:
    """Returns a program that solves the problem with `solve`, by default the reference."""
    solve, uses = solve or family.solve, uses or family.uses
    last = "        last = total_of(answer)\n" if twist.chained else ""
    coding = (decoded,) if twist.x else ()
    chained = (total_of,) if twist.chained else ()
    return (
        f"{HEADER}{_sources(read_case, *coding, *chained, *uses, solve)}\n\ndef main() -> None:\n"
        f"    words = sys.stdin.read().split()\n    at{', last' if last else ''} = 1{', 0' if last else ''}\n"
        "    for case in range(int(words[0])):\n"
        f"        given, at = read_case(words, at, {family.structure.layout!r})\n"
        f"{_coding(family, twist, 'decoded', 'given')}"
        f"        answer = {_called(solve, constants, twist, 'given')}\n{last}"
        "        print(*answer) if isinstance(answer, list) else print(answer)\n\n\nmain()\n"
    )


def maker_of(family: Family, constants: Mapping[str, int], twist: Twist) -> str:
    """Returns the program that prints a test: it reads a seed, the number of cases, their size and their shape."""
    solving = (total_of, *family.uses, family.solve) if twist.chained else ()
    coding = (decoded, encoded) if twist.x else ()
    parts = (drawn, make_tree, make_graph, make_word)
    bounds = "".join(f", {name}={value!r}" for name, value in family.bounds.items())
    last = f"        last = total_of({_called(family.solve, constants, twist, 'given')})\n" if twist.chained else ""
    return (
        f"{HEADER}from random import Random\n"
        f"{_sources(printed_case, *coding, *solving, *parts, family.structure.make)}\n\ndef main() -> None:\n"
        "    seed, count, size, shape = sys.stdin.read().split()\n    rng, last = Random(int(seed)), 0\n"
        "    print(count)\n    for case in range(int(count)):\n"
        '        n = rng.randint(1, int(size)) if shape == "any" else int(size)\n'
        f"        given = {family.structure.make.__name__}(rng, n, shape{bounds})\n        shown = [*given]\n"
        f"{_coding(family, twist, 'encoded', 'shown')}"
        f"        print(printed_case(shown, {family.structure.layout!r}))\n{last}\n\nmain()\n"
    )


def cases_of(family: Family, constants: Mapping[str, int], rng: Random, count: int, size: int) -> list[list[Any]]:
    """Draws small test cases whose answers differ, if any do."""
    for _ in range(DRAWN):
        cases = [
            family.structure.make(rng, rng.randint(min(2, size), size), "any", **family.bounds) for _ in range(count)
        ]
        if len({str(family.solve(*given, **constants)) for given in cases}) == count:
            break
    return cases


def written(family: Family, constants: Mapping[str, int], twist: Twist, cases: list[list[Any]]) -> tuple[str, str]:
    """Returns a test with these cases: its input and its output."""
    first, last = next(iter(constants)), 0
    inputs, outputs = [str(len(cases))], []
    for number, given in enumerate(cases):
        shown, at = [*given], family.structure.coded
        if twist.x:
            y = twist.y + (last if twist.chained else 0)
            shown[at] = encoded(given[at], low_of(family), twist.x, y, family.structure.modulus)
        inputs.append(printed_case(shown, family.structure.layout))
        answer = family.solve(*given, **{**constants, first: constants[first] + twist.grows * (number % ROUND)})
        last = total_of(answer)
        outputs.append(" ".join(map(str, answer)) if isinstance(answer, list) else str(answer))
    return "\n".join(inputs) + "\n", "\n".join(outputs) + "\n"


def _twisted(family: Family, constants: Mapping[str, int], twist: Twist) -> str:
    """Describes the twist, in sentences."""
    said = ""
    if twist.grows:
        name = next(iter(constants))
        said += (
            f"The number {name} is {constants[name]} in the first test case of an input and {twist.grows} more in each "
            f"of the next {ROUND - 1} than in the one before; after every {ROUND} test cases it begins again.\n"
        )
    if not twist.x:
        return said
    values, plus = family.structure.values, f"{twist.y}{' + z' if twist.chained else ''}"
    if "letters" in family.bounds:
        said += (
            f"In the input, {values} is coded: with letters numbered from 0 (a) to 25 (z) and positions from 0, the "
            f"letter at position i is number (b + {twist.x} * i + {plus}) mod 26, where b is the number of the given "
            "letter.\n"
        )
    else:
        low = low_of(family)
        said += (
            f"In the input, {values} is coded: it is {low} + (({twist.x} * b + {plus}) mod "
            f"{family.structure.modulus}), where b is the given number.\n"
        )
    if twist.chained:
        said += (
            "Here z is the sum of all numbers that are printed for the previous test case, and 0 in the first one.\n"
        )
    return said


def made(family: Family, level: int, rng: Random) -> Item:
    """Makes a task of a family: a program that solves all test cases of its input within the limits."""
    constants, twist = constants_of(family, rng), twist_of(level, rng)
    most = family.most if family.most < FIXED else int(family.most * SHARES[level])
    stdin, expected = written(family, constants, twist, cases_of(family, constants, rng, 3, min(family.small, 5)))
    described = family.structure.text.format(most=most, **family.bounds)
    text = (
        f"Write a whole Python program that reads the standard input and prints to the standard output.\n\n"
        f"{family.asks.format(**constants)}\n{_twisted(family, constants, twist)}\n"
        f"Input: a line with the number t of test cases (1 <= t <= {SMALL}). Each test case is {described}. The sizes "
        f"of all test cases add up to at most {max(most, SMALL * family.small)}.\n"
        f"Output: for each test case a line with its answer.\n"
        f"Limits for one input: {SECONDS:g} s of CPU time, or {SLACK:g} times that of our solution if that is longer, "
        f"and 256 MiB.\n\nExample input:\n{stdin}\nExample output:\n{expected}\n"
        "End with the whole program in one fenced code block."
    )
    small, medium = min(family.small, most), min(family.medium, most)
    cases = (f"{SMALL} {small} any", f"{SMALL // 2} {min(3, small)} any", f"{MEDIUM} {medium} any")
    answer = program_of(family, constants, twist)
    spec = ProgramSpec(
        runs=(Run(stdin=stdin, expected=expected, visible=True),),
        maker=maker_of(family, constants, twist),
        cases=tuple(f"{rng.randrange(10**9)} {one}" for one in (*cases, *(f"1 {most} {one}" for one in family.large))),
        reference=answer,
        seconds=SECONDS,
        slack=SLACK,
        total_seconds=TOTAL_SECONDS,
        output_bytes=OUTPUT_BYTES,
        twice="never",
    )
    return Item(text=text, key=f"{constants} {twist.grows} {twist.x > 0} {twist.chained}", spec=spec, answer=answer)


def impossible(draft: TaskDraft, number: int) -> Spec:
    """Returns a spec with unrelated results of twenty digits, so no honest program passes."""
    assert isinstance(draft.spec, ProgramSpec)
    shown = draft.spec.runs[0]
    runs = tuple(
        Run(stdin=shown.stdin + "\n" * at, expected=str(IMPOSSIBLE + number + at), visible=False) for at in range(2)
    )
    nothing = {"maker": "", "cases": (), "reference": "", "slack": 0.0}
    return draft.spec.model_copy(update={"runs": runs, **nothing})


IDLE = ("pass\n", "print(0)\n", "import sys\nfor _ in range(int(input())):\n    print(0)\n", "print(input())\n")
"""Programs that do no work."""


@dataclass(frozen=True, kw_only=True)
class ContestTaskset(TopicTaskset):
    """Taskset whose topics are families of contest problems."""

    families: Mapping[str, Family] = field(default_factory=dict)


def contest_taskset(name: str, version: int, families: Mapping[str, Family]) -> ContestTaskset:
    return ContestTaskset(
        name=name,
        version=version,
        families=families,
        makers={topic: partial(made, family) for topic, family in families.items()},
        null_answers=IDLE,
        form=AnswerForm.BLOCK,
        turns=TURNS,
        tokens=TOKENS,
        contradicted=impossible,
    )

"""Slow programs to be made fast: what is given would never come to an end for the arguments that are tested.

No limit is close: the fast program takes a fraction of a millisecond, and the slow one would take years, so a slow or
busy machine makes no difference. Both are compared on small arguments when a task is made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.programs.list_functions import program_taskset
from curriculum.tasksets.programs.small_language import FUNCTION, compiled
from verifiers.programs.spec import Example, ProgramSpec

SECONDS, TOTAL_SECONDS = 2.0, 20.0
_SHOWN = 2
_ASKED = (
    "This Python program is right, but far too slow. Write one that gives the same and is fast",
    "Make this program fast without changing what it gives. It has to come to an end at once",
    "Write a fast Python program with the results of this slow one. It is tested",
    "This program would take years. Find a quick way to the same results, which are needed",
)


def _times(factor: int, what: str) -> str:
    return what if factor == 1 else f"{factor} * {what}"


def _less(name: str, step: int) -> str:
    return f"{name} - {step}" if step else name


def _item(
    slow: str,
    fast: str,
    small: Sequence[tuple[int, ...]],
    large: Sequence[tuple[int, ...]],
    says: str,
    key: str,
    rng: Random,
) -> Item:
    ours, theirs = compiled(fast), compiled(slow)
    if any(ours(*call) != theirs(*call) for call in small):
        raise AssertionError(f"the fast program differs from the slow one: {key}")
    shown = list(small[:_SHOWN])
    hidden = [call for call in dict.fromkeys([*small[_SHOWN:], *large]) if call not in shown]
    examples = "\n".join(f"{FUNCTION}({', '.join(map(str, call))}) == {ours(*call)}" for call in shown)
    text = (
        f"{rng.choice(_ASKED)}, {says}.\n```python\n{slow}```\nExamples:\n{examples}\n"
        "End with the whole program in one fenced code block."
    )
    tests = [(call, True) for call in shown] + [(call, False) for call in hidden]
    spec = ProgramSpec(
        function=FUNCTION,
        examples=tuple(
            Example(arguments=", ".join(map(str, call)), expected=str(ours(*call)), visible=visible)
            for call, visible in tests
        ),
        seconds=SECONDS,
        total_seconds=TOTAL_SECONDS,
    )
    return Item(text=text, key=key, spec=spec, answer=fast)


def _recursions(level: int, rng: Random) -> Item:
    """Makes a task to speed up a recursive linear recurrence, by a loop or, at higher levels, by matrix powers."""
    order = 2 + (level > 1) + (level > 3)
    factors = [rng.randint(1, 9) for _ in range(order)]
    first = [rng.randint(0, 9) for _ in range(order - 1)] + [rng.randint(1, 9)]
    plus, modulus = rng.randint(1, 9), rng.choice((9973, 99991, 999983, 1000003, 10007))
    terms = " + ".join(_times(factor, f"{FUNCTION}(n - {at})") for at, factor in enumerate(factors, 1))
    slow = (
        f"def {FUNCTION}(n):\n    if n < {order}:\n        return {first}[n]\n"
        f"    return ({terms} + {plus}) % {modulus}\n"
    )
    if level < 3:
        nexts = " + ".join(f"{factor} * last[-{at}]" for at, factor in enumerate(factors, 1))
        fast = (
            f"def {FUNCTION}(n):\n    last = {first}\n    if n < {order}:\n        return last[n]\n"
            f"    for _ in range(n - {order - 1}):\n        last = [*last[1:], ({nexts} + {plus}) % {modulus}]\n"
            "    return last[-1]\n"
        )
        most = 10 ** (2 + level)
    else:
        size = order + 1
        rows = [[*factors, plus], *([int(at == other) for other in range(size)] for at in range(order - 1))]
        rows.append([0] * order + [1])
        fast = (
            f"M = {modulus}\n\n\ndef times(x, y):\n"
            "    return [[sum(a * b for a, b in zip(row, column)) % M for column in zip(*y)] for row in x]\n\n\n"
            f"def {FUNCTION}(n):\n    first = {first}\n    if n < {order}:\n        return first[n]\n"
            f"    power, left = {rows}, n - {order - 1}\n"
            f"    done = [[int(i == j) for j in range({size})] for i in range({size})]\n"
            "    while left:\n        if left % 2:\n            done = times(done, power)\n"
            "        power, left = times(power, power), left // 2\n"
            "    return times(done, [[one] for one in [*first[::-1], 1]])[0][0]\n"
        )
        most = 10**15
    small = [(n,) for n in rng.sample(range(order, 9), 2)] + [(0,), (1,), (order,), (9,)]
    large = [(rng.randint(most // 2, most),) for _ in range(6)]
    return _item(slow, fast, small, large, f"for n up to {most}", f"{factors} {first} {plus} {modulus} {most}", rng)


def _sums(level: int, rng: Random) -> Item:
    """Makes a task to speed up a loop that adds numbers, or squares, below n that leave certain remainders."""
    modulus = rng.randint(5, 15) + 4 * level
    kept = sorted(rng.sample(range(modulus), 1 + level))
    squares = level >= 2
    plus = rng.randint(1, 99)
    what = "i * i" if squares else "i"
    slow = (
        f"def {FUNCTION}(n):\n    total = {plus}\n    for i in range(n):\n"
        f"        if i % {modulus} in {kept}:\n            total += {what}\n    return total\n"
    )
    part = f"k * r + {modulus} * k * (k - 1) // 2"
    if squares:
        part = f"k * r * r + {modulus} * r * k * (k - 1) + {modulus * modulus} * (k - 1) * k * (2 * k - 1) // 6"
    fast = (
        f"def {FUNCTION}(n):\n    total = {plus}\n    for r in {kept}:\n"
        f"        k = max(0, (n - r + {modulus - 1}) // {modulus})\n        total += {part}\n    return total\n"
    )
    small = [(n,) for n in rng.sample(range(20, 90), 2)] + [(0,), (1,), (modulus,), (modulus + 1,)]
    large = [(rng.randint(10**14, 10**15),) for _ in range(6)]
    return _item(slow, fast, small, large, "for n up to 10**15", f"{modulus} {kept} {squares} {plus}", rng)


def _pairs(level: int, rng: Random) -> Item:
    """Makes a task to speed up loops that count pairs, or triples, of numbers below n with a divisible sum."""
    count = 2 + (level > 2)
    modulus = rng.randint(5, 9) + 2 * level
    factors = [rng.randint(1, modulus - 1) for _ in range(count)]
    step = math.gcd(*factors, modulus)
    plus = step * rng.randrange(modulus // step)  # otherwise no sum is divisible, and the count is always 0
    names = "ijk"[:count]
    terms = " + ".join(_times(factor, name) for factor, name in zip(factors, names, strict=True))
    total = f"({terms} + {plus})" if plus else f"({terms})"
    slow = f"def {FUNCTION}(n):\n    found = 0\n"
    share = f"[(n - r + {modulus - 1}) // {modulus} for r in range({modulus})]"
    fast = f"def {FUNCTION}(n):\n    share = {share}\n    found = 0\n"
    for at, name in enumerate(names):
        indent = "    " * (at + 1)
        slow += f"{indent}for {name} in range(n):\n"
        fast += f"{indent}for {name} in range({modulus}):\n"
    indent = "    " * (count + 1)
    condition = f"{indent}if {total} % {modulus} == 0:\n"
    slow += f"{condition}{indent}    found += 1\n    return found\n"
    fast += f"{condition}{indent}    found += {' * '.join(f'share[{name}]' for name in names)}\n    return found\n"
    small = [(n,) for n in rng.sample(range(5, 12), 2)] + [(0,), (1,), (2,), (13,)]
    large = [(rng.randint(10**11, 10**12),) for _ in range(6)]
    return _item(slow, fast, small, large, "for n up to 10**12", f"{factors} {plus} {modulus}", rng)


def _paths(level: int, rng: Random) -> Item:
    """Makes a task to speed up a naive recursion that counts weighted grid paths past blocked places."""
    modulus, blocked = rng.randint(7, 13), rng.randint(1, 5)
    p, q = rng.randint(1, 6), rng.randint(1, 6)
    moves = [(1, 0), (0, 1), (1, 1), (2, 1), (1, 2)][: 2 + (level > 1) + (level > 2) + (level > 3)]
    side = 20 + 10 * level
    weights = [rng.randint(1, 1 + level) for _ in moves]
    prime = rng.choice((9973, 99991, 999983))
    stop = f"({_times(p, 'x')} + {_times(q, 'y')}) % {modulus} == {blocked} and (x > 1 or y > 1)"
    asked = " + ".join(
        _times(w, f"{FUNCTION}({_less('x', dx)}, {_less('y', dy)})") for w, (dx, dy) in zip(weights, moves, strict=True)
    )
    slow = (
        f"def {FUNCTION}(x, y):\n    if x < 0 or y < 0:\n        return 0\n    if x == 0 and y == 0:\n        "
        f"return 1\n"
        f"    if {stop}:\n        return 0\n    return ({asked}) % {prime}\n"
    )
    known = " + ".join(f"{w} * ways.get((x - {dx}, y - {dy}), 0)" for w, (dx, dy) in zip(weights, moves, strict=True))
    fast = (
        f"def {FUNCTION}(w, h):\n    if w < 0 or h < 0:\n        return 0\n    ways = {{(0, 0): 1}}\n"
        f"    for x in range(w + 1):\n        for y in range(h + 1):\n            if x == 0 and y == 0:\n"
        f"                continue\n            ways[x, y] = 0 if {stop} else ({known}) % {prime}\n"
        "    return ways[w, h]\n"
    )
    small = [(x, y) for x, y in ((3, 4), (4, 3), (0, 3), (2, 2), (5, 2), (0, 0))]
    large = [(rng.randint(side // 2, side), rng.randint(side // 2, side)) for _ in range(8)]
    key = f"{p} {q} {modulus} {blocked} {weights} {prime}"
    return _item(slow, fast, small, large, f"for x and y up to {side}", key, rng)


SPEEDS = program_taskset(
    "program_speed",
    3,
    {"fast_recursions": _recursions, "fast_sums": _sums, "fast_counts": _pairs, "fast_paths": _paths},
    null_answers=tuple(f"def {FUNCTION}(n, m=0):\n    return {result}\n" for result in ("n", "0", "1", "None")),
)

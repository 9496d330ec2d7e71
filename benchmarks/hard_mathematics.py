"""Composed problems and constructions: wrong labels, speed, and scripts that work on them without insight.

    python benchmarks/hard_mathematics.py [--labels 2000] [--json FILE]

Labels of each taskset are compared with answers that are read from the words and found by other means
(`composed_answers.py`, `construction_answers.py`; bar: none differs). Drafts a second are by processor time, of the
slowest level (bar: 20).

`ONE_LINE` has the obvious call of SymPy, or the obvious formula, on the parsed numbers; `SCRIPTS` try everything. For
composed problems a script reads each sentence and does what it says. They may take `BUDGET` steps of a loop, more than
the 2 s of a call of the tool allow. What they solve, and what the best guess is right for, is in the cards
(`tasksets.py --cards`; bars: 10 % of the top level, and 2 %).
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from math import factorial, log2
from pathlib import Path
from random import Random
from typing import Any

# A script's own folder comes first on the path, and there is a `runtime` in it.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import sympy

from benchmarks import composed_answers, construction_answers
from benchmarks.composed_answers import TooLong
from benchmarks.construction_answers import asked, whole
from benchmarks.record import write_run
from curriculum.contract.topics import Item, TopicTaskset
from curriculum.tasksets.composed.problems import COMPOSED_BY_HAND, COMPOSED_PROBLEMS
from curriculum.tasksets.constructions.problems import CONSTRUCTIONS, CONSTRUCTIONS_BY_HAND

BUDGET, BITS = 3 * 10**7, 3 * 10**7
"""Steps of a loop, and bits of a number, that a script may take."""
DRAFTS, SPEED, WRONG = 100, 20, 0
Solver = Callable[[str], object]
ONE_LINE: dict[str, list[Solver]] = {}
SCRIPTS: dict[str, list[Solver]] = {}


def script(topic: str, table: dict[str, list[Solver]] = SCRIPTS) -> Callable[[Solver], Solver]:
    def note(solve: Solver) -> Solver:
        table.setdefault(topic, []).append(solve)
        return solve

    return note


def one_line(topic: str) -> Callable[[Solver], Solver]:
    return script(topic, ONE_LINE)


def within(count: int) -> int:
    if count > BUDGET:
        raise TooLong
    return count


def power(base: int, exponent: int) -> int:
    if exponent * log2(max(base, 2)) > BITS:
        raise TooLong
    return int(base**exponent)


@script("power_towers")
def _(text: str) -> int:
    shown = asked(r"when ([\d^() +]*) is divided|number ([\d^() +]*) leave|divides ([\d^() +]*) - z", text)
    m = int(next(filter(None, re.findall(r"divided by (\d+)|for which (\d+) divides", text)[0])))
    total = 0
    for one in next(filter(None, shown)).split(" + "):
        base, *rest = (int(each) for each in re.findall(r"\d+", one))
        exponent = 1
        for each in reversed(rest):
            exponent = power(each, exponent)
        total += pow(base, exponent, m)
    return total % m


@one_line("primes_in_power_differences")
def _(text: str) -> int:
    n = whole(r"N = (\d+)!", text)[0]
    p = next(int(one) for pair in re.findall(r"which (\d+)\^k|by (\d+) without", text) for one in pair if one)
    a, b = whole(r"(\d+)\^N - (\d+)\^N", text)
    return int(sympy.multiplicity(p, a - b)) + int(sympy.ntheory.factor_.multiplicity_in_factorial(p, n))


@one_line("equations_with_cycles")
def _(text: str) -> Fraction:
    """Solves the equations of x = t and x = g(t)."""
    if "f(-1/x)" not in text:
        raise TooLong
    return construction_answers.READERS["equations_with_cycles"](text)  # type: ignore[return-value]


@script("equations_of_cauchys_kind")
def _(text: str) -> int:
    at, value = whole(r"f\((\d+)\) = (-?\d+)", text)
    t = Fraction(asked(r"f\((\d+/?\d*)\)[.?]", text)[0])
    if at > 1 or t.denominator > 1:
        raise TooLong
    terms = re.findall(r"([+-]) (\d+)xy(\(x \+ y\))?", text)
    a = sum(int(sign + size) for sign, size, cubic in terms if not cubic)
    b = sum(int(sign + size) for sign, size, cubic in terms if cubic)
    found = value
    for k in range(1, within(int(t))):
        found += value + a * k + b * k * (k + 1)
    return found


@script("sets_without_ratios")
def _(text: str) -> int:
    low, high = whole(r"from (\d+) to (\d+)|(?<=numbers )(\d+), ..., (\d+)", text)
    factors = [int(one) for one in re.findall(r"\d+", asked(r"exactly ([\d, or]*) times", text)[0])]
    chosen = set[int]()
    for number in range(low, low + within(8 * (high - low)) // 8 + 1):
        if not any(number % one == 0 and number // one in chosen for one in factors):
            chosen.add(number)
    return len(chosen)


@script("greatest_products")
def _(text: str) -> int:
    """The best product by sum, one part after the other."""
    total = whole(r"sum (\d+)", text)[0]
    if "different" not in text or re.search("10{8}7", text):
        count = whole(r"exactly (\d+)", text)[0] if "exactly" in text else total
        within(total * total * count)
        best = [1, *[0] * total]
        for _ in range(count):
            best = [max((best[one] * (sum_ - one) for one in range(sum_)), default=0) for sum_ in range(total + 1)]
        return best[total]
    best = [1, *[0] * total]
    for part in range(whole(r"at least (\d+)", text)[0], within(total * total) // total + 1):
        for sum_ in range(total, part - 1, -1):
            best[sum_] = max(best[sum_], part * best[sum_ - part])
    return best[total]


@script("points_in_polygons")
def _(text: str) -> int:
    corners = [(int(x), int(y)) for x, y in re.findall(r"\((-?\d+), (-?\d+)\)", text)]
    size = max(abs(one) for corner in corners for one in corner)
    within(4 * size * size)
    return construction_answers.READERS["points_in_polygons"](text)  # type: ignore[return-value]


@one_line("points_in_polygons")
def _(text: str) -> object:
    corners = [(int(x), int(y)) for x, y in re.findall(r"\((-?\d+), (-?\d+)\)", text)]
    return abs(sympy.Polygon(*corners).area)


@script("billiards")
def _(text: str) -> object:
    within(whole(r"after (\d+) seconds", text)[0])
    return construction_answers.READERS["billiards"](text)


@one_line("billiards")
def _(text: str) -> str:
    """The remainder by the side, as if the sides were passed."""
    if "rectangle" in text:
        sides, speeds = whole(r"x <= (\d+), 0 <= y <= (\d+)", text), whole(r"x grows by (\d+) and y by (\d+)", text)
    else:
        sides, speeds = whole(r"\((\d+), (\d+)\) and \(0", text), whole(r"velocity \((\d+), (\d+)\)", text)
    starts, t = whole(r"starts at \((\d+), (\d+)\)", text), whole(r"after (\d+) seconds", text)[0]
    x, y = ((at + speed * t) % side for at, speed, side in zip(starts, speeds, sides, strict=True))
    return f"({x}, {y})"


def orbits(places: int, colours: int, group: int) -> list[int]:
    """Colourings, and colourings by the number of symmetries; listing them all takes too long."""
    return [colours**places, colours**places // group]


@one_line("coloured_solids")
def _(text: str) -> int:
    parts, solid = asked(r"(faces|corners|edges) of a (?:regular )?(cube|dodecahedron)", text)
    places = dict(zip(("faces", "corners", "edges"), (6, 8, 12) if solid == "cube" else (12, 20, 30), strict=True))[
        parts
    ]
    k, counts = whole(r"in one of (\d+)", text)[0], [int(one) for one in re.findall(r"exactly (\d+) of them", text)]
    ways, left = 1, places
    for one in counts:
        ways, left = ways * factorial(left) // factorial(one) // factorial(left - one), left - one
    total = ways * k**left
    if total <= BUDGET // 24:
        return int(construction_answers.answer_of("coloured_solids", text))  # they can be listed
    return total // (24 if solid == "cube" else 60)


@one_line("coloured_boards")
def _(text: str) -> int:
    n = whole(r"(\d+) by \d+", text)[0]
    black = next(int(one) for pair in re.findall(r"exactly (\d+) cells|painted: (\d+) of", text) for one in pair if one)
    free = whole(r"of (\d+) other colours", text)[0]
    total = factorial(n * n) // factorial(black) // factorial(n * n - black) * free ** (n * n - black)
    return total // (8 if "reflection" in text else 4)


@one_line("necklaces")
def _(text: str) -> int:
    """The formula that is known for any colours and rotations."""
    n = whole(r"(\d+) beads", text)[0]
    k = whole(r"in one of (\d+) colours", text)[0] if "in one of" in text else 3
    return sum(int(sympy.totient(d)) * k ** (n // d) for d in sympy.divisors(n)) // n


@script("terms_of_linear_recurrences")
def _(text: str) -> object:
    """Finds the period by trying, and takes the index modulo it with one call of `pow`."""
    index = [int(one) for one in re.findall(r"\d+", asked(r"N = (.*?)(?:\. What|, find)", text)[0])]
    if len(index) > 3:
        raise TooLong  # the exponent is a number of 10^12 digits
    return construction_answers.READERS["terms_of_linear_recurrences"](text)


@script("terms_of_squaring_sequences")
def _(text: str) -> object:
    """Follows the sequence until it returns: as long as 2 takes to return modulo the order of z."""
    p = whole(r"(?:the prime|division by) (\d+)", text)[0]
    start, n = whole(r"x\(0\) = (\d+)", text)[0], whole(r"x\((\d{1,})\) (?:is|on)", text)[0]
    order = p - 1 if pow(start * start - 4, (p - 1) // 2, p) == 1 else p + 1
    while order % 2 == 0:
        order //= 2
    within(min(n, int(sympy.n_order(2, order)) // 2))
    return construction_answers.READERS["terms_of_squaring_sequences"](text)


@script("points_below_lines")
def _(text: str) -> int:
    low, a, b, high = (int(one or 0) for one in asked(r"(?:(\d+) <= )?(\d+)x \+ (\d+)y <= (\d+)", text))
    total = 0
    for x in range(within(high // a) + 1):
        total += (high - a * x) // b + 1 - (max(0, (low - 1 - a * x) // b + 1) if low else 0)
    return total


@script("grid_paths")
def _(text: str) -> int:
    """The paths to each point, row by row."""
    _, (width, height), *blocked = [(int(x), int(y)) for x, y in re.findall(r"\((\d+), (\d+)\)", text)]
    p, closed = whole(r"(?:divided by|division by) (\d+)", text)[0], set(blocked)
    within(4 * (width + 1) * (height + 1))
    row = [0] * (width + 1)
    for y in range(height + 1):
        for x in range(width + 1):
            before = row[x - 1] if x else int(y == 0)
            row[x] = 0 if (x, y) in closed else (row[x] + before) % p
    return row[width]


@script("words_without_a_block")
def _(text: str) -> int:
    """The words letter by letter, by their last letters."""
    n, names, block, p = construction_answers.words_of(text)
    within(names ** len(block) * n)
    counted = Counter({"": 1})
    for _ in range(n):
        longer = Counter[str]()
        for end, count in counted.items():
            for letter in "ABCD"[:names]:
                if not (end + letter).endswith(block):
                    longer[(end + letter)[1 - len(block) :]] += count
        counted = Counter({end: count % p for end, count in longer.items()})
    return counted.total() % p


def solved(topic: str, item: Item) -> bool:
    """True if one of the scripts gives the answer."""
    scripts = [*ONE_LINE.get(topic, ()), *SCRIPTS.get(topic, ())]
    if topic.startswith("composed_"):
        scripts = [lambda text: composed_answers.answer_of(text, literal=True)]
    for one in scripts:
        try:
            if same(topic, str(one(item.text)), item.answer):
                return True
        except TooLong:
            pass
    return False


def same(topic: str, found: str, answer: str) -> bool:
    if "polynomial" in topic and "polygon" not in topic:
        return composed_answers.polynomial(found) == composed_answers.polynomial(answer)
    return found == answer


def answer_of(topic: str, text: str) -> str:
    if topic.startswith("composed_"):
        return composed_answers.answer_of(text)
    return construction_answers.answer_of(topic, text)


def measured(taskset: TopicTaskset, labels: int) -> dict[str, Any]:
    wrong, checked, speeds = 0, 0, []
    each = -(-labels // (len(taskset.makers) * taskset.level_count))
    for topic, make in taskset.makers.items():
        for level in range(taskset.level_count):
            started = time.process_time()
            items = [make(level, Random(f"{topic} {level} {seed}")) for seed in range(max(each, DRAFTS))]
            speeds.append(len(items) / (time.process_time() - started))
            for item in items[:each]:
                checked += 1
                if not same(topic, answer_of(topic, item.text), item.answer):
                    wrong += 1
                    print(f"{topic}: {item.text} -> {item.answer}", file=sys.stderr)
    return {"taskset": taskset.name, "labels": checked, "wrong": wrong, "slowest_level": round(min(speeds))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, default=2_000)
    parser.add_argument("--json", type=Path)
    asked_for = parser.parse_args()
    rows, missed = [], 0
    for taskset in (COMPOSED_PROBLEMS, COMPOSED_BY_HAND, CONSTRUCTIONS, CONSTRUCTIONS_BY_HAND):
        row = measured(taskset, asked_for.labels)
        rows.append(row)
        print(
            f"{row['taskset']:22} wrong {row['wrong']} of {row['labels']}, slowest level {row['slowest_level']}/s",
            flush=True,
        )
        missed += row["wrong"] > WRONG or row["slowest_level"] < SPEED
    write_run(rows, asked_for.json)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())

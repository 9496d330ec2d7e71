"""Counting by exact enumeration: arrangements, committees, paths, words, colourings, distributions."""

from __future__ import annotations

from collections import Counter
from math import comb, factorial, perm, prod
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.statements import listed, mathematics, say, whole


def _letters(level: int, rng: Random) -> Item:
    counts = [rng.randint(1, 2 + level // 2) for _ in range(3 + level // 2)]
    if max(counts) == 1:
        counts[0] = 2
    word = "".join(
        rng.sample(
            [letter for letter, count in zip("BDKMPRST", counts, strict=False) for _ in range(count)], sum(counts)
        )
    )
    ways = factorial(len(word)) // prod(factorial(count) for count in counts)
    together = level > 1 and rng.random() < 0.5
    if together:
        letter, most = Counter(word).most_common(1)[0]
        rest = len(word) - most + 1
        ways = factorial(rest) // prod(factorial(count) for each, count in Counter(word).items() if each != letter)
        rule = f" in which all {most} letters {letter} stand next to each other"
    else:
        rule = ""
    text = say(
        rng,
        (
            "How many different words, meaningful or not, can be made from all letters of {word}{rule}?",
            "Count the different arrangements of the letters {word}{rule}. Equal letters cannot be told apart.",
        ),
        word=word, rule=rule,
    )  # fmt: skip
    counted = sorted(Counter(word).values())
    return whole(text, f"{counted} {together and most}", ways)


def _committee(level: int, rng: Random) -> Item:
    a, b = rng.randint(4 + level, 7 + 2 * level), rng.randint(4 + level, 7 + 2 * level)
    size = rng.randint(3, 4 + level)
    least = rng.randint(1, min(size - 1, a - 1))
    most = rng.choice((size, rng.randint(least, size))) if level > 1 else size
    ways = sum(comb(a, k) * comb(b, size - k) for k in range(least, most + 1))
    rule = f"at least {least}" if most == size else f"exactly {least}" if least == most else f"from {least} to {most}"
    text = say(
        rng,
        (
            ("From {a} painters and {b} sculptors a committee of {size} people is chosen. How many committees contain"
            " {rule} painters?"),
            ("A club has {a} painters and {b} sculptors. In how many ways can a group of {size} be formed with {rule}"
            " painters in it?"),
        ),
        a=a, b=b, size=size, rule=rule,
    )  # fmt: skip
    return whole(text, f"{a} {b} {size} {least} {most}", ways)


def _paths(level: int, rng: Random) -> Item:
    width, height = rng.randint(3 + level, 5 + level), rng.randint(3 + level, 5 + level)
    cells = [(x, y) for x in range(width + 1) for y in range(height + 1)][1:-1]
    blocked = sorted(rng.sample(cells, level))
    ways = {(0, 0): 1}
    for x in range(width + 1):
        for y in range(height + 1):
            if x or y:
                ways[x, y] = 0 if (x, y) in blocked else ways.get((x - 1, y), 0) + ways.get((x, y - 1), 0)
    rule = f" It may not pass through {listed(blocked)}." if blocked else ""
    text = say(
        rng,
        (
            ("A path on the grid goes from (0, 0) to ({w}, {h}); each step adds 1 to x or to y.{rule} How many"
            " such paths"
            " are there?"),
            ("A robot moves from (0, 0) to ({w}, {h}) in unit steps to the right or upwards.{rule} Count its possible"
            " paths."),
        ),
        w=width, h=height, rule=rule,
    )  # fmt: skip
    return whole(text, f"{width} {height} {blocked}", ways[width, height])


def _words(level: int, rng: Random) -> Item:
    letters, n, run = rng.randint(2, 2 + (level + 1) // 2), rng.randint(5 + level, 8 + 2 * level), rng.randint(2, 3)
    counted = [0] * run
    counted[0] = 1
    # counted[r]: words so far that end with r times the letter A and never have `run` of it in a row
    for _ in range(n):
        counted = [sum(counted) * (letters - 1), *counted[:-1]]
    names = "ABCDE"[:letters]
    text = say(
        rng,
        (
            "How many words of length {n} over the letters {names} have no {run} letters A in a row?",
            "Count the words of {n} letters, each of them {any}, in which the block {block} does not occur.",
        ),
        n=n, names=listed(names), run=run, any=" or ".join(names), block="A" * run,
    )  # fmt: skip
    return whole(text, f"{letters} {n} {run}", sum(counted))


def _distribution(level: int, rng: Random) -> Item:
    things, boxes = rng.randint(6 + 2 * level, 10 + 5 * level), rng.randint(3, 4 + level)
    least, most = rng.randint(0, 1), things
    if level > 1:
        most = rng.randint(things // boxes + 1, things // 2 + 1)
    ways = [1] + [0] * things
    for _ in range(boxes):
        ways = [sum(ways[total - each] for each in range(least, min(most, total) + 1)) for total in range(things + 1)]
    rule = (
        f"at least {least}"
        if most == things and least
        else f"from {least} to {most}"
        if most < things
        else "any number"
    )
    text = say(
        rng,
        (
            "In how many ways can {things} equal balls be put into {boxes} different boxes, {rule} in each?",
            ("How many tuples of {boxes} whole numbers >= 0 with the sum {things} are there, in which every entry is"
            " {rule}?"),
        ),
        things=things, boxes=boxes, rule=rule if rule != "any number" else "any number (0 included)",
    )  # fmt: skip
    return whole(text, f"{things} {boxes} {least} {most}", ways[things])


def _seats(level: int, rng: Random) -> Item:
    n, k = rng.randint(5 + level, 7 + 2 * level), rng.randint(2, 2 + level // 2)
    kind = rng.choice(("together", "apart", "ends", "order")[: 2 + level])
    ways = {
        "together": factorial(n - k + 1) * factorial(k),
        "apart": factorial(n - k) * perm(n - k + 1, k),
        "ends": (n - 2) * (n - 3) * factorial(n - 2) if n > 3 else 0,
        "order": factorial(n) // factorial(k),
    }[kind]
    rule = {
        "together": f"{k} of them, who are friends, sit next to each other",
        "apart": f"no two of {k} rivals among them sit next to each other",
        "ends": "Ada and Bo, who are among them, both sit at neither end",
        "order": f"the {k} youngest sit in the order of their ages from left to right, not necessarily side by side",
    }[kind]
    text = say(
        rng,
        (
            "{n} different people sit down in a row of {n} chairs. In how many ways can they do so if {rule}?",
            "Count the orders of {n} different people in a row in which {rule}.",
        ),
        n=n, rule=rule,
    )  # fmt: skip
    return whole(text, f"{n} {kind} {'' if kind == 'ends' else k}", ways)


def _sum_subsets(level: int, rng: Random) -> Item:
    n = rng.randint(5 + level, 7 + 2 * level)
    m = rng.randint(3, 4 + level)
    target = rng.randrange(m)
    counts = [1] + [0] * (m - 1)
    for number in range(1, n + 1):
        counts = [counts[rest] + counts[(rest - number) % m] for rest in range(m)]
    text = say(
        rng,
        (
            ("How many subsets of the set of the whole numbers from 1 to {n} have a sum that leaves the remainder"
            " {target} when divided by {m}? The empty set, with the sum 0, counts."),
            ("Count the subsets of the numbers 1, ..., {n}, the empty one with the sum 0 included, whose sum is"
            " {target}"
            " modulo {m}."),
        ),
        n=n, m=m, target=target,
    )  # fmt: skip
    return whole(text, f"{n} {m} {target}", counts[target])


ARRANGEMENTS = mathematics(
    "arrangements",
    1,
    {
        "letters": _letters,
        "committees": _committee,
        "grid_paths": _paths,
        "words_without_a_block": _words,
        "balls_in_boxes": _distribution,
        "seats": _seats,
        "subsets_by_sum": _sum_subsets,
    },
)

"""Counting by exact enumeration: arrangements, committees, paths, words, colourings, distributions."""

from __future__ import annotations

from collections import Counter
from math import comb
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.statements import listed, mathematics, say, whole


def _letters(level: int, rng: Random) -> Item:
    counts = sorted(rng.randint(1, 4) for _ in range(5 + level // 2))
    word = "".join(letter * count for letter, count in zip("BDKMPRST", counts, strict=False))
    given = "".join(rng.sample(word, len(word)))
    first = rng.randrange(-1, len(counts))  # -1: no letter has to be the first
    left = [count - (at == first) for at, count in enumerate(counts)]
    length = rng.randint(3, min(len(word), 8 + level))
    ways = [1]
    for count in left:
        ways = [
            sum(comb(size, k) * ways[size - k] for k in range(max(0, size - len(ways) + 1), min(count, size) + 1))
            for size in range(len(ways) + count)
        ]
    text = say(
        rng,
        (
            "How many different words of {n} letters, meaningful or not, can be made from the letters of {word}{rule}?",
            ("Count the different words of length {n} that the letters {word} allow{rule}. Equal letters cannot be told"
            " apart."),
            "Each letter of {word} may be used once. How many different rows of {n} of them are possible{rule}?",
            "From the tiles {word}, rows of {n} letters are laid. How many different rows are there{rule}?",
        ),
        word=given, n=length, rule="" if first < 0 else f", if each must begin with {'BDKMPRST'[first]}",
    )  # fmt: skip
    key = f"{counts} {length} {counts[first] if first >= 0 else 0}"
    return whole(text, key, ways[length] if first < 0 else ways[length - 1])


def _committee(level: int, rng: Random) -> Item:
    a, b = rng.randint(5 + level, 16 + 2 * level), rng.randint(5 + level, 16 + 2 * level)
    size = rng.randint(3, 5 + level)
    least = rng.randint(1, min(size - 1, a - 1))
    most = rng.choice((size, rng.randint(least, size))) if level > 1 else size
    ways = sum(comb(a, k) * comb(b, size - k) for k in range(least, most + 1))
    rule = f"at least {least}" if most == size else f"exactly {least}" if least == most else f"from {least} to {most}"
    text = say(
        rng,
        (
            ("From {a} painters and {b} sculptors a committee of {size} people is chosen. How many committees contain"
            " {rule}?"),
            ("A club has {a} painters and {b} sculptors. In how many ways can a group of {size} be formed with {rule}"
            " in it?"),
        ),
        a=a, b=b, size=size, rule=f"{rule} painter{'s' * (rule[-2:] != ' 1')}",
    )  # fmt: skip
    return whole(text, f"{a} {b} {size} {least} {most}", ways)


def _paths(level: int, rng: Random) -> Item:
    width, height = rng.randint(3 + level, 6 + level), rng.randint(3 + level, 6 + level)
    cells = [(x, y) for x in range(width + 1) for y in range(height + 1)][1:-1]
    blocked = sorted(rng.sample(cells, 1 + level))
    ways = {(0, 0): 1}
    for x in range(width + 1):
        for y in range(height + 1):
            if x or y:
                ways[x, y] = 0 if (x, y) in blocked else ways.get((x - 1, y), 0) + ways.get((x, y - 1), 0)
    rule = f" It may not pass through {listed(blocked, 'or')}."
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
    letters, n = "ABCDE"[: rng.randint(2, 4 + level // 3)], rng.randint(5 + level, 12 + 2 * level)
    block = "".join(rng.choices(letters, k=rng.randint(2, 4)))
    # The words so far, by their last letters: none of them contains the block.
    counted = Counter({"": 1})
    for _ in range(n):
        longer: Counter[str] = Counter()
        for end, count in counted.items():
            for letter in letters:
                if not (end + letter).endswith(block):
                    longer[(end + letter)[1 - len(block) :]] += count
        counted = longer
    text = say(
        rng,
        (
            "How many words of {n} letters over the alphabet {names} do not contain the block {block}?",
            "Count the words of {n} letters, each of them {any}, in which the block {block} does not occur.",
            ("A word of {n} letters is made of the letters {names}, each as often as you like. How many such words"
            " avoid the consecutive letters {block}?"),
            "In how many of the words of length {n} over {names} does {block} never stand in consecutive places?",
        ),
        n=n, names=listed(letters), block=block, any=listed(letters, "or"),
    )  # fmt: skip
    return whole(text, f"{len(letters)} {n} {block}", counted.total())


def _distribution(level: int, rng: Random) -> Item:
    things, boxes = rng.randint(12 + 2 * level, 45 + 2 * level), rng.randint(3, 7 + level // 2)
    least, most = rng.randint(0, 2), things
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


def _sum_subsets(level: int, rng: Random) -> Item:
    numbers = sorted(rng.sample(range(1, 20 + 5 * level), rng.randint(5 + level, 7 + 2 * level)))
    m = rng.randint(3, 4 + level)
    target = rng.randrange(m)
    counts = [1] + [0] * (m - 1)
    for number in numbers:
        counts = [counts[rest] + counts[(rest - number) % m] for rest in range(m)]
    text = say(
        rng,
        (
            ("How many subsets of the set of the numbers {numbers} have a sum that leaves the remainder {target} when"
            " divided by {m}? The empty set, with the sum 0, counts."),
            "Count the subsets of {{{set}}}, the empty one with the sum 0 included, whose sum is {target} modulo {m}.",
            ("Some of the numbers {numbers} are added up, perhaps all, perhaps none, which gives 0. For how many"
            " choices does the sum leave the remainder {target} when divided by {m}?"),
            ("From {{{set}}}, any number of elements is chosen, none included. In how many ways is the sum congruent to"
            " {target} modulo {m}?"),
        ),
        numbers=listed(numbers), set=", ".join(map(str, numbers)), m=m, target=target,
    )  # fmt: skip
    return whole(text, f"{numbers} {m} {target}", counts[target])


ARRANGEMENTS = mathematics(
    "arrangements",
    2,
    {
        "letters": _letters,
        "committees": _committee,
        "grid_paths": _paths,
        "words_without_a_block": _words,
        "balls_in_boxes": _distribution,
        "subsets_by_sum": _sum_subsets,
    },
)

"""Questions about decimal digits: zeros at the end, occurrences, sums, lengths, palindromes, repeated blocks."""

from __future__ import annotations

from functools import cache
from math import isqrt
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.statements import mathematics, say, whole

ENDS = (299, 999, 4_000, 30_000, 500_000)


def _zeros(level: int, rng: Random) -> Item:
    n = rng.randint((30, 200, 600, 2_000, 6_000)[level], (600, 900, 2_000, 6_000, 90_000)[level])
    count, power = 0, 5
    while power <= n:
        count, power = count + n // power, power * 5
    text = say(
        rng,
        (
            "How many zeros stand at the end of {n}! (the product of 1, 2, ..., {n})?",
            "What is the largest k for which 10^k divides {n}!, the factorial?",
        ),
        n=n,
    )
    return whole(text, f"{n}", count)


def occurrences(digit: int, end: int) -> int:
    """Counts how often a digit from 1 to 9 is written in the numbers from 1 to `end`."""
    count, place = 0, 1
    while place <= end:
        above, here, below = end // (10 * place), end // place % 10, end % place
        count += above * place + (place if here > digit else below + 1 if here == digit else 0)
        place *= 10
    return count


def _occurrences(level: int, rng: Random) -> Item:
    low = 1 if level == 0 else rng.randint(2, ENDS[level] // 2)
    high = rng.randint(ENDS[level] // 2 + 1, ENDS[level])
    digit = rng.randint(1, 9)
    text = say(
        rng,
        (
            "All whole numbers from {low} to {high} are written down. How often is the digit {digit} written?",
            "How many times does the digit {digit} occur in the list {low}, ..., {high} of consecutive whole numbers?",
        ),
        low=low, high=high, digit=digit,
    )  # fmt: skip
    return whole(text, f"{low} {high} {digit}", occurrences(digit, high) - occurrences(digit, low - 1))


@cache
def _with_sum(places: int, total: int) -> int:
    """Counts the sequences of `places` decimal digits whose sum is `total`."""
    if places == 0 or total < 0:
        return int(total == 0)
    return sum(_with_sum(places - 1, total - digit) for digit in range(10))


def below(end: int, total: int) -> int:
    """Counts the whole numbers from 0 on, below `end`, whose digit sum is `total`."""
    digits = [int(digit) for digit in str(end)]
    count, left = 0, total
    for at, digit in enumerate(digits):
        count += sum(_with_sum(len(digits) - at - 1, left - lower) for lower in range(digit))
        left -= digit
    return count


def _digit_sums(level: int, rng: Random) -> Item:
    end, total = rng.randint(ENDS[level] // 2, ENDS[level]), rng.randint(3, 12 + 3 * level)
    text = say(
        rng,
        (
            "How many whole numbers from 1 to {end} have digits that add up to {total}?",
            "Count the whole numbers n with 1 <= n <= {end} whose digit sum is {total}.",
        ),
        end=end, total=total,
    )  # fmt: skip
    return whole(text, f"{end} {total}", below(end + 1, total))


def _length(level: int, rng: Random) -> Item:
    a = 10
    while isqrt(a) ** 2 == a or a in (8, 27, 32, 125, 128) or a % 10 == 0:
        a = rng.randint(2, (19, 29, 49, 99, 199)[level])
    b = rng.randint((5, 10, 20, 40, 80)[level], (60, 80, 120, 200, 250)[level])
    text = say(
        rng,
        ("How many digits does {a}^{b} have in base ten?", "How long is the decimal numeral of {a} to the power {b}?"),
        a=a, b=b,
    )  # fmt: skip
    return whole(text, f"{a} {b}", len(str(a**b)))


def palindromes_to(end: int) -> int:
    """Counts the palindromes from 1 to `end`."""
    length = len(str(end))
    count: int = sum(9 * 10 ** ((places - 1) // 2) for places in range(1, length))
    half = str(end)[: (length + 1) // 2]
    mirrored = int(half + half[: length // 2][::-1])
    shorter: int = 10 ** (len(half) - 1)
    return count + int(half) - shorter + (mirrored <= end)


def _palindromes(level: int, rng: Random) -> Item:
    low, high = rng.randint(1, ENDS[level] // 3), rng.randint(ENDS[level] // 2, ENDS[level])
    text = say(
        rng,
        (
            "How many whole numbers from {low} to {high}, both included, read the same forwards and backwards?",
            ("Count the palindromes among the whole numbers {low}, ..., {high} (in base ten; one digit is a palindrome,"
            " too)."),
        ),
        low=low, high=high,
    )  # fmt: skip
    return whole(text, f"{low} {high}", palindromes_to(high) - palindromes_to(low - 1))


def _blocks(level: int, rng: Random) -> Item:
    block = rng.randint(12, (99, 199, 999, 9_999, 99_999)[level])
    times, m = rng.randint(4, 10 * 4**level), rng.randint(11, (37, 37, 59, 99, 999)[level])
    rest, shift = 0, 10 ** len(str(block))
    for _ in range(times):
        rest = (rest * shift + block) % m
    text = say(
        rng,
        (
            ("The numeral {block} is written {times} times in a row, which makes one long number. What is its remainder"
            " when divided by {m}?"),
            ("A number consists of the block {block}, repeated {times} times without gaps. Which remainder does"
            " it leave"
            " when divided by {m}?"),
        ),
        block=block, times=times, m=m,
    )  # fmt: skip
    return whole(text, f"{block} {times} {m}", rest)


DIGIT_PROBLEMS = mathematics(
    "digit_problems",
    2,
    {
        "zeros_of_a_factorial": _zeros,
        "digit_occurrences": _occurrences,
        "numbers_with_a_digit_sum": _digit_sums,
        "length_of_a_power": _length,
        "palindromes": _palindromes,
        "repeated_blocks": _blocks,
    },
)

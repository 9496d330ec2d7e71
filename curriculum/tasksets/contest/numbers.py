"""Contest problems on numbers: digits, recurrences, games, divisors and visiting orders."""

from __future__ import annotations

from math import isqrt

from curriculum.tasksets.contest.composing import Family, contest_taskset
from curriculum.tasksets.contest.structures import ARRAY, NUMBERS, POINTS


def digit_sums(x: list[int], *, m: int, r: int, gap: int) -> list[int]:
    """Counts with a table of how many ways a number can go on: rest digits, the last digit, the sum so far."""
    most = len(str(max(x)))
    ways = [[[int(s == r) for s in range(m)] for _ in range(10)]]
    for _ in range(most - 1):
        before = ways[-1]
        allowed = [[d for d in range(10) if abs(d - last) != gap] for last in range(10)]
        ways.append([[sum(before[d][(s + d) % m] for d in allowed[last]) for s in range(m)] for last in range(10)])
    found = []
    for number in x:
        digits = list(map(int, str(number + 1)))
        size = len(digits)
        count = sum(ways[rest][d][d % m] for rest in range(size - 1) for d in range(1, 10))
        last, total = -1, 0
        for at, limit in enumerate(digits):
            for d in range(at == 0, limit):
                if last < 0 or abs(d - last) != gap:
                    count += ways[size - 1 - at][d][(total + d) % m]
            if last >= 0 and abs(limit - last) == gap:
                break
            last, total = limit, total + limit
        found.append(count)
    return found


def patterns(x: list[int], *, modulus: int, letters: int, run: int) -> list[int]:
    """Multiplies powers of the matrix between run lengths, from the binary digits of each number."""
    step = [[letters - 1] * run] + [[int(column == row) for column in range(run)] for row in range(run - 1)]
    powers = [step]
    for _ in range(max(x).bit_length()):
        last = powers[-1]
        turned = list(zip(*last, strict=True))
        powers.append(
            [[sum(a * b for a, b in zip(row, column, strict=True)) % modulus for column in turned] for row in last]
        )
    found = []
    for number in x:
        state, left, bit = [letters] + [0] * (run - 1), number - 1, 0
        while left:
            if left & 1:
                state = [sum(a * b for a, b in zip(row, state, strict=True)) % modulus for row in powers[bit]]
            left, bit = left >> 1, bit + 1
        found.append(sum(state) % modulus)
    return found


def stones(x: list[int], *, a: int, b: int, c: int) -> int:
    moves = sorted({a, a + b, a + b + c})
    values: list[int] = []
    seen: dict[tuple[int, ...], int] = {}
    begin = period = 0
    while not period:
        at = len(values)
        state = tuple(values[-moves[-1] :])
        if len(state) == moves[-1]:
            if state in seen:
                begin, period = seen[state], at - seen[state]
            seen[state] = at
        options = {values[at - move] for move in moves if move <= at}
        values.append(next(value for value in range(4) if value not in options))

    def value_of(heap: int) -> int:
        return values[heap if heap < begin else begin + (heap - begin) % period]

    whole = 0
    for heap in x:
        whole ^= value_of(heap)
    return sum(value_of(heap - move) == whole ^ value_of(heap) for heap in x for move in moves if move <= heap)


def visits(v: list[tuple[int, int]], *, p: int, q: int) -> int:
    n = len(v)
    far = [[p * abs(a - c) + q * abs(b - d) for c, d in v] for a, b in v]
    best = [[10**18] * n for _ in range(1 << n)]
    best[1][0] = 0
    for seen in range(1, 1 << n, 2):
        row = best[seen]
        for last in range(n):
            if row[last] < 10**18:
                for to in range(1, n):
                    after = row[last] + far[last][to]
                    if not seen >> to & 1 and after < best[seen | 1 << to][to]:
                        best[seen | 1 << to][to] = after
    return min(best[-1])


def divisor_pairs(a: list[int], *, m: int, r: int) -> int:
    most = max(a)
    count, pairs, found = [0] * (most + 1), [0] * (most + 1), 0
    for value in a:
        count[value] += 1
    for divisor in range(most, 0, -1):
        together = sum(count[divisor::divisor])
        pairs[divisor] = together * (together - 1) // 2 - sum(pairs[2 * divisor :: divisor])
        found += pairs[divisor] if divisor % m == r else 0
    return found


def quotients(x: list[int], *, m: int, r: int) -> list[int]:
    found = []
    for number in x:
        sums, begin = 0, 1
        while begin <= number:
            quotient = number // begin
            end = number // quotient
            sums += quotient * ((end - r) // m - (begin - 1 - r) // m)
            begin = end + 1
        found.append(sums)
    return found


def sequence_sums(x: list[int], *, b: int, a: int, modulus: int) -> list[int]:
    """Doubles the map from (term, sum) to the term and sum after a number of steps."""
    found = []
    for length in x:
        number, term, total = length, 1 % modulus, 0
        grow, plus, part, rest = a, b, 1, 0  # after the steps: term * grow + plus, total + term * part + rest
        while number:
            if number & 1:
                term, total = (term * grow + plus) % modulus, (total + term * part + rest) % modulus
            part, rest = (part + grow * part) % modulus, (rest + plus * part + rest) % modulus
            grow, plus = grow * grow % modulus, (grow * plus + plus) % modulus
            number >>= 1
        found.append(total)
    return found


def factor_counts(x: list[int], *, width: int, k: int) -> list[int]:
    root = isqrt(max(x) + width)
    sieve = bytearray([1]) * (root + 1)
    primes = []
    for prime in range(2, root + 1):
        if sieve[prime]:
            primes.append(prime)
            sieve[prime * prime :: prime] = bytes(len(range(prime * prime, root + 1, prime)))
    found = []
    for begin in x:
        rest = list(range(begin, begin + width))
        count = [0] * width
        for prime in primes:
            if prime * prime >= begin + width:
                break
            for at in range(-begin % prime, width, prime):
                while rest[at] % prime == 0:
                    rest[at] //= prime
                    count[at] += 1
        found.append(sum(count[at] + (rest[at] > 1) == k for at in range(width)))
    return found


def circle_games(x: list[int], *, k: int, s: int) -> list[int]:
    last = [0, 0]
    for size in range(2, max(x) + 1):
        last.append((last[-1] + k) % size)
    return [(last[size] + s) % size + 1 for size in x]


FAMILIES = {
    "digit_sums": Family(
        structure=NUMBERS,
        asks=(
            "For each x_i count the numbers from 1 to x_i whose sum of decimal digits leaves the remainder {r} when "
            "divided by {m}, and in which no two digits beside each other differ by exactly {gap}. Print these "
            "counts."
        ),
        solve=digit_sums, constants={"m": (3, 14), "r": (0, "m"), "gap": (0, 6)}, bounds={"high": 10**15}, most=60,
        large=("random",), small=3, medium=6,
    ),
    "patterns": Family(
        structure=NUMBERS,
        asks=(
            "For each x_i count the rows of x_i stones of {letters} colours in which no more than {run} stones in a "
            "row have the same colour. Print the remainders of these counts when divided by {modulus}."
        ),
        solve=patterns, constants={"modulus": (10**6, 10**9), "letters": (2, 30), "run": (2, 5)},
        bounds={"high": 10**15}, most=200, large=("random",), small=4, medium=8,
    ),
    "stones": Family(
        structure=NUMBERS,
        asks=(
            "Two players move in turn. There are n heaps of x_i stones. A move takes {a}, {a} + {b} or {a} + {b} + "
            "{c} stones from one heap that has as many. Who cannot move loses. Count the first moves (a heap and a "
            "number of stones) after which the player who made it wins, if both play as well as possible from there "
            "on."
        ),
        solve=stones, constants={"a": (1, 8), "b": (1, 7), "c": (1, 7)}, bounds={"high": 10**15}, most=1_000,
        large=("random",), small=4, medium=8,
    ),
    "visits": Family(
        structure=POINTS,
        asks=(
            "Start at point 1 and visit all n points in any order, ending anywhere. Going from (x, y) to (x', y') "
            "costs {p} * |x - x'| + {q} * |y - y'|. Print the lowest total cost."
        ),
        solve=visits, constants={"p": (1, 30), "q": (1, 30)}, bounds={"high": 10**9}, most=12, large=("random",),
        small=6, medium=7,
    ),
    "divisor_pairs": Family(
        structure=ARRAY,
        asks=(
            "Count the pairs of positions i < j for which the greatest common divisor of a_i and a_j leaves the "
            "remainder {r} when divided by {m}."
        ),
        solve=divisor_pairs, constants={"m": (2, 40), "r": (0, "m")}, bounds={"low": 1, "high": 20_000}, most=40_000,
        large=("random",), small=12,
    ),
    "quotients": Family(
        structure=NUMBERS,
        asks=(
            "For each x_i add up x_i / j, rounded down, for all j from 1 to x_i that leave the remainder {r} when "
            "divided by {m}. Print these sums."
        ),
        solve=quotients, constants={"m": (2, 40), "r": (0, "m")}, bounds={"high": 2 * 10**9}, most=6,
        large=("random",), small=3, medium=4,
    ),
    "sequence_sums": Family(
        structure=NUMBERS,
        asks=(
            "A sequence begins with 1 (divided by {modulus}, the remainder); each term is {a} times the one before "
            "plus {b}, of which the remainder is taken when divided by {modulus}. For each x_i print the remainder "
            "of the sum of the first x_i terms when divided by {modulus}."
        ),
        solve=sequence_sums, constants={"b": (0, 99), "a": (2, 99), "modulus": (100, 10**9)}, bounds={"high": 10**15},
        most=500, large=("random",), small=4, medium=8,
    ),
    "factor_counts": Family(
        structure=NUMBERS,
        asks=(
            "For each x_i count the numbers from x_i to x_i + {width} - 1 that are a product of exactly {k} primes, "
            "which may be equal (1 is the product of none). Print these counts."
        ),
        solve=factor_counts, constants={"width": (200, 600), "k": (1, 4)}, bounds={"high": 10**12}, most=2,
        large=("random",), small=2, medium=2,
    ),
    "circle_games": Family(
        structure=NUMBERS,
        asks=(
            "x children stand in a circle, numbered from 1. Counting begins with child 1, goes around, and every "
            "{k}-th child leaves; counting continues behind it. Then the numbers are shifted: the last child left, "
            "with number j, gets the prize number that lies {s} places after j, where 1 follows x. For each x_i "
            "print the prize number."
        ),
        solve=circle_games, constants={"k": (2, 99), "s": (0, 9)}, bounds={"high": 300_000}, most=50,
        large=("random",), small=4, medium=8,
    ),
}  # fmt: skip
CONTEST_NUMBERS = contest_taskset("contest_numbers", 1, FAMILIES)

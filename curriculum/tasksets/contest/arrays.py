"""Contest problems on arrays: pairs, subarrays, windows and subsequences."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from itertools import accumulate

from curriculum.tasksets.contest.composing import Family, contest_taskset
from curriculum.tasksets.contest.structures import ARRAY, ARRAY_K


def add(tree: list[int], at: int, value: int) -> None:
    """Adds a value at a position, from 0, of a Fenwick tree."""
    at += 1
    while at < len(tree):
        tree[at] += value
        at += at & -at


def total(tree: list[int], at: int) -> int:
    """Returns the sum of a Fenwick tree's first `at` values."""
    found = 0
    while at:
        found += tree[at]
        at &= at - 1
    return found


def inversions(a: list[int], *, p: int, q: int) -> int:
    order = sorted(set(a))
    tree, found = [0] * (len(order) + 1), 0
    for value in reversed(a):
        found += total(tree, bisect_right(order, (value - q - 1) // p))
        add(tree, bisect_left(order, value), 1)
    return found


def remainders(a: list[int], *, m: int, r: int, least: int) -> int:
    sums = [0, *accumulate(a)]
    seen: defaultdict[int, int] = defaultdict(int)
    found = 0
    for end in range(least, len(sums)):
        seen[sums[end - least] % m] += 1
        found += seen[(sums[end] - r) % m]
    return found


def bands(a: list[int], *, s: int, width: int) -> int:
    sums = [0, *accumulate(a)]
    order = sorted(set(sums))
    tree, found = [0] * (len(order) + 1), 0
    for value in sums:
        found += total(tree, bisect_right(order, value - s)) - total(tree, bisect_left(order, value - s - width))
        add(tree, bisect_left(order, value), 1)
    return found


def variety(a: list[int], *, more: int, d: int) -> int:
    counts: list[defaultdict[int, int]] = [defaultdict(int), defaultdict(int)]
    begins, kinds, found = [0, 0], [0, 0], 0
    for end, value in enumerate(a):
        for which, most in enumerate((d, d - 1)):
            count = counts[which]
            kinds[which] += count[value] == 0
            count[value] += 1
            while kinds[which] > most:
                gone = a[begins[which]]
                count[gone] -= 1
                kinds[which] -= count[gone] == 0
                begins[which] += 1
        found += max(0, min(begins[1], end - d - more + 2) - begins[0])
    return found


def extremes(a: list[int], *, p: int, q: int) -> int:
    found = 0
    for sign, factor in ((1, p), (-1, -q)):
        values, stack = [sign * value for value in a], [-1]
        for at in range(len(a) + 1):
            while stack[-1] >= 0 and (at == len(a) or values[stack[-1]] < values[at]):
                top = stack.pop()
                found += factor * a[top] * (top - stack[-1]) * (at - top)
            stack.append(at)
    return found


def circles(k: int, a: list[int], *, c: int, d: int) -> int:
    n = len(a)
    sums = [0, *accumulate(value - c for value in [*a, *a])]
    best, window = sums[1], deque[int]()
    for end in range(1, 2 * n):
        if end <= n:
            while window and sums[window[-1]] >= sums[end - 1]:
                window.pop()
            window.append(end - 1)
        while window and window[0] < end - k:
            window.popleft()
        if not window:
            break
        best = max(best, sums[end] - sums[window[0]] - (d if end > n else 0))
    return best


def heavy_chain(a: list[int], *, g: int, w: int) -> int:
    order = sorted(set(a))
    tree = [0] * (len(order) + 1)
    for value in a:
        at, best = bisect_right(order, value - g), 0
        while at:
            best = max(best, tree[at])
            at &= at - 1
        best += value % w + 1
        at = bisect_left(order, value) + 1
        while at < len(tree):
            tree[at] = max(tree[at], best)
            at += at & -at
    return max(tree)


def ranks(k: int, a: list[int], *, q: int, p: int) -> int:
    order = sorted(set(a))
    places = {value: at for at, value in enumerate(order)}
    tree, found, rank = [0] * (len(order) + 1), 0, (k * p + q - 1) // q
    steps = [1 << bit for bit in reversed(range(len(order).bit_length()))]
    for end, value in enumerate(a):
        add(tree, places[value], 1)
        if end >= k:
            add(tree, places[a[end - k]], -1)
        if end >= k - 1:
            at, left = 0, rank
            for step in steps:
                if at + step < len(tree) and tree[at + step] < left:
                    at += step
                    left -= tree[at]
            found += order[at]
    return found


def near_pairs(a: list[int], *, limit: int, d: int) -> int:
    found = 0
    for bit in range(limit.bit_length()):
        if limit >> bit & 1:
            seen: defaultdict[int, int] = defaultdict(int)
            for at in range(d, len(a)):
                seen[a[at - d] >> bit] += 1
                found += seen[(a[at] >> bit) ^ (limit >> bit) ^ 1]
    return found


VALUES = {"low": 0, "high": 10**9}
FENWICK = (add, total)
FAMILIES = {
    "weighted_inversions": Family(
        structure=ARRAY,
        asks="Count the pairs of positions i < j with a_i > {p} * a_j + {q}.",
        solve=inversions, constants={"q": (0, 39), "p": (1, 9)}, bounds=VALUES, most=60_000,
        large=("random", "falling"), uses=FENWICK,
    ),
    "subarray_remainders": Family(
        structure=ARRAY,
        asks=(
            "Count the subarrays (consecutive elements) with at least {least} elements whose sum leaves the "
            "remainder {r} when divided by {m}."
        ),
        solve=remainders, constants={"m": (3, 40), "r": (0, "m"), "least": (1, 9)}, bounds=VALUES, most=80_000,
        large=("random", "equal"), small=14,
    ),
    "sums_in_a_band": Family(
        structure=ARRAY,
        asks=(
            "Count the subarrays (at least one element, consecutive) whose sum is at least {s} and at most {s} + "
            "{width}."
        ),
        solve=bands, constants={"width": (3, 60), "s": (1, 40)}, bounds={"low": -1000, "high": 1000}, most=50_000,
        large=("random", "zigzag"), uses=FENWICK, small=10,
    ),
    "exact_variety": Family(
        structure=ARRAY,
        asks="Count the subarrays with exactly {d} different values and at least {more} elements more than that.",
        solve=variety, constants={"more": (1, 25), "d": (2, 14)}, bounds={"low": 1, "high": 60}, most=80_000,
        large=("random", "few"), small=30, medium=120,
    ),
    "extremes_of_subarrays": Family(
        structure=ARRAY,
        asks=(
            "Each subarray (at least one element, consecutive) counts {p} times its largest value minus {q} times "
            "its smallest value. Print the sum over all subarrays."
        ),
        solve=extremes, constants={"p": (1, 30), "q": (1, 30)}, bounds=VALUES, most=80_000, large=("rising", "random"),
    ),
    "circular_blocks": Family(
        structure=ARRAY_K,
        asks=(
            "The array is a circle: a_1 follows a_n. Choose a block of 1 to k consecutive elements. It is worth the "
            "sum of its elements, minus {c} for each of them, and minus {d} if it contains both a_n and, right after "
            "it, a_1. Print the largest worth."
        ),
        solve=circles, constants={"d": (0, 60), "c": (0, 20)}, bounds={"low": -4 * 10**8, "high": 4 * 10**8},
        most=60_000, large=("random", "falling"),
    ),
    "heavy_chains": Family(
        structure=ARRAY,
        asks=(
            "Choose a subsequence (in the given order, not necessarily consecutive) in which each element is at "
            "least {g} more than the one before. An element v weighs 1 plus the remainder of v divided by {w}. Print "
            "the largest total weight."
        ),
        solve=heavy_chain, constants={"g": (1, 20), "w": (2, 30)}, bounds=VALUES, most=50_000,
        large=("random", "rising"),
    ),
    "ranks_in_windows": Family(
        structure=ARRAY_K,
        asks=(
            "For each window of k consecutive elements take the element of rank r in ascending order, where r is k * "
            "{p} / {q} rounded up (rank 1 is the smallest; equal elements have ranks of their own). Print the sum."
        ),
        solve=ranks, constants={"q": (2, 400), "p": (1, "q")}, bounds=VALUES, most=40_000, large=("random", "few"),
        uses=FENWICK,
    ),
    "near_pairs": Family(
        structure=ARRAY,
        asks="Count the pairs of positions i < j with j - i >= {d} for which (a_i xor a_j) < {limit}.",
        solve=near_pairs, constants={"limit": (2, 500), "d": (1, 6)}, bounds={"low": 0, "high": 1 << 18}, most=50_000,
        large=("random", "few"), small=12,
    ),
}  # fmt: skip
CONTEST_ARRAYS = contest_taskset("contest_arrays", 1, FAMILIES)

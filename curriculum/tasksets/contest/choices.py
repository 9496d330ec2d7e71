"""Contest problems of choosing: intervals, jobs, groups, loading and dividing."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from heapq import heapify, heappop, heappush, heapreplace
from itertools import accumulate

from curriculum.tasksets.contest.composing import Family, contest_taskset
from curriculum.tasksets.contest.structures import ARRAY, ARRAY_K, CAPACITY, INTERVALS, PAIRS


def bookings(v: list[tuple[int, int, int]], *, fee: int, gap: int) -> int:
    rows = sorted(v, key=lambda row: row[1])
    ends, best = [row[1] for row in rows], [0]
    for begin, _, worth in rows:
        best.append(max(best[-1], best[bisect_right(ends, begin - gap)] + worth - fee))
    return best[-1]


def crowds(v: list[tuple[int, int, int]], *, c: int, m: int) -> int:
    events = [(begin, 0, worth) for begin, _, worth in v if worth >= m]
    events += [(end + c, 1, -worth) for _, end, worth in v if worth >= m]
    return max(accumulate((change for _, _, change in sorted(events)), initial=0))


def coverage(v: list[tuple[int, int, int]], *, d: int, k: int) -> int:
    events = sorted([(begin, 1) for begin, _, _ in v] + [(end + d, -1) for _, end, _ in v])
    found, depth, before = 0, 0, 0
    for at, change in events:
        found += (at - before) * (depth >= k)
        depth, before = depth + change, at
    return found


def lamps(k: int, a: list[int], *, c: int, reach: int) -> int:
    places = sorted(a)
    best, window = [0], deque[int]()
    for end, place in enumerate(places):
        while window and best[window[-1]] - places[window[-1]] >= best[end] - place:
            window.pop()
        window.append(end)
        while window[0] <= end - k or place - places[window[0]] > reach:
            window.popleft()
        best.append(best[window[0]] - places[window[0]] + place + c)
    return best[-1]


def jobs(v: list[tuple[int, int]], *, fee: int, days: int) -> int:
    kept: list[int] = []
    for deadline, worth in sorted(v):
        if worth <= fee:
            continue
        heappush(kept, worth - fee)
        if len(kept) > deadline // days:
            heappop(kept)
    return sum(kept)


def loading(k: int, v: list[tuple[int, int, int]], *, fee: int) -> int:
    best = [0] * (k + 1)
    for count, size, worth in v:
        after = best[:]
        for rest in range(min(size, k + 1)):
            window = deque[tuple[int, int]]()
            for step, room in enumerate(range(rest, k + 1, size)):
                if window and window[0][1] < step - count:
                    window.popleft()
                if window:
                    after[room] = max(after[room], window[0][0] + step * worth - fee)
                value = best[room] - step * worth
                while window and window[-1][0] <= value:
                    window.pop()
                window.append((value, step))
        best = after
    return max(best)


def shares(a: list[int], *, p: int, q: int) -> int:
    sums, whole = 1, sum(a)
    for value in a:
        sums |= sums << value
    digits = bin(sums)[:1:-1]
    return min(abs(p * one - q * (whole - one)) for one in range(whole + 1) if digits[one] == "1")


def merges(a: list[int], *, p: int, k: int) -> int:
    heap, cost = [0] * (-(len(a) - 1) % (k - 1)) + a, 0
    heapify(heap)
    while len(heap) > 1:
        some = sum(heappop(heap) for _ in range(k - 1))
        some += heap[0]
        heapreplace(heap, some)
        cost += p * some
    return cost


def divided(k: int, a: list[int], *, c: int) -> int:
    low, high = max(a), sum(a) + c * (len(a) - 1)
    while low < high:
        middle = (low + high) // 2
        parts, load = 1, a[0]
        for value in a[1:]:
            load += value + c
            if load > middle:
                parts, load = parts + 1, value
        if parts <= k:
            high = middle
        else:
            low = middle + 1
    return low


def matches(a: list[int], *, d: int, p: int, q: int) -> int:
    order, small = sorted(a), 0
    half = len(order) // 2
    for large in range(half, len(order)):
        if small < half and q * order[large] >= p * order[small] + d:
            small += 1
    return small


SCHEDULE = {"top": 10**6, "high": 10**9}
FAMILIES = {
    "bookings": Family(
        structure=INTERVALS,
        asks=(
            "A hall has n requests: from time b_i to time e_i, paying w_i. Requests that are accepted must not "
            "overlap, and there must be a break of at least {gap} between the end of one and the begin of the next. "
            "Each accepted request costs a fee of {fee}. Print the largest profit; no request has to be accepted."
        ),
        solve=bookings, constants={"fee": (0, 60), "gap": (0, 6)}, bounds=SCHEDULE, most=25_000,
        large=("random", "chained"),
    ),
    "crowds": Family(
        structure=INTERVALS,
        asks=(
            "Group i with w_i people arrives at time b_i and leaves at time e_i + {c}; at both times it is present. "
            "Groups of fewer than {m} people do not count. Print the largest number of people of the others that are "
            "present at the same time, 0 if there are none."
        ),
        solve=crowds, constants={"c": (0, 60), "m": (1, 12)}, bounds=SCHEDULE, most=25_000, large=("random", "nested"),
    ),
    "coverage": Family(
        structure=INTERVALS,
        asks=(
            "Shift i works from time b_i to time e_i + {d} (w_i does not matter). Print the total length of time "
            "during which at least {k} shifts work."
        ),
        solve=coverage, constants={"d": (0, 60), "k": (2, 7)}, bounds={"top": 10**9, "high": 1000}, most=30_000,
        large=("random", "nested"),
    ),
    "lamps": Family(
        structure=ARRAY_K,
        asks=(
            "There are n houses on a road, at the places a_i. Divide them into groups; a group has at most k houses, "
            "and no two houses of a group are more than {reach} apart. A group costs {c} plus the distance between "
            "its first and last house. Print the lowest total cost."
        ),
        solve=lamps, constants={"c": (1, 40), "reach": (3, 30)}, bounds={"low": 0, "high": 100}, most=40_000,
        large=("random", "high"),
    ),
    "jobs": Family(
        structure=PAIRS,
        asks=(
            "There are n jobs. Job i pays w_i if it is finished by the end of day d_i; otherwise it pays nothing. "
            "Each job takes {days} whole days, one job at a time from day 1 on, and doing a job costs {fee}. Print "
            "the largest profit; no job has to be done."
        ),
        solve=jobs, constants={"fee": (0, 60), "days": (1, 6)}, bounds={"top": 40_000, "high": 10**9}, most=30_000,
        large=("equal", "random"),
    ),
    "loading": Family(
        structure=CAPACITY,
        asks=(
            "A box has room for a total size of k. There are n kinds of items. Each kind of which at least one piece "
            "is packed costs {fee}, however many are packed. Print the largest total value of packed pieces minus "
            "these costs; the box may stay empty."
        ),
        solve=loading, constants={"fee": (0, 600)}, bounds={"room": 2_500, "high": 1_000}, most=30, large=("random",),
        small=4, medium=6,
    ),
    "fair_shares": Family(
        structure=ARRAY,
        asks=(
            "Divide the elements into two groups with the sums S and T; a group may be empty. Print the smallest "
            "possible value of |{p} * S - {q} * T|."
        ),
        solve=shares, constants={"p": (1, 30), "q": (1, 30)}, bounds={"low": 1, "high": 700}, most=500,
        large=("random", "high"), medium=12,
    ),
    "merging_piles": Family(
        structure=ARRAY,
        asks=(
            "There are n piles, of a_i stones. In one step 2 to {k} piles are put together; that costs {p} times the "
            "number of stones in them. Print the lowest total cost of getting a single pile."
        ),
        solve=merges, constants={"p": (1, 150), "k": (3, 5)}, bounds={"low": 1, "high": 10**9}, most=50_000,
        large=("random", "equal"), small=7,
    ),
    "fair_parts": Family(
        structure=ARRAY_K,
        asks=(
            "Cut the array into at most k parts of consecutive elements, none of them empty. The load of a part is "
            "the sum of its elements plus {c} for every two neighbours in it. Print the smallest possible value of "
            "the largest load."
        ),
        solve=divided, constants={"c": (0, 600)}, bounds={"low": 1, "high": 10**6}, most=30_000,
        large=("random", "high"),
    ),
    "matches": Family(
        structure=ARRAY,
        asks=(
            "An element x may be matched with an element y at another position if {q} * y >= {p} * x + {d}. Each "
            "element is matched at most once. Print the largest number of matched pairs."
        ),
        solve=matches, constants={"d": (0, 9), "p": (4, 20), "q": (3, "p")}, bounds={"low": 0, "high": 10**9},
        most=80_000, large=("random", "few"),
    ),
}  # fmt: skip
CONTEST_CHOICES = contest_taskset("contest_choices", 1, FAMILIES)

"""Slow, independent solutions of contest problems on arrays and of choosing, and wrong ideas of them."""

from __future__ import annotations

from functools import cache


def inversions(a, *, p, q):
    return sum(a[i] > p * a[j] + q for i in range(len(a)) for j in range(i + 1, len(a)))


def remainders(a, *, m, r, least):
    found = 0
    for i in range(len(a)):
        total = 0
        for j in range(i, len(a)):
            total += a[j]
            found += j - i + 1 >= least and total % m == r
    return found


def bands(a, *, s, width):
    found = 0
    for i in range(len(a)):
        total = 0
        for j in range(i, len(a)):
            total += a[j]
            found += s <= total <= s + width
    return found


def variety(a, *, more, d):
    found = 0
    for i in range(len(a)):
        kinds = set()
        for j in range(i, len(a)):
            kinds.add(a[j])
            found += j - i + 1 >= d + more and len(kinds) == d
    return found


def extremes(a, *, p, q):
    found = 0
    for i in range(len(a)):
        low = high = a[i]
        for j in range(i, len(a)):
            low, high = min(low, a[j]), max(high, a[j])
            found += p * high - q * low
    return found


def circles(k, a, *, c, d):
    best = None
    for i in range(len(a)):
        total = 0
        for length in range(1, k + 1):
            total += a[(i + length - 1) % len(a)] - c
            worth = total - (d if i + length > len(a) else 0)
            best = worth if best is None or worth > best else best
    return best


def circles_around_a_line(k, a, *, c, d):
    """Forgets the circle."""
    best = a[0] - c
    for i in range(len(a)):
        for j in range(i + 1, min(len(a), i + k) + 1):
            best = max(best, sum(a[i:j]) - c * (j - i))
    return best


def heavy_chain(a, *, g, w):
    best = []
    for i, value in enumerate(a):
        best.append(1 + value % w + max((best[j] for j in range(i) if a[j] + g <= value), default=0))
    return max(best)


def heavy_chain_of_neighbours(a, *, g, w):
    """Goes on whenever it can."""
    found, last = 0, None
    for value in a:
        if last is None or value >= last + g:
            found, last = found + value % w + 1, value
    return found


def ranks(k, a, *, q, p):
    return sum(sorted(a[i : i + k])[-(-k * p // q) - 1] for i in range(len(a) - k + 1))


def near_pairs(a, *, limit, d):
    return sum(a[i] ^ a[j] < limit for i in range(len(a)) for j in range(i + d, len(a)))


def bookings(v, *, fee, gap):
    rows, best = sorted(v, key=lambda row: row[1]), []
    for i, (begin, _, worth) in enumerate(rows):
        best.append(worth - fee + max((best[j] for j in range(i) if rows[j][1] + gap <= begin), default=0))
        best[-1] = max(best[-1], worth - fee)
    return max(0, *best)


def bookings_by_worth(v, *, fee, gap):
    """Takes the best paid first."""
    taken = []
    for begin, end, worth in sorted(v, key=lambda row: -row[2]):
        if worth > fee and all(end + gap <= b or e + gap <= begin for b, e, _ in taken):
            taken.append((begin, end, worth - fee))
    return sum(row[2] for row in taken)


def crowds(v, *, c, m):
    some = [row for row in v if row[2] >= m]
    return max((sum(w for b, e, w in some if b <= at <= e + c) for at, _, _ in some), default=0)


def coverage(v, *, d, k):
    rows = [(b, e + d) for b, e, _ in v]
    places = sorted({place for row in rows for place in row})
    return sum(
        (places[i + 1] - places[i]) * (sum(b <= places[i] < e for b, e in rows) >= k) for i in range(len(places) - 1)
    )


def lamps(k, a, *, c, reach):
    places = sorted(a)
    best = [0]
    for j in range(len(places)):
        best.append(
            min(
                best[i] + c + places[j] - places[i]
                for i in range(max(0, j - k + 1), j + 1)
                if places[j] - places[i] <= reach
            )
        )
    return best[-1]


def lamps_as_large_as_possible(k, a, *, c, reach):
    places, cost, at = sorted(a), 0, 0
    while at < len(places):
        first, begin = places[at], at
        while at < len(places) and at - begin < k and places[at] - first <= reach:
            at += 1
        cost += c + places[at - 1] - first
    return cost


def jobs(v, *, fee, days):
    free, found = [True] * (max(d for d, _ in v) // days), 0
    for deadline, worth in sorted(v, key=lambda row: -row[1]):
        slot = deadline // days - 1
        while slot >= 0 and not free[slot]:
            slot -= 1
        if slot >= 0 and worth > fee:
            free[slot] = False
            found += worth - fee
    return found


def jobs_by_deadline(v, *, fee, days):
    done, found = 0, 0
    for deadline, worth in sorted(v, key=lambda row: (row[0], -row[1])):
        if worth > fee and done + 1 <= deadline // days:
            done, found = done + 1, found + worth - fee
    return found


def loading(k, v, *, fee):
    best = [0] * (k + 1)
    for count, size, worth in v:
        best = [
            max(
                [best[room], *(best[room - n * size] + n * worth - fee for n in range(1, min(count, room // size) + 1))]
            )
            for room in range(k + 1)
        ]
    return max(best)


def loading_by_density(k, v, *, fee):
    found = 0
    for count, size, worth in sorted(v, key=lambda row: -row[2] / row[1]):
        pieces = min(count, k // size)
        if pieces * worth > fee:
            k, found = k - pieces * size, found + pieces * worth - fee
    return found


def shares(a, *, p, q):
    sums = {0}
    for value in a:
        sums |= {one + value for one in sums}
    return min(abs(p * one - q * (sum(a) - one)) for one in sums)


def shares_one_by_one(a, *, p, q):
    left = right = 0
    for value in sorted(a, reverse=True):
        if abs(p * (left + value) - q * right) < abs(p * left - q * (right + value)):
            left += value
        else:
            right += value
    return abs(p * left - q * right)


def merges(a, *, p, k):
    @cache
    def cheapest(piles):
        if len(piles) == 1:
            return 0
        best = 10**18
        for chosen in range(1, 1 << len(piles)):
            if 2 <= chosen.bit_count() <= k:
                some = sum(pile for at, pile in enumerate(piles) if chosen >> at & 1)
                rest = [pile for at, pile in enumerate(piles) if not chosen >> at & 1]
                best = min(best, p * some + cheapest(tuple(sorted([*rest, some]))))
        return best

    return cheapest(tuple(sorted(a)))


def merges_by_sorting(a, *, p, k):
    piles, cost = [0] * (-(len(a) - 1) % (k - 1)) + a, 0
    while len(piles) > 1:
        piles.sort()
        some = sum(piles[:k])
        piles = [some, *piles[k:]]
        cost += p * some
    return cost


def divided(k, a, *, c):
    sums = [0]
    for value in a:
        sums.append(sums[-1] + value)
    n = len(a)
    best = [0] + [10**18] * n
    for _ in range(k):
        after = best[:]
        for j in range(1, n + 1):
            for i in range(j):
                after[j] = min(after[j], max(best[i], sums[j] - sums[i] + c * (j - i - 1)))
        best = after
    return best[n]


def divided_evenly(k, a, *, c):
    size = -(-len(a) // k)
    parts = [a[i : i + size] for i in range(0, len(a), size)]
    return max(sum(part) + c * (len(part) - 1) for part in parts)


def matches(a, *, d, p, q):
    @cache
    def most(rest):
        if len(rest) < 2:
            return 0
        best, first = most(rest[1:]), rest[0]
        for at in range(1, len(rest)):
            if q * rest[at] >= p * first + d:
                best = max(best, 1 + most(rest[1:at] + rest[at + 1 :]))
        return best

    return most(tuple(sorted(a)))


def matches_with_the_nearest(a, *, d, p, q):
    """Gives each element, from the smallest on, the smallest partner that is left."""
    order, found = sorted(a), 0
    gone, at = [False] * len(order), 0
    for i in range(len(order)):
        at = max(at, i + 1)
        while not gone[i] and at < len(order) and q * order[at] < p * order[i] + d:
            at += 1
        if not gone[i] and at < len(order):
            gone[at] = True
            at, found = at + 1, found + 1
    return found

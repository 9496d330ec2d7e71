"""Slow, independent solutions of contest problems on words and numbers, and wrong ideas of them."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from math import gcd


def frequent_prefixes(s, *, least, k):
    found = 0
    for length in range(least, len(s) + 1):
        if sum(s.startswith(s[:length], at) for at in range(len(s))) >= k:
            found += length
    return found


def frequent_prefixes_apart(s, *, least, k):
    """Counts occurrences that do not overlap."""
    return sum(length for length in range(least, len(s) + 1) if s.count(s[:length]) >= k)


def repetitions(s, *, d, k):
    found = 0
    for length in range(1, len(s) + 1):
        for period in range(1, length + 1):
            if length % period == 0 and s[:period] * (length // period) == s[:length]:
                found += period + d * (length // period) if length // period >= k else 0
                break
    return found


def palindromes(s, *, m, r, least):
    found = 0
    for i in range(len(s)):
        for j in range(i + least, len(s) + 1):
            if (j - i) % m == r and s[i:j] == s[i:j][::-1]:
                found += 1
    return found


def subsequences(s, *, modulus, d):
    found = {""}
    for letter in s:
        found |= {word + letter for word in found}
    return sum(word != "" and len(word) % d == 0 for word in found) % modulus


def anagrams(s, t, *, k, w):
    found, wanted = 0, Counter(t)
    for at in range(len(s) - len(t) + 1):
        block = Counter(s[at : at + len(t)])
        letters = set(block) | set(wanted)
        found += sum(abs(block[one] - wanted[one]) * (w if one in "aeiou" else 1) for one in letters) <= 2 * k
    return found


def plain_blocks(k, s, *, least, d):
    found = 0
    for i in range(len(s)):
        count = Counter()
        for j in range(i, len(s)):
            count[s[j]] += 1
            if count[s[j]] > k or len(count) > d:
                break
            found += j - i + 1 >= least
    return found


def substrings(k, s, *, m, r, least):
    words = {s[i:j] for i in range(len(s)) for j in range(i + 1, len(s) + 1)}
    return sum(least <= len(word) <= k and len(word) % m == r for word in words)


def nestings(s, *, neutral, least):
    found = 0
    for i in range(len(s)):
        depth = plain = 0
        for j in range(i, len(s)):
            depth += (s[j] == "a") - (s[j] == "b")
            plain += s[j] not in "ab"
            if depth < 0:
                break
            found += depth == 0 and plain >= neutral and j - i + 1 >= least
    return found


def alignments(s, t, *, opening, each, other):
    best = [[10**12] * (len(t) + 1) for _ in range(len(s) + 1)]
    best[0][0] = 0
    for i in range(len(s) + 1):
        for j in range(len(t) + 1):
            if i and j:
                best[i][j] = best[i - 1][j - 1] + (0 if s[i - 1] == t[j - 1] else other)
            for block in range(1, i + 1):
                best[i][j] = min(best[i][j], best[i - block][j] + opening + each * block)
            for block in range(1, j + 1):
                best[i][j] = min(best[i][j], best[i][j - block] + opening + each * block)
    return best[-1][-1]


def digit_sums(x, *, m, r, gap):
    found = []
    for number in x:
        count = 0
        for one in range(1, number + 1):
            digits = list(map(int, str(one)))
            if sum(digits) % m == r and all(abs(digits[i] - digits[i + 1]) != gap for i in range(len(digits) - 1)):
                count += 1
        found.append(count)
    return found


def patterns(x, *, modulus, letters, run):
    found = []
    for number in x:
        state = [letters] + [0] * (run - 1)
        for _ in range(number - 1):
            state = [(letters - 1) * sum(state) % modulus, *state[:-1]]
        found.append(sum(state) % modulus)
    return found


def stones(x, *, a, b, c):
    moves = {a, a + b, a + b + c}
    values = []
    for heap in range(max(x) + 1):
        options = {values[heap - move] for move in moves if move <= heap}
        values.append(min(set(range(5)) - options))
    found = 0
    for at in range(len(x)):
        for move in moves:
            if move <= x[at]:
                rest = values[x[at] - move]
                for other in range(len(x)):
                    rest ^= values[x[other]] if other != at else 0
                found += rest == 0
    return found


def visits(v, *, p, q):
    best = 10**18
    for order in permutations(v[1:]):
        cost, here = 0, v[0]
        for there in order:
            cost += p * abs(there[0] - here[0]) + q * abs(there[1] - here[1])
            here = there
        best = min(best, cost)
    return best


def visits_to_the_nearest(v, *, p, q):
    here, rest, cost = v[0], list(v[1:]), 0
    while rest:
        far = [p * abs(x - here[0]) + q * abs(y - here[1]) for x, y in rest]
        cost += min(far)
        here = rest.pop(far.index(min(far)))
    return cost


def divisor_pairs(a, *, m, r):
    return sum(gcd(a[i], a[j]) % m == r for i in range(len(a)) for j in range(i))


def quotients(x, *, m, r):
    return [sum(number // j for j in range(1, number + 1) if j % m == r) for number in x]


def sequence_sums(x, *, b, a, modulus):
    found = []
    for number in x:
        term, total = 1 % modulus, 0
        for _ in range(number):
            total, term = (total + term) % modulus, (a * term + b) % modulus
        found.append(total)
    return found


def factor_counts(x, *, width, k):
    found = []
    for begin in x:
        count = 0
        for number in range(begin, begin + width):
            rest, factors, prime = number, 0, 2
            while prime * prime <= rest:
                while rest % prime == 0:
                    rest, factors = rest // prime, factors + 1
                prime += 1
            count += factors + (rest > 1) == k
        found.append(count)
    return found


def circle_games(x, *, k, s):
    found = []
    for size in x:
        children, at = list(range(1, size + 1)), 0
        while len(children) > 1:
            at = (at + k - 1) % len(children)
            children = children[:at] + children[at + 1 :]
        found.append((children[0] + s - 1) % size + 1)
    return found

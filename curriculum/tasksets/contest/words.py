"""Contest problems on words: periods, palindromes, windows, subsequences, substrings and alignments."""

from __future__ import annotations

from bisect import bisect_right

from curriculum.tasksets.contest.composing import Family, contest_taskset
from curriculum.tasksets.contest.structures import WORD, WORD_K, WORDS


def borders(s: str) -> list[int]:
    """Returns the length of the longest proper border of each prefix."""
    found, length = [0] * (len(s) + 1), 0
    for at in range(1, len(s)):
        while length and s[at] != s[length]:
            length = found[length]
        length += s[at] == s[length]
        found[at + 1] = length
    return found


def frequent_prefixes(s: str, *, least: int, k: int) -> int:
    border, times = borders(s), [1] * (len(s) + 1)
    for length in range(len(s), 0, -1):
        times[border[length]] += times[length]
    return sum(length for length in range(least, len(s) + 1) if times[length] >= k)


def repetitions(s: str, *, d: int, k: int) -> int:
    border, found = borders(s), 0
    for length in range(1, len(s) + 1):
        period = length - border[length]
        if length % period == 0 and length // period >= k:
            found += period + d * (length // period)
    return found


def palindromes(s: str, *, m: int, r: int, least: int) -> int:
    good = [0] * (len(s) + 3)
    for length in range(1, len(s) + 1):
        good[length] = (good[length - 2] if length > 1 else 0) + (length >= least and length % m == r)
    text = "|" + "|".join(s) + "|"
    reach, center, right, found = [0] * len(text), 0, 0, 0
    for at in range(len(text)):
        size = min(reach[2 * center - at], right - at) if at < right else 0
        while at - size > 0 and at + size + 1 < len(text) and text[at - size - 1] == text[at + size + 1]:
            size += 1
        reach[at] = size
        found += good[size]
        if at + size > right:
            center, right = at, at + size
    return found


def subsequences(s: str, *, modulus: int, d: int) -> int:
    ways = [1] + [0] * (d - 1)
    ending = {letter: [0] * d for letter in set(s)}
    for letter in s:
        longer, before = [ways[-1], *ways[:-1]], ending[letter]
        ways = [(one + more - less) % modulus for one, more, less in zip(ways, longer, before, strict=True)]
        ending[letter] = longer
    return (ways[0] - 1) % modulus


def anagrams(s: str, t: str, *, k: int, w: int) -> int:
    weight = {letter: w if letter in "aeiou" else 1 for letter in set(s + t)}
    count = dict.fromkeys(weight, 0)
    for letter in t:
        count[letter] -= 1
    difference, found = sum(weight[letter] * abs(number) for letter, number in count.items()), 0
    for at, letter in enumerate(s):
        difference += weight[letter] if count[letter] >= 0 else -weight[letter]
        count[letter] += 1
        if at >= len(t):
            gone = s[at - len(t)]
            difference += weight[gone] if count[gone] <= 0 else -weight[gone]
            count[gone] -= 1
        found += at >= len(t) - 1 and difference <= 2 * k
    return found


def plain_blocks(k: int, s: str, *, least: int, d: int) -> int:
    count = dict.fromkeys(s, 0)
    begin, kinds, found = 0, 0, 0
    for end, letter in enumerate(s):
        kinds += count[letter] == 0
        count[letter] += 1
        while count[letter] > k or kinds > d:
            count[s[begin]] -= 1
            kinds -= count[s[begin]] == 0
            begin += 1
        found += max(0, end - begin + 2 - least)
    return found


def substrings(k: int, s: str, *, m: int, r: int, least: int) -> int:
    edges: list[dict[str, int]] = [{}]
    link, longest, last = [-1], [0], 0
    for letter in s:
        new, at = len(edges), last
        edges.append({})
        longest.append(longest[last] + 1)
        link.append(0)
        while at >= 0 and letter not in edges[at]:
            edges[at][letter] = new
            at = link[at]
        if at >= 0:
            to = edges[at][letter]
            if longest[to] == longest[at] + 1:
                link[new] = to
            else:
                copy = len(edges)
                edges.append(dict(edges[to]))
                longest.append(longest[at] + 1)
                link.append(link[to])
                link[to] = link[new] = copy
                while at >= 0 and edges[at].get(letter) == to:
                    edges[at][letter] = copy
                    at = link[at]
        last = new
    found = 0
    for state in range(1, len(edges)):
        low, high = max(longest[link[state]] + 1, least), min(longest[state], k)
        if low <= high:
            found += (high - r) // m - (low - 1 - r) // m
    return found


def nestings(s: str, *, neutral: int, least: int) -> int:
    stack: list[tuple[list[int], list[int]]] = [([0], [0])]
    seen, found = 0, 0
    for end, letter in enumerate(s, 1):
        if letter == "a":
            stack.append(([end], [seen]))
            continue
        if letter == "b":
            stack.pop()
            if not stack:
                stack.append(([end], [seen]))
                continue
        else:
            seen += 1
        places, counts = stack[-1]
        found += min(bisect_right(places, end - least), bisect_right(counts, seen - neutral))
        places.append(end)
        counts.append(seen)
    return found


def alignments(s: str, t: str, *, opening: int, each: int, other: int) -> int:
    far = 10**12
    size = len(t) + 1
    whole = [0] + [opening + each * at for at in range(1, size)]
    down = [far] * size
    for row, letter in enumerate(s, 1):
        before, whole = whole, [opening + each * row] + [0] * (size - 1)
        down[0], right = whole[0], far
        for at in range(1, size):
            down[at] = min(down[at], before[at] + opening) + each
            right = min(right, whole[at - 1] + opening) + each
            whole[at] = min(before[at - 1] + (other if letter != t[at - 1] else 0), down[at], right)
    return whole[-1]


LETTERS = {"letters": "abcdefghij"}
FAMILIES = {
    "frequent_prefixes": Family(
        structure=WORD,
        asks=(
            "Print the sum of the lengths of all prefixes of s that have at least {least} letters and occur at least "
            "{k} times in s (occurrences may overlap; the prefix itself counts)."
        ),
        solve=frequent_prefixes, uses=(borders,), constants={"least": (1, 40), "k": (2, 12)}, bounds=LETTERS,
        most=80_000, large=("equal", "periodic"), small=40, medium=300,
    ),
    "repetitions": Family(
        structure=WORD,
        asks=(
            "For a prefix of s let w be the shortest word such that the prefix is w written several times, or once, "
            "in a row. If it is written j >= {k} times, the prefix counts the length of w plus {d} * j. Print the "
            "sum over all prefixes."
        ),
        solve=repetitions, uses=(borders,), constants={"d": (0, 90), "k": (2, 6)}, bounds=LETTERS, most=80_000,
        large=("periodic", "equal"), small=12,
    ),
    "palindromes": Family(
        structure=WORD,
        asks=(
            "Count the pairs of positions i <= j for which s_i ... s_j is a palindrome of at least {least} letters "
            "whose length leaves the remainder {r} when divided by {m}."
        ),
        solve=palindromes, constants={"m": (3, 20), "r": (0, "m"), "least": (1, 9)}, bounds=LETTERS, most=40_000,
        large=("equal", "periodic"), small=20, medium=100,
    ),
    "subsequences": Family(
        structure=WORD,
        asks=(
            "Count the different non-empty words that are subsequences of s and whose number of letters is divisible "
            "by {d}. Print the number's remainder when divided by {modulus}."
        ),
        solve=subsequences, constants={"modulus": (10**6, 10**9), "d": (2, 5)}, bounds=LETTERS, most=40_000,
        large=("random", "two"), small=9, medium=14,
    ),
    "loose_anagrams": Family(
        structure=WORDS,
        asks=(
            "Compare each block of |t| consecutive letters of s with t: for each letter of the alphabet take the "
            "difference, without its sign, of its numbers of occurrences in both, times {w} for each of the vowels "
            "a, e, i, o, u, and add these up. Count the blocks (by position) for which the sum is at most 2 * {k}."
        ),
        solve=anagrams, constants={"w": (2, 80), "k": (0, 4)}, bounds={**LETTERS, "part": 2}, most=60_000,
        large=("random", "two"), small=12,
    ),
    "plain_blocks": Family(
        structure=WORD_K,
        asks=(
            "Count the pairs of positions i <= j for which s_i ... s_j has at least {least} letters, no letter more "
            "than k times, and at most {d} different letters."
        ),
        solve=plain_blocks, constants={"least": (1, 40), "d": (2, 9)}, bounds=LETTERS, most=80_000,
        large=("random", "two"), small=40, medium=200,
    ),
    "different_substrings": Family(
        structure=WORD_K,
        asks=(
            "Count the different words that occur in s as consecutive letters, have at least {least} and at most k "
            "letters, and a length that leaves the remainder {r} when divided by {m}."
        ),
        solve=substrings, constants={"m": (2, 12), "r": (0, "m"), "least": (1, 12)}, bounds=LETTERS, most=16_000,
        large=("random", "periodic"), small=30, medium=80,
    ),
    "nestings": Family(
        structure=WORD,
        asks=(
            "The letter a is an opening bracket, b a closing one, and all other letters are neutral. Count the pairs "
            "of positions i <= j for which s_i ... s_j has properly nested brackets, at least {least} letters and at "
            "least {neutral} neutral letters."
        ),
        solve=nestings, constants={"neutral": (0, 8), "least": (1, 40)}, bounds={"letters": "abc"}, most=80_000,
        large=("periodic", "random", "pairs"), small=30, medium=150,
    ),
    "alignments": Family(
        structure=WORDS,
        asks=(
            "Turn s into t. Replacing a letter by another one costs {other}. Deleting a block of j consecutive "
            "letters, or inserting one, costs {opening} + {each} * j. Every letter of s is replaced, deleted or "
            "kept, and no letter is changed twice. Print the lowest total cost."
        ),
        solve=alignments, constants={"opening": (1, 20), "each": (1, 6), "other": (1, 30)},
        bounds={**LETTERS, "part": 1}, most=500, large=("random", "two"),
    ),
}  # fmt: skip
CONTEST_WORDS = contest_taskset("contest_words", 1, FAMILIES)

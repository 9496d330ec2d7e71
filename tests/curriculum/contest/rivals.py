"""Rivals of each family's reference: a slow oracle, a wrong idea and a wrong edge.

An idea or an edge is a function, or replacements in the text of the reference's program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import slow_arrays
import slow_graphs
import slow_words

from curriculum.registry import TASKSETS
from curriculum.tasksets.contest.composing import HEADER, Family, Twist, program_of

CONTESTS = ("contest_arrays", "contest_choices", "contest_words", "contest_trees", "contest_graphs", "contest_numbers")
FAMILIES: dict[str, Family] = {name: one for contest in CONTESTS for name, one in TASKSETS[contest].families.items()}
IMPORTS = "from collections import Counter\nfrom functools import cache\nfrom itertools import permutations\n"
HELPERS = (slow_graphs.neighbours, slow_graphs.path_of, slow_graphs.reached)
PRINTS = "print(*answer) if isinstance(answer, list) else print(answer)"
OVERFLOWS = (
    PRINTS,
    "print(*((one + (1 << 31)) % (1 << 32) - (1 << 31) for one in (answer if isinstance(answer, list) else [answer])))",
)
"""Prints what signed numbers of 32 bits would have held."""

Change = Callable[..., Any] | tuple[str, ...]
"""A function, or texts in turn: an old one, and the new one in its place."""


def slow_of(family: Family) -> Callable[..., Any]:
    name = family.solve.__name__
    return next(getattr(one, name) for one in (slow_arrays, slow_words, slow_graphs) if hasattr(one, name))


def too_slow(family: Family) -> Callable[..., Any]:
    """The oracle, or a more usual slow solution."""
    return slow_arrays.merges_by_sorting if family.solve.__name__ == "merges" else slow_of(family)


def changed(family: Family, constants: dict[str, int], twist: Twist, change: Change) -> str:
    """The program with the change."""
    if callable(change):
        program = program_of(family, constants, twist, change, HELPERS)
        return program.replace(HEADER, HEADER + IMPORTS)
    program = program_of(family, constants, twist)
    for old, new in zip(change[::2], change[1::2], strict=True):
        assert old in program, (family.solve.__name__, old)
        program = program.replace(old, new)
    return program


IDEAS: dict[str, Change] = {
    "weighted_inversions": ("bisect_right(order, (value - q - 1) // p)", "bisect_left(order, value)"),
    "subarray_remainders": ("(sums[end] - r) % m", "(r - sums[end]) % m"),
    "sums_in_a_band": ("for value in sums:", "for value in sorted(sums):"),
    "exact_variety": ("min(begins[1], end", "min(end + 1, end"),
    "extremes_of_subarrays": ("(top - stack[-1]) * (at - top)", "(at - stack[-1] - 1)"),
    "circular_blocks": slow_arrays.circles_around_a_line,
    "heavy_chains": slow_arrays.heavy_chain_of_neighbours,
    "ranks_in_windows": ("(k * p + q - 1) // q", "k * p // q"),
    "near_pairs": ("^ (limit >> bit) ^ 1", "^ (limit >> bit)"),
    "bookings": slow_arrays.bookings_by_worth,
    "crowds": ("sorted(events)", "events"),
    "coverage": ("depth >= k", "depth == k"),
    "lamps": slow_arrays.lamps_as_large_as_possible,
    "jobs": slow_arrays.jobs_by_deadline,
    "loading": slow_arrays.loading_by_density,
    "fair_shares": slow_arrays.shares_one_by_one,
    "merging_piles": ("[0] * (-(len(a) - 1) % (k - 1)) + a", "a[:]", "range(k - 1)", "range(min(k, len(heap)) - 1)"),
    "fair_parts": slow_arrays.divided_evenly,
    "matches": slow_arrays.matches_with_the_nearest,
    "frequent_prefixes": slow_words.frequent_prefixes_apart,
    "repetitions": ("length % period == 0 and ", ""),
    "palindromes": ("found += good[size]", "found += good[size] if at % 2 else 0"),
    "subsequences": ("one + more - less", "one + more"),
    "loose_anagrams": ('w if letter in "aeiou" else 1', "1"),
    "plain_blocks": (" or kinds > d", ""),
    "different_substrings": ("max(longest[link[state]] + 1, least)", "least"),
    "nestings": ("places.append(end)", "pass"),
    "alignments": ("min(down[at], before[at] + opening) + each", "before[at] + opening + each"),
    "best_paths": slow_graphs.best_path_twice_farthest,
    "meetings": ("(n - all_special - plain)", "(n - all_special)"),
    "path_sums": ("2 * min(far[u], far[v])", "min(far[u], far[v])"),
    "pairings": slow_graphs.pairings_by_weight,
    "distances": ("(weight[v] + c) % m", "weight[v] % m"),
    "near_vertices": ("found -= close(reached)", "pass"),
    "lineages": ("+= weight[u] + c", "+= weight[v] + c"),
    "linked_pairs": ("special[b] += special[a]", "pass"),
    "jumps": ("f[(f[v] - 1 + c) % n] - 1", "f[f[v] - 1] - 1"),
    "coupon_routes": ("((w, used), (w // p + q, used + 1))", "((w // p + q if used < c else w, min(c, used + 1)),)"),
    "climbs": slow_graphs.climb_right_and_down,
    "route_counts": ("best[v], ways[v] = after, 0", "best[v] = after"),
    "forests": ("leader[a] = b", "pass"),
    "upward_routes": ("best[u][1 - w % 2]", "max(best[u])"),
    "rings": ("for v in back[u]:", "for v in back[u] + out[u]:"),
    "contradictions": ("(right - left - w) % m != 0", "0"),
    "bridges": ("if at == by:", "if by >= 0 and v in e[by][:2] and v != u:"),
    "carpets": slow_graphs.carpets_of_squares,
    "digit_sums": ("range(at == 0, limit)", "range(limit)"),
    "patterns": ("[letters - 1] * run", "[letters] * run"),
    "stones": ("== whole ^ value_of(heap)", "== 0"),
    "visits": slow_words.visits_to_the_nearest,
    "divisor_pairs": (" - sum(pairs[2 * divisor :: divisor])", ""),
    "quotients": ("(end - r) // m - (begin - 1 - r) // m", "(end - begin + 1) // m"),
    "sequence_sums": ("rest + plus * part + rest", "2 * rest"),
    "factor_counts": ("while rest[at] % prime == 0", "if rest[at] % prime == 0"),
    "circle_games": ("(last[-1] + k) % size", "(last[-1] + k - 1) % size"),
}
EDGES: dict[str, Change] = {
    "weighted_inversions": ("(value - q - 1) // p", "(value - q) // p"),
    "subarray_remainders": ("range(least, len(sums))", "range(least + 1, len(sums))"),
    "sums_in_a_band": ("bisect_left(order, value - s - width)", "bisect_right(order, value - s - width)"),
    "exact_variety": ("(d, d - 1)", "(d + 1, d)"),
    "extremes_of_subarrays": OVERFLOWS,
    "circular_blocks": ("window[0] < end - k", "window[0] <= end - k"),
    "heavy_chains": ("value - g)", "value - g - 1)"),
    "ranks_in_windows": ("end >= k - 1", "end >= k"),
    "near_pairs": ("range(d, len(a))", "range(d + 1, len(a))"),
    "bookings": ("bisect_right(ends", "bisect_left(ends"),
    "crowds": ("(end + c, 1, -worth)", "(end + c, -1, -worth)"),
    "coverage": ("(end + d, -1)", "(end + d + 1, -1)"),
    "lamps": ("<= end - k", "< end - k"),
    "jobs": ("deadline // days", "-(-deadline // days)"),
    "loading": ("window[0][1] < step - count", "window[0][1] <= step - count"),
    "fair_shares": ("range(whole + 1)", "range(1, whole)"),
    "merging_piles": OVERFLOWS,
    "fair_parts": ("load > middle", "load >= middle"),
    "matches": ("half = len(order) // 2", "half = len(order) // 2 - 1"),
    "frequent_prefixes": ("times[length] >= k", "times[length] > k"),
    "repetitions": ("// period >= k", "// period > k"),
    "palindromes": ("at + size + 1 < len(text)", "at + size + 2 < len(text)"),
    "subsequences": ("(ways[0] - 1) % modulus", "ways[0] % modulus"),
    "loose_anagrams": ("difference <= 2 * k", "difference < 2 * k"),
    "plain_blocks": ("+ 2 - least", "+ 1 - least"),
    "different_substrings": ("(low - 1 - r)", "(low - r)"),
    "nestings": ("end - least)", "end - least - 1)"),
    "alignments": ("(other if letter != t[at - 1] else 0)", "other"),
    "best_paths": ("best = max(best, deepest[u] + arm)", "best = max(best, arm)"),
    "meetings": OVERFLOWS,
    "path_sums": ("depth[jump[u]] < depth[jump[v]]", "depth[u] < depth[v]"),
    "pairings": ("used[u] + best,", "used[u],"),
    "distances": ("theirs[r - rest]", "theirs[rest - r]"),
    "near_vertices": ("<= k:", "< k:"),
    "lineages": ("begin[v] + size[v], 1", "begin[v] + size[v] - 1, 1"),
    "linked_pairs": ("bisect_right(steps", "bisect_left(steps"),
    "jumps": ("(f[at] if k & 1 else at + 1)", "(at + 1)"),
    "coupon_routes": ("if after <= c", "if after < c"),
    "climbs": ("cost + 1 +", "cost +"),
    "route_counts": ("near[u].append((v, w + c))", "near[u] += [(v, w + c)] if (v, w + c) not in near[u] else []"),
    "forests": ("abs(u - v)", "(u - v)"),
    "upward_routes": ("+ w - c", "+ w"),
    "rings": ("if ring[u] != ring[v]", ""),
    "contradictions": ("(left - right + w) % m", "(right - left + w) % m"),
    "bridges": ("low[u] > entered[above]", "low[u] >= entered[above]"),
    "carpets": ("q * (at - begin)", "q * (at - begin - 1)"),
    "digit_sums": ("str(number + 1)", "str(number)"),
    "patterns": ("number - 1, 0", "number, 0"),
    "stones": ("if move <= heap", "if move < heap"),
    "visits": ("min(best[-1])", "best[-1][-1]"),
    "divisor_pairs": ("together * (together - 1) // 2", "together * together // 2"),
    "quotients": ("(begin - 1 - r)", "(begin - r)"),
    "sequence_sums": ("length, 1 % modulus, 0", "length, (a + b) % modulus, 0"),
    "factor_counts": ("(rest[at] > 1)", "0"),
    "circle_games": ("+ s) % size + 1", "+ s) % size"),
}

"""Contest problems on trees, and on graphs that grow into them."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from curriculum.tasksets.contest.composing import Family, contest_taskset
from curriculum.tasksets.contest.graphs import leader_of
from curriculum.tasksets.contest.structures import JUMPS, THRESHOLDS, TREE, TREE_QUERIES


def rooted(e: list[tuple[int, int, int]]) -> tuple[list[int], list[int], list[int]]:
    """Returns the vertices from the root 1 outwards, and by vertex its parent and the weight of the edge to it."""
    near: list[list[tuple[int, int]]] = [[] for _ in range(len(e) + 2)]
    for u, v, w in e:
        near[u].append((v, w))
        near[v].append((u, w))
    parent, weight, order = [0] * len(near), [0] * len(near), [1]
    for u in order:
        for v, w in near[u]:
            if v != parent[u]:
                parent[v], weight[v] = u, w
                order.append(v)
    return order, parent, weight


def best_path(e: list[tuple[int, int, int]], *, c: int) -> int:
    order, parent, weight = rooted(e)
    deepest, best = [0] * len(parent), 0
    for v in reversed(order[1:]):
        u, arm = parent[v], deepest[v] + weight[v] - c
        best = max(best, deepest[u] + arm)
        deepest[u] = max(deepest[u], arm)
    return best


def meetings(e: list[tuple[int, int, int]], *, m: int, r: int) -> int:
    order, parent, weight = rooted(e)
    size, special = [1] * len(parent), [int(v % m == r) for v in range(len(parent))]
    for v in reversed(order[1:]):
        size[parent[v]] += size[v]
        special[parent[v]] += special[v]
    n, all_special, found = len(order), special[1], 0
    for v in order[1:]:
        plain = size[v] - special[v]
        found += weight[v] * (special[v] * (n - all_special - plain) + plain * (all_special - special[v]))
    return found


def path_sums(e: list[tuple[int, int, int]], o: list[tuple[int, int]], *, m: int, r: int) -> list[int]:
    order, parent, weight = rooted(e)
    depth, far = [0] * len(parent), [0] * len(parent)
    size, jump = [1] * len(parent), [1] * len(parent)
    for v in order[1:]:
        depth[v] = depth[parent[v]] + 1
        far[v] = far[parent[v]] + (weight[v] if weight[v] % m == r else 0)
    heavy = [0] * len(parent)
    for v in reversed(order[1:]):
        size[parent[v]] += size[v]
        if size[v] > size[heavy[parent[v]]] or not heavy[parent[v]]:
            heavy[parent[v]] = v
    for v in order[1:]:
        jump[v] = jump[parent[v]] if heavy[parent[v]] == v else v
    found = []
    for begin, end in o:
        u, v, sums = begin, end, far[begin] + far[end]
        while jump[u] != jump[v]:
            if depth[jump[u]] < depth[jump[v]]:
                u, v = v, u
            u = parent[jump[u]]
        found.append(sums - 2 * min(far[u], far[v]))
    return found


def pairings(e: list[tuple[int, int, int]], *, fee: int) -> int:
    order, parent, weight = rooted(e)
    free, used = [0] * len(parent), [-(10**18)] * len(parent)
    for v in reversed(order[1:]):
        u, best = parent[v], max(free[v], used[v])
        used[u] = max(used[u] + best, free[u] + free[v] + weight[v] - fee)
        free[u] += best
    return max(free[1], used[1])


def distances(e: list[tuple[int, int, int]], *, m: int, r: int, c: int) -> int:
    order, parent, weight = rooted(e)
    counts = [[1] + [0] * (m - 1) for _ in parent]
    found = 0
    for v in reversed(order[1:]):
        ours, shift = counts[parent[v]], (weight[v] + c) % m
        theirs = counts[v][-shift:] + counts[v][:-shift] if shift else counts[v]
        turned = [theirs[r - rest] for rest in range(m)]
        found += sum(a * b for a, b in zip(ours, turned, strict=True))
        counts[parent[v]] = [a + b for a, b in zip(ours, theirs, strict=True)]
        counts[v] = []
    return found


def near_vertices(e: list[tuple[int, int, int]], *, c: int, k: int) -> int:
    near: list[dict[int, int]] = [{} for _ in range(len(e) + 2)]
    for u, v, w in e:
        near[u][v] = near[v][u] = w + c

    def close(far: list[int]) -> int:
        far.sort()
        low, found = 0, 0
        for high in range(len(far) - 1, -1, -1):
            while low < len(far) and far[low] + far[high] <= k:
                low += 1
            found += min(low, high)
        return found

    found, todo = 0, [1]
    while todo:
        start = todo.pop()
        order, parent = [start], {start: 0}
        for u in order:
            for v in near[u]:
                if v != parent[u]:
                    parent[v] = u
                    order.append(v)
        size = dict.fromkeys(order, 1)
        for v in reversed(order[1:]):
            size[parent[v]] += size[v]
        center = start
        while heavy := [v for v in near[center] if v != parent[center] and 2 * size[v] > len(order)]:
            center = heavy[0]
        whole = [0]
        for begin, w in near[center].items():
            branch, at = [(begin, center, w)], 0
            while at < len(branch):
                u, before, far = branch[at]
                at += 1
                branch += [(v, u, far + more) for v, more in near[u].items() if v != before]
            reached = [far for _, _, far in branch]
            whole += reached
            found -= close(reached)
            todo.append(begin)
            del near[begin][center]
        found += close(whole)
        near[center] = {}
    return found


def lineage(e: list[tuple[int, int, int]], o: list[tuple[int, int]], *, c: int, d: int) -> list[int]:
    order, parent, weight = rooted(e)
    n = len(order)
    size, begin = [1] * len(parent), [0] * len(parent)
    for v in reversed(order[1:]):
        size[parent[v]] += size[v]
    free = [1] * len(parent)
    for v in order[1:]:
        begin[v] = begin[parent[v]] + free[parent[v]]
        free[parent[v]] += size[v]
    tree = [0] * (n + 1)
    found = []
    for u, v in o:
        at = begin[u] + 1
        while at <= n:
            tree[at] += weight[u] + c
            at += at & -at
        sums = 0
        for first, sign in ((begin[v] + size[v], 1), (begin[v], -1)):
            end = first
            while end:
                sums += sign * tree[end]
                end &= end - 1
        found.append(sums // d)
    return found


def linked_pairs(n: int, e: list[tuple[int, int, int]], x: list[int], *, c: int, m: int) -> list[int]:
    leader = list(range(n + 1))
    special = [int(v % m == 0) for v in leader]
    steps, pairs = [], [0]
    for u, v, w in sorted(e, key=lambda row: row[2]):
        a, b = leader_of(leader, u), leader_of(leader, v)
        if a != b:
            steps.append(w + c)
            pairs.append(special[a] * special[b])
            leader[a] = b
            special[b] += special[a]
    sums = list(accumulate(pairs))
    return [sums[bisect_right(steps, one)] for one in x]


def jumps(f: list[int], o: list[tuple[int, int]], *, c: int, d: int) -> list[int]:
    n = len(f)
    step = [f[(f[v] - 1 + c) % n] - 1 for v in range(n)]
    where = [v - 1 for v, _ in o]
    for bit in range(max(k for _, k in o).bit_length()):
        if bit:
            for at, (_, k) in enumerate(o):
                if k >> bit & 1:
                    where[at] = step[where[at]]
            step = [step[to] for to in step]
    return [(f[at] if k & 1 else at + 1) * d for at, (_, k) in zip(where, o, strict=True)]


WEIGHTS = {"low": 1, "high": 10**9}
FAMILIES = {
    "best_paths": Family(
        structure=TREE,
        asks=(
            "A path goes from a vertex along edges, none of them twice. It is worth the sum of the weights of its "
            "edges minus {c} for each edge; a path without edges is worth 0. Print the largest worth."
        ),
        solve=best_path, uses=(rooted,), constants={"c": (0, 600)}, bounds={"low": -1000, "high": 2000}, most=40_000,
        large=("path", "deep"),
    ),
    "meetings": Family(
        structure=TREE,
        asks=(
            "The distance of two vertices is the sum of the weights on the path between them. Add up the distances "
            "of all pairs u, v where u leaves the remainder {r} when divided by {m} and v does not."
        ),
        solve=meetings, uses=(rooted,), constants={"m": (3, 40), "r": (0, "m")}, bounds=WEIGHTS, most=40_000,
        large=("path", "random"), small=9,
    ),
    "path_sums": Family(
        structure=TREE_QUERIES,
        asks=(
            "For each query print the sum of those weights on the path between its two vertices that leave the "
            "remainder {r} when divided by {m}."
        ),
        solve=path_sums, uses=(rooted,), constants={"m": (2, 40), "r": (0, "m")}, bounds=WEIGHTS, most=25_000,
        large=("path", "deep"),
    ),
    "pairings": Family(
        structure=TREE,
        asks=(
            "Choose edges of which no two have a vertex in common. Each chosen edge is worth its weight minus {fee}. "
            "Print the largest total worth; no edge has to be chosen."
        ),
        solve=pairings, uses=(rooted,), constants={"fee": (0, 600)}, bounds={"low": 1, "high": 2000}, most=40_000,
        large=("path", "random"),
    ),
    "distances": Family(
        structure=TREE,
        asks=(
            "The length of the path between two vertices is the sum of w_i + {c} over its edges. Count the pairs of "
            "different vertices (without order) whose path has a length that leaves the remainder {r} when divided "
            "by {m}."
        ),
        solve=distances, uses=(rooted,), constants={"c": (0, 40), "m": (3, 12), "r": (0, "m")}, bounds=WEIGHTS,
        most=30_000, large=("path", "random"),
    ),
    "near_vertices": Family(
        structure=TREE,
        asks=(
            "Count the pairs of different vertices (without order) between which the path is at most {k} long, where "
            "an edge has the length w_i + {c}."
        ),
        solve=near_vertices, constants={"c": (0, 9), "k": (20, 90)}, bounds={"low": 0, "high": 25}, most=14_000,
        large=("path", "random"), small=20,
    ),
    "lineages": Family(
        structure=TREE_QUERIES,
        asks=(
            "Vertex 1 is the root. All vertices have the value 0 at first. A query (u, v) first adds to the value of "
            "u the weight of the edge from u to its parent (0 for the root) plus {c}, and then asks for the sum S of "
            "the values in the subtree of v, with v. For each query print S divided by {d}, rounded down."
        ),
        solve=lineage, uses=(rooted,), constants={"c": (0, 60), "d": (1, 9)}, bounds=WEIGHTS, most=20_000,
        large=("path", "deep"),
    ),
    "linked_pairs": Family(
        structure=THRESHOLDS,
        asks=(
            "For each x_i keep only the edges with w + {c} <= x_i. Count the pairs of different vertices (without "
            "order) that are both divisible by {m} and connected by these edges. Print these counts."
        ),
        solve=linked_pairs, constants={"c": (0, 63), "m": (1, 5)}, bounds={"low": 1, "high": 10**6}, most=25_000,
        large=("chain", "random"), uses=(leader_of,), small=12,
    ),
    "jumps": Family(
        structure=JUMPS,
        asks=(
            "A frog jumps on the fields 1, ..., n. Its first, third, fifth ... jump goes from field v to f_v. Every "
            "other jump goes from field v to the field that is {c} fields after v, where field 1 follows field n, "
            "and from there on, in the same jump, to the f of that field. For each query print the field where it is "
            "after k_i jumps from v_i, times {d}."
        ),
        solve=jumps, constants={"c": (1, 40), "d": (1, 9)}, bounds={"high": 10**15}, most=14_000, large=("cycle",),
    ),
}  # fmt: skip
CONTEST_TREES = contest_taskset("contest_trees", 1, FAMILIES)

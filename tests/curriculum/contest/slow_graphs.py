"""Slow, independent solutions of contest problems on trees, graphs and grids, and wrong ideas of them."""

from __future__ import annotations

from collections import deque


def neighbours(e):
    near = {}
    for u, v, w in e:
        near.setdefault(u, []).append((v, w))
        near.setdefault(v, []).append((u, w))
    return near


def path_of(near, begin, end):
    """Returns the weights on the path of a tree."""
    by, todo = {begin: None}, deque([begin])
    while todo:
        u = todo.popleft()
        for v, w in near.get(u, []):
            if v not in by:
                by[v] = (u, w)
                todo.append(v)
    found = []
    while by[end] is not None:
        end, w = by[end]
        found.append(w)
    return found


def best_path(e, *, c):
    near = neighbours(e)
    n = len(e) + 1
    return max(sum(w - c for w in path_of(near, u, v)) for u in range(1, n + 1) for v in range(1, n + 1))


def best_path_twice_farthest(e, *, c):
    """Looks for the farthest vertex from the farthest vertex, as if no weight were negative."""
    near = neighbours(e)

    def farthest(start):
        worth, todo = {start: 0}, [start]
        for u in todo:
            for v, w in near.get(u, []):
                if v not in worth:
                    worth[v] = worth[u] + w - c
                    todo.append(v)
        return max((one, v) for v, one in worth.items())

    return farthest(farthest(1)[1])[0]


def meetings(e, *, m, r):
    near = neighbours(e)
    n = len(e) + 1
    some = [u for u in range(1, n + 1) if u % m == r]
    return sum(sum(path_of(near, u, v)) for u in some for v in range(1, n + 1) if v % m != r)


def path_sums(e, o, *, m, r):
    near = neighbours(e)
    return [sum(w for w in path_of(near, u, v) if w % m == r) for u, v in o]


def pairings(e, *, fee):
    if not e:
        return 0
    u, v, w = e[0]
    rest = [row for row in e[1:] if not {u, v} & set(row[:2])]
    return max(pairings(e[1:], fee=fee), w - fee + pairings(rest, fee=fee))


def pairings_by_weight(e, *, fee):
    used, found = set(), 0
    for u, v, w in sorted(e, key=lambda row: -row[2]):
        if w > fee and u not in used and v not in used:
            used |= {u, v}
            found += w - fee
    return found


def distances(e, *, m, r, c):
    near = neighbours(e)
    n = len(e) + 1
    return sum(sum(w + c for w in path_of(near, u, v)) % m == r for u in range(1, n + 1) for v in range(1, u))


def near_vertices(e, *, c, k):
    near = neighbours(e)
    n = len(e) + 1
    return sum(sum(w + c for w in path_of(near, u, v)) <= k for u in range(1, n + 1) for v in range(1, u))


def lineage(e, o, *, c, d):
    near = neighbours(e)
    parent, order = {1: (0, 0)}, [1]
    for u in order:
        for v, w in near.get(u, []):
            if v not in parent:
                parent[v] = (u, w)
                order.append(v)
    value, found = dict.fromkeys(order, 0), []
    for u, v in o:
        value[u] += parent[u][1] + c
        below = [v]
        for one in below:
            below += [other for other, _ in near.get(one, []) if other != parent[one][0]]
        found.append(sum(value[one] for one in below) // d)
    return found


def linked_pairs(n, e, x, *, c, m):
    found = []
    for limit in x:
        near = neighbours([row for row in e if row[2] + c <= limit])
        seen, pairs = set(), 0
        for start in range(1, n + 1):
            if start not in seen:
                seen.add(start)
                part = [start]
                for u in part:
                    for v, _ in near.get(u, []):
                        if v not in seen:
                            seen.add(v)
                            part.append(v)
                count = sum(v % m == 0 for v in part)
                pairs += count * (count - 1) // 2
        found.append(pairs)
    return found


def jumps(f, o, *, c, d):
    n, found = len(f), []
    for v, k in o:
        seen, at, where, odd = {}, 0, v, True
        while at < k:
            if (where, odd) in seen:
                round_ = at - seen[where, odd]
                at += (k - at) // round_ * round_
                seen = {}
                if at == k:
                    break
            seen[where, odd] = at
            where = f[where - 1] if odd else f[(where - 1 + c) % n]
            odd, at = not odd, at + 1
        found.append(where * d)
    return found


def coupon_route(n, e, *, q, p, c):
    far = 10**18
    best = [[far] * (c + 1) for _ in range(n + 1)]
    best[1] = [0] * (c + 1)
    changed = True
    while changed:
        changed = False
        for a, b, w in e:
            for u, v in ((a, b), (b, a)):
                for used in range(c + 1):
                    after = best[u][used] + w
                    if used:
                        after = min(after, best[u][used - 1] + w // p + q)
                    if after < best[v][used]:
                        best[v][used] = after
                        changed = True
    return min(best[n]) if min(best[n]) < far else -1


def climb(g, *, up, down):
    n = len(g)
    best = [[10**18] * n for _ in range(n)]
    best[0][0] = 0
    changed = True
    while changed:
        changed = False
        for x in range(n):
            for y in range(n):
                for nx, ny in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
                    if 0 <= nx < n and 0 <= ny < n:
                        rise = ord(g[x][y]) - ord(g[nx][ny])
                        after = best[nx][ny] + 1 + max(up * rise, -down * rise)
                        if after < best[x][y]:
                            best[x][y] = after
                            changed = True
    return best[n - 1][n - 1]


def climb_right_and_down(g, *, up, down):
    n = len(g)
    best = [[0] * n for _ in range(n)]
    for x in range(n):
        for y in range(n):
            costs = []
            for nx, ny in ((x - 1, y), (x, y - 1)):
                if nx >= 0 and ny >= 0:
                    rise = ord(g[x][y]) - ord(g[nx][ny])
                    costs.append(best[nx][ny] + 1 + max(up * rise, -down * rise))
            best[x][y] = min(costs) if costs else 0
    return best[n - 1][n - 1]


def route_count(n, e, *, c, modulus):
    near, costs = neighbours([row for row in e if row[0] != row[1]]), {}
    todo = [(1, 0, (1,))]
    while todo:
        u, cost, seen = todo.pop()
        if u == n:
            costs[cost] = costs.get(cost, 0) + 1
            continue
        todo += [(v, cost + w + c, (*seen, v)) for v, w in near.get(u, []) if v not in seen]
    return costs[min(costs)] % modulus if costs else 0


def forest(n, e, *, q, p):
    label, found = list(range(n + 1)), 0
    for cost, u, v in sorted((w * p + abs(u - v) * q, u, v) for u, v, w in e):
        if label[u] != label[v]:
            old, new = label[u], label[v]
            label = [new if one == old else one for one in label]
            found += cost
    return found


def upward(n, e, *, c):
    best, todo = 0, [(u, None, 0) for u in range(1, n + 1)]
    while todo:
        u, last, worth = todo.pop()
        best = max(best, worth)
        for a, b, w in e:
            if a != b and min(a, b) == u and last != w % 2:
                todo.append((max(a, b), w % 2, worth + w - c))
    return best


def reached(out, start):
    seen, todo = {start}, [start]
    for u in todo:
        for v in out.get(u, []):
            if v not in seen:
                seen.add(v)
                todo.append(v)
    return seen


def rings(n, e, *, p, q):
    out = {}
    for u, v, _ in e:
        out.setdefault(u, []).append(v)
    reach = {u: reached(out, u) for u in range(1, n + 1)}
    parts = {frozenset(v for v in reach[u] if u in reach[v]) for u in range(1, n + 1)}
    entered = {part for part in parts for u, v, _ in e if v in part and u not in part}
    return sum(p * len(part) ** 2 for part in parts) + q * (len(parts) - len(entered))


def contradictions(n, e, *, m):
    near, found = {}, 0
    for u, v, w in e:
        known, todo = {u: 0}, [u]
        for one in todo:
            for other, more in near.get(one, []):
                if other not in known:
                    known[other] = known[one] + more
                    todo.append(other)
        if v in known and (known[v] - w) % m:
            found += 1
        elif v not in known:
            near.setdefault(u, []).append((v, w))
            near.setdefault(v, []).append((u, -w))
    return found


def bridges(n, e, *, c, least):
    found = 0
    for at, (u, v, w) in enumerate(e):
        out = {}
        for other, (a, b, _) in enumerate(e):
            if other != at:
                out.setdefault(a, []).append(b)
                out.setdefault(b, []).append(a)
        one = reached(out, u)
        if v not in one and min(len(one), len(reached(out, v))) >= least:
            found += w + c
    return found


def carpets(g, *, p, q):
    n, best = len(g), 0
    for top in range(n):
        for bottom in range(top, n):
            for left in range(n):
                for right in range(left, n):
                    if all(g[x][y] == "a" for x in range(top, bottom + 1) for y in range(left, right + 1)):
                        best = max(best, p * (bottom - top + 1) + q * (right - left + 1))
    return best


def carpets_of_squares(g, *, p, q):
    n, best = len(g), 0
    side = [[0] * (n + 1) for _ in range(n + 1)]
    for x in range(n):
        for y in range(n):
            if g[x][y] == "a":
                side[x][y] = 1 + min(side[x - 1][y], side[x][y - 1], side[x - 1][y - 1])
                best = max(best, side[x][y])
    return (p + q) * best

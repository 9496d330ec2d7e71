"""Contest problems on graphs and grids: routes, spanning forests, components and rectangles."""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush

from curriculum.tasksets.contest.composing import Family, contest_taskset
from curriculum.tasksets.contest.structures import GRAPH, GRID


def coupon_route(n: int, e: list[tuple[int, int, int]], *, q: int, p: int, c: int) -> int:
    near: list[list[tuple[int, int]]] = [[] for _ in range(n + 1)]
    for u, v, w in e:
        near[u].append((v, w))
        near[v].append((u, w))
    best = {(1, 0): 0}
    heap = [(0, 1, 0)]
    while heap:
        cost, u, used = heappop(heap)
        if u == n:
            return cost
        if cost > best[u, used]:
            continue
        for v, w in near[u]:
            for price, after in ((w, used), (w // p + q, used + 1)):
                if after <= c and cost + price < best.get((v, after), cost + price + 1):
                    best[v, after] = cost + price
                    heappush(heap, (cost + price, v, after))
    return -1


def climb(g: list[str], *, up: int, down: int) -> int:
    n = len(g)
    heights = [[ord(letter) - 97 for letter in row] for row in g]
    best = {(0, 0): 0}
    heap = [(0, 0, 0)]
    while heap:
        cost, x, y = heappop(heap)
        if x == y == n - 1:
            return cost
        if cost > best[x, y]:
            continue
        for nx, ny in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
            if 0 <= nx < n and 0 <= ny < n:
                rise = heights[nx][ny] - heights[x][y]
                after = cost + 1 + (up * rise if rise > 0 else -down * rise)
                if after < best.get((nx, ny), after + 1):
                    best[nx, ny] = after
                    heappush(heap, (after, nx, ny))
    return 0


def route_count(n: int, e: list[tuple[int, int, int]], *, c: int, modulus: int) -> int:
    near: list[list[tuple[int, int]]] = [[] for _ in range(n + 1)]
    for u, v, w in e:
        if u != v:
            near[u].append((v, w + c))
            near[v].append((u, w + c))
    best, ways, done = {1: 0}, defaultdict(int, {1: 1}), set()
    heap = [(0, 1)]
    while heap:
        cost, u = heappop(heap)
        if u in done:
            continue
        done.add(u)
        for v, w in near[u]:
            after = cost + w
            if after < best.get(v, after + 1):
                best[v], ways[v] = after, 0
                heappush(heap, (after, v))
            if after == best[v]:
                ways[v] = (ways[v] + ways[u]) % modulus
    return ways[n] % modulus


def leader_of(leader: list[int], v: int) -> int:
    """Returns the leader of a vertex's part, and shortens the way to it."""
    while leader[v] != v:
        leader[v] = v = leader[leader[v]]
    return v


def forest(n: int, e: list[tuple[int, int, int]], *, q: int, p: int) -> int:
    leader = list(range(n + 1))
    found = 0
    for cost, u, v in sorted((w * p + abs(u - v) * q, u, v) for u, v, w in e):
        a, b = leader_of(leader, u), leader_of(leader, v)
        if a != b:
            leader[a] = b
            found += cost
    return found


def upward(n: int, e: list[tuple[int, int, int]], *, c: int) -> int:
    out: list[list[tuple[int, int]]] = [[] for _ in range(n + 1)]
    for u, v, w in e:
        if u != v:
            out[min(u, v)].append((max(u, v), w))
    best = [[0, 0] for _ in range(n + 1)]
    for u in range(1, n + 1):
        for v, w in out[u]:
            best[v][w % 2] = max(best[v][w % 2], max(0, best[u][1 - w % 2]) + w - c)
    return max(map(max, best))


def rings(n: int, e: list[tuple[int, int, int]], *, p: int, q: int) -> int:
    out: list[list[int]] = [[] for _ in range(n + 1)]
    back: list[list[int]] = [[] for _ in range(n + 1)]
    for u, v, _ in e:
        out[u].append(v)
        back[v].append(u)
    order: list[int] = []
    seen = [False] * (n + 1)
    for start in range(1, n + 1):
        todo = [start]
        while todo:
            u = todo.pop()
            if u < 0:
                order.append(-u)
            elif not seen[u]:
                seen[u] = True
                todo.append(-u)
                todo += [v for v in out[u] if not seen[v]]
    ring, sizes = [0] * (n + 1), [0]
    for start in reversed(order):
        if ring[start]:
            continue
        sizes.append(0)
        todo = [start]
        ring[start] = len(sizes) - 1
        while todo:
            u = todo.pop()
            sizes[-1] += 1
            for v in back[u]:
                if not ring[v]:
                    ring[v] = len(sizes) - 1
                    todo.append(v)
    entered = {ring[v] for u, v, _ in e if ring[u] != ring[v]}
    return sum(p * size * size for size in sizes) + q * (len(sizes) - 1 - len(entered))


def contradictions(n: int, e: list[tuple[int, int, int]], *, m: int) -> int:
    leader, ahead, size = list(range(n + 1)), [0] * (n + 1), [1] * (n + 1)
    found = 0
    for begin, end, w in e:
        u, v, left, right = begin, end, 0, 0
        while leader[u] != u:
            left, u = left + ahead[u], leader[u]
        while leader[v] != v:
            right, v = right + ahead[v], leader[v]
        if u == v:
            found += (right - left - w) % m != 0
        elif size[u] < size[v]:
            leader[u], ahead[u] = v, (right - left - w) % m
            size[v] += size[u]
        else:
            leader[v], ahead[v] = u, (left - right + w) % m
            size[u] += size[v]
    return found


def bridges(n: int, e: list[tuple[int, int, int]], *, c: int, least: int) -> int:
    near: list[list[tuple[int, int]]] = [[] for _ in range(n + 1)]
    for at, (u, v, _) in enumerate(e):
        near[u].append((v, at))
        near[v].append((u, at))
    found, entered, low, size = 0, [0] * (n + 1), [0] * (n + 1), [1] * (n + 1)
    clock = 0
    for start in range(1, n + 1):
        if entered[start]:
            continue
        clock += 1
        entered[start] = low[start] = clock
        todo, cut = [(start, -1, iter(near[start]))], []
        while todo:
            u, by, rest = todo[-1]
            for v, at in rest:
                if at == by:
                    continue
                if entered[v]:
                    low[u] = min(low[u], entered[v])
                    continue
                clock += 1
                entered[v] = low[v] = clock
                todo.append((v, at, iter(near[v])))
                break
            else:
                todo.pop()
                if todo:
                    above = todo[-1][0]
                    low[above] = min(low[above], low[u])
                    size[above] += size[u]
                    if low[u] > entered[above]:
                        cut.append((size[u], e[by][2] + c))
        found += sum(worth for below, worth in cut if min(below, size[start] - below) >= least)
    return found


def carpets(g: list[str], *, p: int, q: int) -> int:
    n = len(g)
    heights, best = [0] * (n + 1), 0
    for row in g:
        stack: list[tuple[int, int]] = []
        for at in range(n + 1):
            heights[at] = heights[at] + 1 if at < n and row[at] == "a" else 0
            begin = at
            while stack and stack[-1][1] >= heights[at]:
                begin, height = stack.pop()
                if height:
                    best = max(best, p * height + q * (at - begin))
            stack.append((begin, heights[at]))
    return best


WEIGHTS = {"low": 1, "high": 10**9}
FAMILIES = {
    "coupon_routes": Family(
        structure=GRAPH,
        asks=(
            "Roads lead in both directions between u_i and v_i and cost w_i. On at most {c} roads of a route a "
            "coupon may be used: the road then costs w_i / {p}, rounded down, plus {q}. Print the lowest cost of a "
            "route from 1 to n, or -1 if there is none."
        ),
        solve=coupon_route, constants={"q": (0, 30), "p": (2, 9), "c": (1, 3)}, bounds=WEIGHTS, most=7_000,
        large=("chain", "ladder"),
    ),
    "climbs": Family(
        structure=GRID,
        asks=(
            "The letter of a field is its height: a is 0, b is 1, and so on. A step goes to a field beside, above or "
            "below; it costs 1, plus {up} for each unit of height that it goes up, or {down} for each that it goes "
            "down. Print the lowest cost of a way from the first field of the first line to the last field of the "
            "last line."
        ),
        solve=climb, constants={"up": (1, 30), "down": (0, 20)}, bounds={"letters": "abcdefghijklmnopqrstuvwxyz"},
        most=75, large=("snake", "random"), small=5, medium=10,
    ),
    "route_counts": Family(
        structure=GRAPH,
        asks=(
            "Roads lead in both directions between u_i and v_i and cost w_i + {c}. Count the routes from 1 to n with "
            "the lowest cost; routes that use different roads are different, roads from a place to itself are never "
            "used. Print the number's remainder when divided by {modulus}, 0 if no route exists."
        ),
        solve=route_count, constants={"c": (0, 40), "modulus": (10**6, 10**9)}, bounds={"low": 1, "high": 4},
        most=15_000, large=("ladder", "chain"),
    ),
    "forests": Family(
        structure=GRAPH,
        asks=(
            "A cable between u_i and v_i costs {p} * w_i + {q} * |u_i - v_i|. Choose cables so that all pairs that "
            "can be connected by the given cables are connected. Print the lowest total cost."
        ),
        solve=forest, constants={"q": (0, 30), "p": (1, 20)}, bounds=WEIGHTS, most=25_000, large=("chain", "random"),
        uses=(leader_of,),
    ),
    "upward_routes": Family(
        structure=GRAPH,
        asks=(
            "A tour starts anywhere and uses only roads from a smaller to a larger number (a road between u_i and "
            "v_i with u_i = v_i is never used). No two roads one after the other both have an even w_i, or both an "
            "odd one. A tour is worth the sum of w_i - {c} over its roads; a tour without roads is worth 0. Print "
            "the largest worth."
        ),
        solve=upward, constants={"c": (0, 600)}, bounds={"low": 1, "high": 2000}, most=25_000,
        large=("chain", "ladder"),
    ),
    "rings": Family(
        structure=GRAPH,
        asks=(
            "A one-way road leads from u_i to v_i (w_i does not matter). Two places belong to the same ring if each "
            "can be reached from the other; a place alone is a ring too. Print {p} times the sum of the squares of "
            "the rings' sizes, plus {q} times the number of rings that no road from another ring enters."
        ),
        solve=rings, constants={"p": (1, 30), "q": (1, 30)}, bounds={"low": 1, "high": 9}, most=14_000,
        large=("chain", "random"),
    ),
    "contradictions": Family(
        structure=GRAPH,
        asks=(
            "There are unknown numbers z_1, ..., z_n. Statement i says that z_(v_i) - z_(u_i) leaves the same "
            "remainder as w_i when divided by {m}. Take the statements in the given order. One that cannot be true "
            "together with those accepted before is rejected, any other is accepted. Print how many are rejected."
        ),
        solve=contradictions, constants={"m": (2, 600)}, bounds=WEIGHTS, most=25_000, large=("chain", "ladder"),
    ),
    "bridges": Family(
        structure=GRAPH,
        asks=(
            "Roads lead in both directions between u_i and v_i. A road is vital if without it the places u_i and v_i "
            "are not connected any more, and then each of them is still connected to at least {least} places, itself "
            "included. Print the sum of w_i + {c} over all vital roads."
        ),
        solve=bridges, constants={"c": (0, 300), "least": (1, 4)}, bounds=WEIGHTS, most=14_000,
        large=("chain", "random"),
    ),
    "carpets": Family(
        structure=GRID,
        asks=(
            "Choose a rectangle of fields that all have the letter a. With h lines and b columns it is worth {p} * h "
            "+ {q} * b. Print the largest worth, 0 if the letter a does not occur."
        ),
        solve=carpets, constants={"p": (1, 30), "q": (1, 30)}, bounds={"letters": "abc"}, most=450, large=("random",),
        small=6, medium=14,
    ),
}  # fmt: skip
CONTEST_GRAPHS = contest_taskset("contest_graphs", 1, FAMILIES)

"""Writes snippets that know re-entrancy: what changes while it is read, and what is read while it is made.

What always holds: the same seed gives the same snippets, whatever ran before. Nothing here knows what the shared tier
allows. A third of the shapes are the hostile ones (generators, callbacks, iterators that outlive their statement), the
others mutate lists and dictionaries within comprehensions, loops, calls and formats.
"""

# ruff: noqa: E501 - tables of shapes

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Final

BEGINNING: Final = "a = [1, 2]\nb = {1: 2, 3: 4}\nc = 'cd'\nx = 5\ng = [[3], a]\nt = [4, [5]]\nimport math, cmath"
"""What each history begins with: names of the kinds that the shapes below expect of them."""

NUMBERS: Final = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "7",
    "x",
    "True",
    "1.5",
    "2j",
    "len(a)",
    "len(b)",
    "len(c)",
    "2**70",
    "-(3**50)",
    "10**400",
    "math.pi",
    "math.inf",
    "x%3",
]
TEXTS: Final = ["c", "'ab'", "''", "'é'", "str(x)", "c[::-1]", "(c*3)", "f'{x!r:>{x%9}}'", "f'{a}{c!s}'", "c.upper()"]
LISTS: Final = ["a", "a", "g", "t", "[x]", "[]", "[3, 1, 2]", "a[:]", "g[0]", "[a, a]", "list(b)", "[*a, *t]", "a[1:]"]
MAPS: Final = ["b", "b", "{}", "{x: a}", "{**b}", "b.copy()", "{'k': g}"]
NAMES: Final = ["a", "t", "g"]
GROWTH: Final = """L.append(V);L.insert(N, L);L.insert(0, V);L.extend(L);L.extend(V for _ in L);L.extend(S);L.append(L)
L.extend([V, V, V]);L.extend(b);L.extend(map(str, L));L.extend(zip(L, L));L.extend(b.values());L.append(n)
L.extend(n for n in L);L.extend([L, [L]])""".replace("\n", ";").split(";")
CHANGES: Final = (
    """L.clear();L.pop();L.pop(0);L.pop(N);L.reverse();L.sort();L.remove(n);L.clear();b.clear();b.pop(n, 0)
b.popitem();b.update(M);b.setdefault(n, L);b.update({n: V});L.copy().clear();b.setdefault(V, [n]).append(n);b.update(b)
L.sort(reverse=True);b.pop(V, L);b.setdefault(str(n), []).extend(L[:9])""".replace("\n", ";").split(";")
    + [f"len({name}) < 25 and {shape.replace('L', name, 1)}" for shape in GROWTH for name in NAMES]
)
"""`L` is a list's name, `V` any value, `N` a number, `S` a text, `M` a dictionary; `n` runs through something."""
WITHOUT_END: Final = 0.02
"""How often a list grows without a bound, which may run until its time is over."""
READERS: Final = """[Y for n in I];list(Y for n in I);tuple(Y for n in I);sum(Y for n in I);sorted(Y for n in I)
max(Y for n in I);min(Y for n in I);any(Y for n in I);all(Y for n in I);c.join(str(Y) for n in I);math.fsum(Y for n in I)
math.prod(Y for n in I);{n: Y for n in K};[Y for n in I for m in I if m];[[Y for m in I] for n in I];(0 in [Y for n in I])
list(zip(I, [Y for n in I]));[*(Y for n in I), *I];print(*[Y for n in I], sep=c);{str(Y): V for n in I}
sum([Y for n in I], []);max([Y for n in I], I);list(map(str, (Y for n in I)));[n for n in [Y for n in I]]
dict(zip(I, [Y for n in K]));any(any(Y for m in I) for n in I);all(sum(Y for m in I) for n in I)
sum(1 for n in I if Y);tuple(enumerate(Y for n in I));str([Y for n in I]);f'{[Y for n in I]!r:.{x}}'
len([Y for n in I if not any(Y for n in I)]);list(n for n in I if (t := [n]));[(t := n, Y) for n in I]""".replace(
    "\n", ";"
).split(";")
"""`Y` is what is done at each step, `I` what is run through, `K` likewise with keys only."""
STEPS: Final = """C or n;C or n;(C, n);C;V;n;L;(n, L);len(L);[C, L];str(L);n if C else L;L and C;(C or L)[0];L == [n];n in L
repr(L);(C or 1) and n;str(n) + str(C);L + [n];[C] * 3;max(L + [n]);sum([1, 2])""".replace("\n", ";").split(";")
RUNS: Final = """L;L;L;L[:];range(4);range(x % 9);b;b.items();list(b.values());b.values();b.keys();c;zip(L, L);enumerate(L)
map(str, L);zip(L, b, c);[L, L];(L, c, b);map(len, g);enumerate(zip(L, c));L + L;[*L, *b];list(L);sorted(c);tuple(L)
map(list, g);map(sum, g);zip(*g);[n for n in L];(n for n in L);map(sorted, g);map(max, g, g)""".replace(
    "\n", ";"
).split(";")
WHOLES: Final = """X;print(X);t = X;a = list(I);L += X;L *= 2;L[N:N] = X;L[:] = X;L[N:] = L;del L[N:N];x = len(L);L[0] = X
x, *a = L;[x, *t] = [1, *L];a, t = t, a;g = [a, [X]];b[N] = X;del b[N];L[N], L[0] = X, X;del L[:];C;n = 1
C;t = [X, X];assert X;x = x + 1;a = [n for n in range(9)];print(f'{L}', S);L = [*L[:9]];t = (X, X);b = {n: L for n in K}
x = divmod(2**300, 7**99)[N % 2];x = pow(3, 10**30, 2**64);x = int('7' * 60) % 97;print(str(2**900)[:9]);t = [S.split(c)]
x = round(1234567.891, -3);print(S.partition(c), S.ljust(9));x = sum(map(ord, S));a = list(map(ord, S));x = min(L, default=0)
t = sorted(L, reverse=True);print(L == L, L < [L], L in g);x = math.gcd(*a);x = (V).real;x = hash;b = dict(zip(L, I))
x = len(L);a = [1, 2, 3];b = {1: a, 2: 3};g = [[1], a, t];c = 'xy';t = [a] * 3;a = a[:5];g = g[:4];g[0] = a""".replace(
    "\n", ";"
).split(";")
LOOPS: Final = [
    "for n in I:\n    C\n    if len(L) > 30: break",
    "for n in I:\n    if len(L) < 20: L.append(V)\n    else: C\n    if len(g) > 30: break",
    "for n, m in zip(L, I):\n    C\n    L[:] = L[:9]",
    "while L and x < 40:\n    x += 1\n    C",
    "for L[0] in I:\n    C\n    L.append(n)\n    L = L[:9]",
    "for n in I:\n    for m in I:\n        C\n    a = a[:9]\n    t = L[:9]",
    "for n, v in list(b.items()):\n    C\n    b[n] = L",
    "if X:\n    C\nelse:\n    t = X",
    "n = 0\nwhile n < 5:\n    n += 1\n    X\n    if C: continue",
    "for n in I:\n    X\n    C",
]
HOSTILE: Final = [
    "def f(n):\n    C\n    return L\nlist(map(f, L))",
    "def f():\n    for n in I:\n        C\n        yield n\nt = f()",
    "class A:\n    def __eq__(self, o): return C\nA() in L",
    "class A:\n    def __iter__(self): return iter(t)\n    def __len__(self): return C or 1\nt = [*A()]",
    "try:\n    C\nexcept Exception: pass",
    "t = itertools.accumulate((H for m in I), list.extend, initial=[n, V])\nall(t)",
    "t = itertools.accumulate((H for m in range(4)), F, initial=L[:])\n[0 for n, *m in t]",
    "t = itertools.accumulate((H for m in L), F)\nX\nV in t",
    "set(L) | {1}",
    "t = b.keys() | t",
    *"""t = itertools.accumulate((H for m in I), F, initial=X);t = itertools.accumulate((H for m in I), F)
t = itertools.accumulate([H, H, L], F, initial=[n, X]);t = itertools.chain(L, (H for n in I));t = (Y for n in t)
t = zip(t, (H for n in I));t = map(F, g, (H for n in I));all(t);all(t);V in t;[0 for n, *m in t];t = iter(L);next(t)
list(t);a.extend(t);a[:] = t;t = enumerate(t);b.update(t);x = max(t);t = map(lambda n: C, L);t = itertools.tee(t)
sorted(L, key=lambda n: C or 1);a.sort(key=lambda n: a.clear() or 1);t = filter(None, t);t = iter(lambda: C, 1)
t = reversed(L);[f(n) for n in I];t = itertools.groupby(L, F);t = itertools.product(t, I);max(L, key=lambda n: C)
functools.reduce(F, L);list(map(a.append, t));'{0.__class__}'.format(a);t = a.append;t = b.items();t = dict.fromkeys(t)
a.__class__;t = itertools.cycle(t);t.send(n);t = itertools.zip_longest(t, t);t = list.extend;t(a, (Y for n in I))
t = itertools.starmap(F, zip(g, t));a[::2] = (Y for n in I);t = [a.pop];t = b.values();str.join(c, t);t = bytes(t)
t = itertools.islice(t, 3);print(1, file=t);isinstance(a, t);type(a);exec(c);L[:] = (Y for n in I)""".replace(
        "\n", ";"
    ).split(";"),
]
HELD: Final = """(n for n in t);(n for n in t);(C or n for n in t);t;L;(n for n in L);(next(t) for n in I);zip(t, L);map(str, t)
(all(t) for n in I);(V in t for n in I);[n for n in t]""".replace("\n", ";").split(";")
"""`H`: mostly something that goes on with `t`, which is being read."""
FUNCTIONS: Final = [
    "list.extend",
    "list.extend",
    "list.append",
    "list.__add__",
    "list.__iadd__",
    "max",
    "lambda_m,n:C",
    "zip",
    "list.insert",
    "dict.update",
]

Draw = Callable[[], float]


class Writer:
    """Draws snippets from one seed."""

    def __init__(self, seed: str, *, hostile: float = 0.35) -> None:
        self._draw: Draw = random.Random(seed).random
        self._hostile = hostile
        self._of = {
            "V": self._value, "N": lambda _: self._one(NUMBERS), "S": lambda _: self._one(TEXTS),
            "L": lambda _: self._one(NAMES), "M": lambda _: self._one(MAPS), "C": self._change,
            "Y": lambda d: self._fill(STEPS, d), "I": lambda d: self._fill(RUNS, d), "X": self._reading,
            "K": lambda _: self._one(("c", "range(4)", "b", "map(str, a)", "'abc'")),
            "H": lambda d: self._fill(HELD, d), "F": lambda d: self._fill(FUNCTIONS, d).replace("_", " ", 1),
        }  # fmt: skip

    def snippet(self) -> str:
        """Gives one or two statements."""
        return "\n".join(self._statement() for _ in range(1 + int(self._draw() * 2)))

    def _statement(self) -> str:
        draw = self._draw()
        if draw < self._hostile / 2:  # a snippet has two statements
            return self._fill(HOSTILE, 2)
        if draw > 0.85:
            return self._fill(LOOPS, 2)
        return self._fill(WHOLES, 2) if draw > 0.4 else self._reading(2)

    def _one(self, of: tuple[str, ...] | list[str]) -> str:
        return of[int(self._draw() * len(of))]

    def _value(self, _depth: int) -> str:
        return self._one((NUMBERS, TEXTS, LISTS, MAPS)[int(self._draw() * 4)])  # type: ignore[arg-type]

    def _change(self, depth: int) -> str:
        return self._fill(GROWTH if self._draw() < WITHOUT_END else CHANGES, depth)

    def _reading(self, depth: int) -> str:
        return self._fill(READERS, depth) if depth > 0 and self._draw() < 0.7 else self._value(0)

    def _fill(self, shapes: list[str], depth: int) -> str:
        """Puts something in the place of each capital letter that stands alone."""
        parts = PARTS[self._one(shapes)]
        if len(parts) == 1:
            return parts[0]
        if depth < 0:
            return "".join(part if number % 2 == 0 else SMALLEST[part] for number, part in enumerate(parts))
        return "".join(part if number % 2 == 0 else self._of[part](depth - 1) for number, part in enumerate(parts))


SMALLEST: Final = dict(
    zip("VNSLMCYIXKHF", ["n", "x", "c", "a", "b", "a.pop()", "n", "a", "a", "b", "t", "max"], strict=True)
)


def _parts(shape: str) -> list[str]:
    """Cuts a shape: text and letters take turns."""
    return re.split(r"(?<![A-Za-z_'])([VNSLMCYIXKHF])(?![A-Za-z_'])", shape)


PARTS: Final = {
    shape: _parts(shape) for shapes in (GROWTH, CHANGES, READERS, STEPS, RUNS, WHOLES, LOOPS, HOSTILE, HELD, FUNCTIONS)
    for shape in shapes
}  # fmt: skip

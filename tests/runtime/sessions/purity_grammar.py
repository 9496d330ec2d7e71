"""Programs that a calculator might be asked for, and all that might be smuggled in among them."""

from __future__ import annotations

from hypothesis import strategies as st


def words(text: str) -> st.SearchStrategy[str]:
    return st.sampled_from(text.split())


NAMES = words("a b c f g x print len list math str sum sorted map")
ATOMS = words("0 1 2 3 -1 7 True None '' 'ab' b'c' 1.5 2j [] {} () ... 'é' {1,2} [3,1,2] {'k':1}")
METHODS = words(
    "append extend pop insert remove clear copy sort reverse items keys values get update setdefault popitem add"
    " discard union split join replace upper count index find strip startswith partition conjugate real imag bit_length"
    " is_integer as_integer_ratio numerator symmetric_difference from_iterable gcd sqrt pi chain product count"
    " repeat permutations accumulate __class__ __dict__ format gi_frame f_globals mro __globals__ encode"
)
OPERATORS = words("+ - * // % @ & | ^ and or == < in is")
HOSTILE = st.sampled_from(
    """print.__self__;__builtins__;().__class__;(lambda: 0).__globals__;(n for n in [1]);[n for n in (x := [1])]
iter(f, 1);(y for y in (lambda: [1])());map(lambda n: a.append(n), [1, 2])
sorted([3, 1], key=lambda n: a.append(n) or n);(yield);max([1, 2], key=print);filter(None, a);zip(a, b, a)
enumerate(a);reversed(a);print(a, end=b, sep=c);print(1, file=a);f'{a!r:>{x}}';f'{a.real}';{**a, **b};[*a, *b]
a[::2];a[0:1];dict.fromkeys(a, b);str.upper(a);list(map(f, a));await a;sum(map(f, a), a);type(a)
isinstance(a, (list, int));divmod(a, b);pow(a, b, 7);abs(a);bytes(a);range(3);print;min(a, default=b)
any(a.append(n) for n in a);all([a.clear()]);sorted(a, key=f, reverse=True);frozenset(a);set(a);tuple(a)
complex(1, 2);next(a);math.pi;math.__dict__;cmath.sqrt(-1);itertools.count();itertools.product(a, b)
itertools.accumulate(a, f);itertools.starmap(f, [(1,)]);itertools.takewhile(f, a);itertools.compress(a, b)
itertools.zip_longest(a, b);ArithmeticError;AssertionError(a);map(f, map(f, a))
(n async for n in a);f(*a, **b);sum(a.append(n) or n for n in a);list((a.clear(), n) for n in a)
','.join(str(a.pop()) for n in a);sorted((a.insert(0, n), n) for n in g);max(zip(a, reversed(a)))
[*map(int, a)];any(a.extend(g) for n in zip(a, g));tuple((b.pop(n), n) for n in b);list(map(sorted, g))
min((a := [n]) for n in g);sum((g for n in a), [g]);all(b.setdefault(n, a) for n in map(str, a))
[a.sort() for n in enumerate(a)];sum(g, []);list(zip(*g));print(*map(str, a));math.nan;float('nan')
list(n.append(g) for n in g);sum(n if a.remove(n) else 1 for n in reversed(a))""".replace("\n", ";").split(";")
)


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(inner, OPERATORS, inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, METHODS).map(lambda t: f"{t[0]}.{t[1]}"),
        st.tuples(inner, METHODS, inner).map(lambda t: f"{t[0]}.{t[1]}({t[2]})"),
        st.tuples(NAMES, inner).map(lambda t: f"{t[0]}({t[1]})"),
        st.tuples(NAMES, inner, NAMES, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]}={t[3]})"),
        pairs.map(lambda t: f"{t[0]}[{t[1]}]"),
        pairs.map(lambda t: f"[{t[0]}, {t[1]}]"),
        pairs.map(lambda t: f"{{{t[0]}: {t[1]}}}"),
        st.tuples(NAMES, inner).map(lambda t: f"({t[0]} := {t[1]})"),
        st.tuples(NAMES, inner, inner).map(lambda t: f"[{t[1]} for {t[0]} in {t[2]}]"),
        st.tuples(NAMES, inner, inner).map(lambda t: f"({t[1]} for {t[0]} in {t[2]} if {t[0]})"),
        st.tuples(NAMES, inner).map(lambda t: f"(lambda {t[0]}=a: {t[1]})"),
        inner.map(lambda text: f"f'{{{text}}}'" if "'" not in text else f"({text},)"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
    )


EXPRESSIONS = st.recursive(st.one_of(NAMES, ATOMS, HOSTILE), grown, max_leaves=5)
TARGETS = st.one_of(
    NAMES,
    st.tuples(NAMES, EXPRESSIONS).map(lambda t: f"{t[0]}[{t[1]}]"),
    NAMES.map(lambda name: f"{name}[::2]"),
    st.tuples(NAMES, NAMES).map(lambda t: f"{t[0]}, *{t[1]}"),
    st.tuples(NAMES, METHODS).map(lambda t: f"{t[0]}.{t[1]}"),
)
SIMPLE = st.one_of(
    EXPRESSIONS.map(lambda text: f"print({text})"),
    st.tuples(TARGETS, EXPRESSIONS).map(lambda t: f"{t[0]} = {t[1]}"),
    st.tuples(NAMES, EXPRESSIONS).map(lambda t: f"{t[0]} += {t[1]}"),
    TARGETS.map(lambda text: f"del {text}"),
    EXPRESSIONS.map(lambda text: f"assert {text}"),
    EXPRESSIONS,
    st.sampled_from(
        [
            "import math",
            "import itertools as print",
            "from math import gcd as len, pi",
            "from itertools import chain as list",
            "import cmath, math as sum",
            "global a",
            "from math import *",
            "import os",
            "raise a",
            "pass",
        ]
    ),
)


def block(lines: list[str]) -> str:
    return "\n".join("    " + line.replace("\n", "\n    ") for line in lines)


STATEMENTS = st.one_of(
    SIMPLE,
    st.tuples(TARGETS, EXPRESSIONS, st.lists(SIMPLE, min_size=1, max_size=2)).map(
        lambda t: f"for {t[0]} in {t[1]}:\n{block(t[2])}"
    ),
    st.tuples(NAMES, NAMES, EXPRESSIONS, st.lists(SIMPLE, min_size=1, max_size=2), EXPRESSIONS).map(
        lambda t: f"def {t[0]}({t[1]}={t[2]}, *b, **c):\n{block([*t[3], 'return ' + t[4]])}"
    ),
    st.tuples(EXPRESSIONS, st.lists(SIMPLE, min_size=1, max_size=2), st.lists(SIMPLE, min_size=1, max_size=1)).map(
        lambda t: f"if {t[0]}:\n{block(t[1])}\nelse:\n{block(t[2])}"
    ),
    st.tuples(NAMES, st.lists(SIMPLE, min_size=1, max_size=2)).map(
        lambda t: f"{t[0]} = 3\nwhile {t[0]}:\n{block([*t[1], t[0] + ' -= 1'])}"
    ),
)
SNIPPETS = st.lists(STATEMENTS, min_size=1, max_size=3).map("\n".join)

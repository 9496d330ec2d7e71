"""The allow-list lets calculators share an interpreter and sends everything else to a place of its own."""

from __future__ import annotations

import ast
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS
from tables import table

from runtime.sandbox import Tier
from runtime.sessions.purity import Need, classify

CALCULATIONS = [
    "import math\nprint(math.gcd(12,18))",
    "print(gcd(1,2))",
    "print(sum(map(int,str(123))))",
    "print(sum(12%d==0 for d in range(1,13)))",
    "print(bin(5).count('1'))",
    "print(pow(2,3,5))",
    "from math import gcd, comb as choose\nprint(gcd(4, 6), choose(5, 2))",
    "total = 0\nfor i in range(10):\n    total += i\nprint(total)",
    "xs = sorted([3, 1, 2], reverse=True)\nprint(*xs, sep=', ', end='')",
    "d = {}\nfor c in 'hello':\n    d[c] = d.get(c, 0) + 1\nprint(*d.items(), sorted(d.keys()))",
    "d = {1: 2}\nprint(2 in d.values(), len(d.items()))",
    "print(f'{1/3:.3f} {2!r}')",
    "while (n := 3) < 2:\n    pass\nprint(n if n is not None else 0)",
    "assert 1 + 1 == 2",
    "sieve = [True] * 50\nfor i in range(2, 50):\n    for j in range(2 * i, 50, i):\n        sieve[j] = False",
    "print([p for p in range(2, 50) if all(p % q for q in range(2, p))][::-1])",
    "a, b = map(int, '3 4'.split())\nprint(*map(str, [a, b]))",
    "print(max((a * b, a) for a, b in zip([1, 2], [3, 4][::-1]))[0])",
    "for place, (x, y) in enumerate(zip([1], [2]), start=1):\n    print(place, x, y)",
    "print(', '.join(str(x) for x in [1, 2]), list(zip(*[[1, 2], [3, 4]])), dict(zip('ab', [1, 2])))",
    "import math\nprint(math.prod(x for x in [1, 2]), math.fsum(x / 2 for x in [1, 2]))",
    "import cmath\nprint((1 + 2j).real, cmath.sqrt(-1).imag, (3).numerator)",
    "",
]

TRICKS = [
    "import math\nprint(math.__loader__)",
    "import cmath\nprint(cmath.__spec__)",
    "_hidden = 1",
    "print(_hidden)",
    "def f(n):\n    return n",
    "f = lambda: 0",
    "d = {1: 2}\nfor x in reversed(d): d.clear()",
    "sum(reversed(d), [d.clear(), 1][1])",
    "print(d.keys() | [1])",
    "v = d.values()",
    "print(d.items())",
    "a.extend(d.values())",
    "d.keys() == d.keys()",
    "f(d.items())",
    "print({1, 2})",
    "{x for x in [1]}",
    "set([1])",
    "b'x'",
    "...",
    "g = (x for x in [1])",
    "for x in (y for y in [1]): pass",
    "a.extend(x for x in [1])",
    "a.extend(zip(a, a))",
    "sum((g := (x for x in [1])))",
    "max(1, (x for x in [1]))",
    "zip(x for x in [1])",
    "list(zip((x for x in [1])))",
    "z = zip([1], [2])",
    "print(zip([1], [2]))",
    "(z := zip([1], [2]))",
    "[zip([1], [2])]",
    "x.y = zip([1], [2])",
    "a[0] = map(int, '12')",
    "a = b = map(int, '12')",
    "a += reversed(a)",
    "m = a.append",
    "list(map(a.append, [1]))",
    "list(map(g, [1]))",
    "list(map(print, [1]))",
    "list(map(map, [1]))",
    "list(map((h := len), [1]))",
    "import math\nlist(map(math.sqrt, [1]))",
    "sorted([1], key=len)",
    "a.sort(key=len)",
    "max([1], key=abs)",
    "filter(None, [1])",
    "next(x)",
    "iter([1])",
    "isinstance(1, int)",
    "p = print",
    "x = len",
    "print(len)",
    "len = 3",
    "for sum in [1]: pass",
    "[0 for print in [1]]",
    "(int := 3)",
    "del list",
    "from math import gcd as list",
    "from math import pow",
    "import math as m",
    "x = math",
    "math = 1",
    "f(**{'a': 1})",
    "dict(a=1)",
    "a[::2] = [1]",
    "a[::2] += []",
    "del a[::2]",
    "from itertools import accumulate",
    "import itertools",
    "x.union(y)",
    "(lambda a: a)(1)",
    "a[0](1)",
    "().__class__",
    "x = (1).__class__.__base__.__subclasses__()",
    "import math\nmath.__dict__['pi'] = 3",
    "import math\nmath.pi = 3",
    "import math\ndel math.pi",
    "from math import *",
    "from math import __loader__",
    "import os",
    "import math as os, os as math",
    "from . import math",
    "import importlib",
    "from itertools import chain as __builtins__",
    "print.__self__",
    "print(1, file=x)",
    "print(1, flush=True)",
    "print(*[1], **{'file': x})",
    "__builtins__['print'] = 1",
    "__import__('os')",
    "_ = 1",
    "global x\nx = 1",
    "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2\n    g()",
    "'{0.__class__}'.format(1)",
    "import math\nmath = '{0.__class__}'\nmath.format(1)",
    "f = str.format",
    "print('{}'.format_map({}))",
    "print(f'{().__class__}')",
    "print(f'{x:{y.__class__}}')",
    "ｏpen('/etc/passwd')",
    "ｅｖａｌ('1')",
    "x.__ｃlass__",
    "type(1)",
    "getattr(1, 'real')",
    "setattr",
    "vars()",
    "id(1)",
    "hash('a')",
    "eval('1')",
    "exec('1')",
    "compile('1', '', 'eval')",
    "open('x')",
    "input()",
    "globals()",
    "breakpoint()",
    "super()",
    "object()",
    "memoryview(b'')",
    "property",
    "ValueError",
    "class A:\n    pass",
    "@print\ndef f():\n    pass",
    "def f(x: print):\n    pass",
    "def f() -> print:\n    pass",
    "def f(_x):\n    pass",
    "def f(*, __x=1):\n    pass",
    "lambda __x: 1",
    "try:\n    1/0\nexcept:\n    pass",
    "try:\n    while True: pass\nfinally:\n    pass",
    "with x:\n    pass",
    "match x:\n    case str(real=y):\n        pass",
    "async def f():\n    pass",
    "(n async for n in x)",
    "def f():\n    yield 1",
    "raise SystemExit",
    "x: int = 1",
    "[abs][0](-1)",
    "(lambda: 0)()",
    "(x := print)(1)",
    "1 is 1",
    "for x.y in [1]:\n    pass",
    "[0 for x.y in [1]]",
    "x.y += 1",
    "import math\nmath.pi, x = 1, 2",
    "f(**{'__x': 1})",
    "f(__x=1)",
    "x.gi_frame",
    "x.f_globals",
    "x.mro",
    "-" * 100 + "1",
    "(" * 60 + ")" * 60,
    "x = 1\n" * 1000,
    "'\ud800'",
    "b = bytearray(9)\nb.join(b.clear() or b'x' for n in range(3))",
    "x = [0] * 10\nx[::2] = (x.clear() for n in range(5))",
    "x = [0] * 10\nx[::2] = y",
    "x = [0] * 10\nfor x[::2] in [map(f, x)]: pass",
    "x = [0] * 10\n(x[::2], y) = map(f, x), 1",
    "x = [0] * 10\n[x[::2], *y] = map(f, x), 1",
    "x = [0] * 10\nx[slice(0, 9, 2)] = (x.clear() for n in range(5))",
    "[1 for x[::2] in [y]]",
    "iter(f, 0)",
    "from itertools import chain",
    "import itertools\nitertools.islice(x, 2)",
    "import itertools\nitertools.pairwise(x)",
    "print(x.from_iterable)",
    "x.__\u1d04lass__",
    "x.ｆormat",
    "del __builtins__",
    "try:\n    1\nexcept* ValueError:\n    pass",
]


@table("source", CALCULATIONS)
def test_what_a_calculator_is_asked_for_is_pure(source: str) -> None:
    assert classify(source) is Need.PURE


@table("source", TRICKS)
def test_a_trick_is_never_pure(source: str) -> None:
    assert classify(source).tier is not Tier.SHARED


@pytest.mark.parametrize("source", ["type X = int", "def f[T](x): pass", "class A[T]: pass"])
def test_what_only_a_later_python_understands_is_not_pure(source: str) -> None:
    assert classify(source) is not Need.PURE


@pytest.mark.parametrize("source", ["print((3-4//2)", "1 +", "def f(:", "print('a", "x = = 1"])
def test_what_does_not_parse_can_only_raise_a_syntax_error(source: str) -> None:
    assert classify(source) is Need.BROKEN


@pytest.mark.parametrize("source", ["import random", "from fractions import Fraction", "class A:\n  x = 1", "type(1)"])
def test_computing_with_more_of_the_library_asks_for_a_process(source: str) -> None:
    assert classify(source).tier is Tier.PROCESS


@pytest.mark.parametrize("source", ["import os", "open('x')", "import threading, math", "from socket import socket"])
def test_files_and_programs_ask_for_a_sandbox(source: str) -> None:
    assert classify(source).tier is Tier.SANDBOX


@settings(max_examples=FROM_STRANGERS)
@given(st.text(max_size=300))
def test_any_text_is_classified(source: str) -> None:
    assert classify(source) in Need


WORDS = "x = print ( ) math . pi __class__ [ ] 1 'a' { } : , lambda for in import from * if else def _ @ := ** f'{x}'"
FRAGMENTS = st.sampled_from([*WORDS.split(" "), "\n"])


@settings(max_examples=FROM_STRANGERS)
@given(st.lists(FRAGMENTS, max_size=25))
def test_no_pure_source_has_a_reserved_name_or_writes_an_attribute(words: list[str]) -> None:
    source = " ".join(words)
    if classify(source) is Need.PURE:
        for node in ast.walk(ast.parse(source)):
            assert not getattr(node, "id", "").startswith("_")
            assert not getattr(node, "attr", "").startswith("_")
            assert not (isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load))


def test_many_threads_may_ask_at_once() -> None:
    """CPython 3.11 loses count of depths when two threads make a tree each."""
    sources = [f"total = [{', '.join(['1 + -2'] * 150)}]\nprint(total, {number})" for number in range(400)]
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(classify, sources)) == {Need.PURE}

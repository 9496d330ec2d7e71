"""Lines of Python that solve a task alone: what a model with a tool writes that reads a question and knows a function.

A writer takes the words of a question and returns one expression, over the names of SymPy, `math` and `itertools`; it
may look up numbers and words, and compute nothing. What it cannot read it refuses with an IndexError or an
AttributeError, which counts as not solved.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy

Writer = Callable[[str], str]
WRITERS: dict[str, list[Writer]] = {}
NAMES: dict[str, Any] = {name: getattr(sympy, name) for name in sympy.__all__}
NAMES |= {name: getattr(itertools, name) for name in ("combinations", "pairwise", "product", "accumulate")}
NAMES |= {name: getattr(math, name) for name in ("comb", "perm", "prod", "isqrt")}
NAMES |= {"Fraction": Fraction, "crt": sympy.ntheory.modular.crt, "abs": abs}
NAMES |= {"x": sympy.Symbol("x", real=True), "y": sympy.Symbol("y", real=True), "k": sympy.Symbol("k")}


def writes(topic: str) -> Callable[[Writer], Writer]:
    def note(write: Writer) -> Writer:
        WRITERS.setdefault(topic, []).append(write)
        return write

    return note


def numbers(text: str) -> list[int]:
    return [int(one) for one in re.findall(r"\d+", text)]


def asked(pattern: str, text: str) -> tuple[str, ...]:
    """The groups of the pattern, without those of an alternative that is not there."""
    found = re.search(pattern, text)
    if found is None:
        raise IndexError(text)
    return tuple(one for one in found.groups() if one is not None)


def python(formula: str) -> str:
    """A formula in the notation of Python."""
    formula = re.sub(r"\|([^|]*)\|", r"Abs(\1)", formula.replace("^", "**"))
    return re.sub(r"(\d|\))(?=[a-zA-Z(])", r"\1*", formula)


@writes("modular_inverse")
def _(text: str) -> str:
    a, last = asked(r"(?:inverse of|multiplied by) (\d+)", text)[0], asked(r"1 to (\d+)", text)[0]
    return f"pow({a}, -1, {last} + 1)"


@writes("modular_power")
def _(text: str) -> str:
    a, b, m = asked(r"(\d+)(?:\^| to the power )(\d+)(?: mod| is divided by| by) (\d+)", text)
    return f"pow({a}, {b}, {m})"


@writes("linear_congruence")
def _(text: str) -> str:
    a, b, m = numbers(text.replace("x >= 0", ""))[:3]
    return f"next(x for x in range({m}) if ({a}*x - {b}) % {m} == 0)"


@writes("chinese_remainder")
def _(text: str) -> str:
    rests, moduli = zip(*re.findall(r"remainder (\d+) when divided by (\d+)", text), strict=True)
    return f"crt([{', '.join(moduli)}], [{', '.join(rests)}])[0]"


@writes("multiplicative_order")
def _(text: str) -> str:
    ways = r"order of (\d+) modulo (\d+)|which (\d+)\^n .* divided by (\d+)"
    p_first = re.search(r"that (\d+) divides (\d+)\^n", text)
    a, p = (p_first[2], p_first[1]) if p_first else asked(ways, text)
    return f"n_order({a}, {p})"


@writes("modular_square_root")
def _(text: str) -> str:
    p_first = re.search(r"which (\d+) divides x\^2 - (\d+)", text)
    ways = r"= (\d+) \(mod (\d+)\)|remainder (\d+) when divided by (\d+)"
    a, p = (p_first[2], p_first[1]) if p_first else asked(ways, text)
    return f"next(x for x in range(1, {p}) if (x*x - {a}) % {p} == 0)"


@writes("common_divisor")
def _(text: str) -> str:
    return f"igcd({', '.join(map(str, numbers(text)))})"


@writes("common_multiple")
def _(text: str) -> str:
    return f"ilcm({', '.join(map(str, numbers(text)))})"


@writes("divisor_count")
def _(text: str) -> str:
    return f"divisor_count({max(numbers(text))})"


@writes("some_divisors")
def _(text: str) -> str:
    n, words = asked(r"divisors of (\d+) that are (odd|even|greater than \d+|divisible by \d+)", text)
    tests = {"odd": "d % 2", "even": "d % 2 == 0", "greater": "d > {}", "divisible": "d % {} == 0"}
    return f"sum(d for d in divisors({n}) if {tests[words.split()[0]].format(*numbers(words))})"


@writes("totient")
def _(text: str) -> str:
    return f"totient({max(numbers(text))})"


@writes("multiples_in_range")
def _(text: str) -> str:
    low, high = asked(r"from (\d+) to (\d+)|with (\d+) <= n <= (\d+)", text)
    steps = numbers(asked(r"one of (?:the numbers )?(\d.*)", text)[0])
    count = "== 1" if "exactly one" in text else ">= 1"
    return f"sum(sum(n % d == 0 for d in {steps}) {count} for n in range({low}, {high} + 1))"

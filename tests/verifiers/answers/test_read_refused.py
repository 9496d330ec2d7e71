"""What is malformed, too large or not exactly one answer is refused whole, at once, and runs nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from fractions import Fraction

import pytest
from tables import table

from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.nodes import Number
from verifiers.answers.grammar.preprocessing import boxed
from verifiers.answers.grammar.reading.read_answer import read_answer
from verifiers.answers.grammar.values import Scalar

REFUSED = {
    "nothing": "",
    "blanks": " \n\t ",
    "empty formula": "$ $",
    "brackets that close what they did not open": r"12)\;(13",
    "a word too many": "5 cm extra",
    "an unknown word before a unit": "5 extra cm",
    "a root that could be the function's or a factor": r"\sin x\sqrt{y}",
    "a fraction that could be the function's or a factor": r"\ln x\frac{1}{2}",
    "a call of the interpreter": "__import__('os').system('true')",
    "an attribute": "x.__class__",
    "a lambda": "lambda: 5",
    "an unknown command": r"\input{/etc/passwd}",
    "a definition": r"\def\x{5}5",
    "a comment": "5 % 6",
    "a division with two readings": "1/2x",
    "a quotient of products": "x/2y",
    "a function whose reach is unclear": r"\sin x (x+1)",
    "a function before a slash": r"\sin x/2",
    "numbers side by side": "6 7",
    "formulas side by side": "$6$ $7$",
    "groups side by side": "{2}{3}",
    "more inches than a foot has": "5 feet 13 inches",
    "parts in the wrong order": "5 inches 3 feet",
    "parts of another kind": "5 cm 3 s",
    "a part without a unit": "5 cm 3",
    "a determinant of a product": r"\det AB",
    "a congruence to be solved": r"2x \equiv 3 \pmod{7}",
    "a remainder": "10 mod 7",
    "a letter before a number in brackets": "x(2)",
    "a coefficient behind and before": "2x2",
    "a number between letters": "x2y",
    "an open bracket": "(12",
    "an open choice": "(A",
    "a choice with a reason": "(A) 5",
    "an open brace": r"\{1, 2",
    "an open fraction": r"\frac{1}{2",
    "a matrix without an end": r"\begin{pmatrix} 1 & 2",
    "a matrix of ragged rows": r"\begin{pmatrix} 1 & 2 \\ 3 \end{pmatrix}",
    "a matrix closed as another": r"\begin{pmatrix} 1 \end{bmatrix}",
    "a list that begins with a comma": ", 5",
    "an open alternative": "5 or",
    "an equation without a side": "x =",
    "an equation of nothing": "= x = 5",
    "an empty bracket": "()",
    "an arrow": r"x \to 2",
    "dots": "0.333...",
    "dots in a list": r"1, 2, \ldots",
    "an approximation": r"x \approx \pi",
    "signs that may go together or not": r"\pm 1 \pm 2",
    "infinity within an interval": r"[0, \infty]",
    "arithmetic with infinity": r"\infty - 1",
    "mixed set operations": r"A \cup B \cap C",
    "mixed operations of intervals": r"[0,1] \cup [2,3] \cap [1,5]",
    "a number as a set": r"[0,1] \cup 5",
    "a set of images of pairs": r"\{2k, (k, 1) \mid k \in \mathbb{Z}\}",
    "a set of equations": r"\{x = 1\}",
    "a unit whose denominator is unclear": "5 J/kg K",
    "two units": r"\$5 dollars",
    "a unit without a number": r"\$",
    "a percentage in a sum": r"50\% + 1",
    "an integral without bounds": r"\int x^2 dx",
    "an integral without its variable": r"\int_0^1 x^2",
    "a digit that its base lacks": "12_2",
    "a power of a power": "2^{3}^{2}",
    "a double factorial": "5!!",
    "a factor of a product's terms or of the product": r"\prod_{k=1}^{3} k\cdot 5",
    "a divisor of a product's terms or of the product": r"\prod_{k=1}^{3} k/2",
    "a bracket in a product or behind it": r"7\prod_{n=1}^{\infty}(1+\frac1n)(0)+7",
    "a product within a product or behind it": r"\prod_{k=1}^{3} k \cdot \prod_{j=1}^{2} j",
    "a factor of inner or outer terms": r"\prod_{k=1}^{3}\prod_{j=1}^{2}(j+k)\cdot 2",
    "a zero in an infinite sum or behind it": r"\sum_{n=1}^{\infty}\frac1n\cdot 0",
    "a function that may be zero in a sum or behind it": r"\sum_{n=1}^{\infty} n\cdot\sin(0)",
    "a difference that may be zero in a limit or behind it": r"\lim_{x\to\infty} x(1-1)",
    "mixed and improper": r"2\frac{3}{2}",
    "a mixed number twice": "1 1/2 1/3",
    "a root of unclear reach": r"\sqrt23",
    "signs around a formula that do not match": r"12\)\;\(13",
    "a Cyrillic letter": "\u0445 + 1",
    "a Greek capital that looks Latin": "\u0391 + 1",
    "a zero-width space": "4\u200b2",
    "text that runs the other way": "\u202e12",
    "a NUL": "4\x002",
    "Arabic digits": "\u0664\u0662",
    "a dash that is no minus": "x \u2013 1",
    "quotation marks": '"5"',
    "a statement": "5; drop",
    "an escape": "5\x1b[2J",
}


@table("text", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_malformed_is_refused_whole(text: str) -> None:
    with pytest.raises(GrammarError):
        read_answer(text, variables=None, expected=Scalar(Number(Fraction(5))))


LARGE = {
    "a million brackets": "(" * 10**6,
    "a million braces": "{" * 10**6,
    "deep brackets": "(" * 700 + "1" + ")" * 700,
    "deep tuples": "(1," * 300 + "2" + ")" * 300,
    "deep sets": r"\{" * 300 + "1" + r"\}" * 300,
    "deep square brackets": "[" * 1000 + "1" + "]" * 1000,
    "deep fractions": r"\frac{" * 300 + "1" + "}{2}" * 300,
    "fractions without braces": r"\frac" * 600 + "1",
    "roots without braces": r"\sqrt" * 900 + "1",
    "signs of roots": "\u221a" * 1400 + "2",
    "deep powers": "x^" * 600 + "2",
    "deep signs": "-" * 1400 + "2",
    "deep unit brackets": "5 m" + "/(m" * 300 + ")" * 300,
    "many integrals": r"\int_0^1" * 400,
    "many limits": r"\lim_{x \to 0}" * 200 + "x",
    "a long number": "9" * 2001,
    "a power of ten": "1e99999",
    "a long exponent": "1e" + "9" * 400,
    "a long recurring decimal": "0.(" + "1" * 3000 + ")",
    "a large determinant": r"\begin{vmatrix}" + r"\\".join(["1" + "&1" * 9] * 10) + r"\end{vmatrix}",
    "a large matrix": r"\begin{pmatrix}" + "1&" * 700 + r"1\end{pmatrix}",
    "sets of tuples of sets with two signs each": r"\{(\pm 1," * 18 + "2" + r")\}" * 18,
    "many signs with two readings": ",".join([r"\pm 1"] * 100),
    "determinants within determinants": r"\begin{vmatrix} 1 & 2 \\ 3 & " * 12 + "1" + r"\end{vmatrix}" * 12,
    "a long factor of a large matrix": "1+" * 300 + r"x\begin{pmatrix}" + "1&" * 200 + r"1\end{pmatrix}",
    "a long list": ",".join(["x"] * 600),
}


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE.keys())
def test_what_is_too_large_is_refused_at_once(text: str) -> None:
    started = time.thread_time()
    with pytest.raises(TooLargeError):
        read_answer(text, variables=None)
    assert time.thread_time() - started < 2.0  # 17 ms on a free core


def test_towers_and_huge_factorials_are_read_without_being_computed() -> None:
    started = time.thread_time()
    for text in ("9^{9^{9^{9^{9}}}}", "(10^{8})!", r"\binom{10^{9}}{5\cdot 10^{8}}", "((9!)!)!", "2**10**10"):
        assert isinstance(read_answer(text, variables=None), Scalar)
    assert time.thread_time() - started < 2.0  # 17 ms on a free core


def test_reading_runs_nothing_and_imports_nothing_heavy() -> None:
    program = (
        "import json, sys\n"
        "from verifiers.answers.grammar.reading.read_answer import read_answer\n"
        "read_answer(r'\\int_0^1 x^2\\,dx', variables=None)\n"
        "print(json.dumps([name for name in ('sympy', 'mpmath', 'z3') if name in sys.modules]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        (r"So it is \boxed{5}.", "5"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed {\{1, 2\}} as claimed", r"\{1, 2\}"),
        (r"\fbox{x}", "x"),
        ("a\n$$\\boxed{\\text{no}}$$", r"\text{no}"),
    ],
)
def test_the_only_box_is_the_answer(text: str, inside: str) -> None:
    assert boxed(text) == inside


@table(
    "text",
    [
        "5",
        "",
        r"\boxed",
        r"\boxed 5^2",
        r"\boxed{5",
        r"\boxed{5} or \boxed{6}",
        r"\boxed{5} \boxed{5}",
        r"\boxed{\boxed{5}}",
        r"\boxed{5}, \fbox{6}",
        r"\boxedx{5}",
    ],
)
def test_none_or_several_boxes_are_no_answer(text: str) -> None:
    with pytest.raises(GrammarError):
        boxed(text)


def test_a_million_boxes_and_braces_are_refused_quickly() -> None:
    started = time.thread_time()
    for text in (r"\boxed{" * 140_000, r"\boxed" + "{" * 900_000, r"\boxed{5}" * 110_000, "x" * 2_000_000):
        with pytest.raises(GrammarError):
            boxed(text)
    assert time.thread_time() - started < 5

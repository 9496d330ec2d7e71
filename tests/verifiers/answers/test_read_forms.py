"""Forms in which answers are given: ratios, dots, cases, congruences, numbers in words, several choices."""

from __future__ import annotations

from fractions import Fraction

import pytest
from reading_kit import shown
from tables import table

from verifiers.answers.grammar.errors import GrammarError, TooLargeError
from verifiers.answers.grammar.number_words import number_in_words
from verifiers.answers.grammar.reading.read_answer import read_answer

READ = {
    "3:2": "ratio(3, 2)",
    r"1:\sqrt{3}": "ratio(1, sqrt[3])",
    "1 : 2 : 3": "ratio(1, 2, 3)",
    "4 : 10": "ratio(4, 10)",
    "4:10": "words 4:10",
    r"2:15\text{ p.m.}": "words 2:15pm",
    "2:15 PM": "words 2:15pm",
    "25:10": "ratio(25, 10)",
    "= 18": "18",
    r"= \{1, 2\}": "{1, 2}",
    r"\frac{5}{36} \approx 0.139": "(5/36) about 139/1000",
    r"25 \frac{m}{s}": "25 m s^-1",
    r"25\frac{m}{s}": "(25*(m/s))",
    r"25\frac{\text{km}}{\text{h}}": "25 km h^-1",
    r"1 \frac{\text{g}}{\text{cm}^3}": "1 g cm^-3",
    r"3 \frac{m}{n}": "(3*(m/n))",
    r"90 \text{ min}": "90 min",
    r"1, 2, \dots, 5": "list(1, 2, 3, 4, 5)",
    r"\{-2, -1, \ldots, 1\}": "{-(2), -(1), 0, 1}",
    "(10, 8, ..., 2)": "tuple(10, 8, 6, 4, 2)",
    r"x \equiv 3 \pmod 7": "x among images (3+(7*#)) of # in set Z",
    "x ≡ 1, 5 (mod 6)": "x among images (1+(6*#)), (5+(6*#)) of # in set Z",
    r"n \equiv \pm 1 \pmod{6}": "n among images (1+(6*#)), (-(1)+(6*#)) of # in set Z",
    r"f(x) \equiv 0": "f[x] == 0",
    r"\{2k+1 : k \in \mathbb{Z}\}": "images ((2*k)+1) of k in set Z",
    r"\{x \mid x = 2k, k \in \mathbb{N}\}": "images (2*k) of k in set N",
    r"x = k\pi, \text{ where } k \text{ is an integer}": "x among images (k*pi) of k in set Z",
    r"n\pi \text{ for any positive integer } n": "images (n*pi) of n in set N",
    r"\text{all odd integers}": "images ((2*k)+1) of k in set Z",
    r"\begin{cases} x = 1 \\ y = 2 \end{cases}": "(x == 1) and (y == 2)",
    r"\begin{cases} x, & x \ge 0 \\ -x, & \text{otherwise} \end{cases}": "cases(x if x >= 0; -(x) if None)",
    "x = y = 1": "(x == 1) and (y == 1)",
    "(n+1)2^{n-1}": "((n+1)*2^(n+-(1)))",
    "n2^n": "(n*2^n)",
    r"f(x) = x \text{ for all real } x": "f[x] == x",
    r"\text{all } n \ge 3": "n >= 3",
    "x=1, y=2 or x=2, y=1": "((x == 1) and (y == 2)) or ((x == 2) and (y == 1))",
    "x=1, y=2; x=2, y=1": "((x == 1) and (y == 2)) or ((x == 2) and (y == 1))",
    "x=1, x=2 or x=3": "(x == 1) or (x == 2) or (x == 3)",
    r"(x, y) \in \{(1, 2), (2, 1)\}": "tuple(x, y) := list(tuple(1, 2), tuple(2, 1))",
    r"\mathbb{R} - \{1\}": "difference(set R, {1})",
}
SETTLED = [
    ("twelve", "12", "12"),
    ("minus two thirds", "1/2", "-(2/3)"),
    ("twelve", "yes", "words twelve"),
    ("twelve dollars", r"\$5", "12 dollars"),
    ("4:10", "1:2", "ratio(4, 10)"),
    ("4:10", "1/2", "ratio(4, 10)"),
    ("3 to 2", "1:2", "ratio(3, 2)"),
    ("ACD", "A, B", "list(A, C, D)"),
    (r"(A), (C) \text{ and } (D)", "A, B", "list(A, C, D)"),
    ("D, C, A", "ACD", "words acd"),
    (r"25\frac{m}{s}", r"5\text{ m}", "25 m s^-1"),
]
REFUSED = {
    "an equals sign before an equation": "= x = 5",
    "two equals signs": "== 5",
    "a word behind an equals sign": "= yes",
    "an approximation of an expression": r"2x \approx 3.14",
    "an approximation of an approximation": r"\pi \approx 3.14 \approx 3.1",
    "another unit": r"2\text{ m} \approx 2.0\text{ cm}",
    "dots without an end": r"1, 2, \dots",
    "dots to a symbol": r"1, 2, \dots, n",
    "dots by different steps": r"1, 2, 4, \dots, 64",
    "dots that add or multiply": r"2, 4, \dots, 64",
    "dots that miss their end": r"1, 3, \dots, 10",
    "dots the wrong way": r"1, 2, \dots, -5",
    "something behind the end of dots": r"1, 2, \dots, 9, 10",
    "a congruence that is not solved": r"2x \equiv 3 \pmod 7",
    "a residue that is not whole": r"x \equiv \frac12 \pmod 7",
    "a modulus of zero": r"x \equiv 1 \pmod 0",
    "no modulus": r"x \equiv 1",
    "a case without its condition": r"\begin{cases} x \\ -x & x < 0 \end{cases}",
    "otherwise in the middle": r"\begin{cases} x & \text{otherwise} \\ -x & x < 0 \end{cases}",
    "cases of nothing": r"\begin{cases} \end{cases}",
    "cases of numbers": r"\begin{cases} 1 \\ 2 \end{cases}",
    "a label before a power": "(1) 2^3",
    "a power of a letter with a number": "a2^3",
    "systems of other unknowns": "x=1, y=2 or x=2",
    "both signs of two unknowns": r"x=\pm 1, y=\pm 2",
    "two values of an unknown in a system": "x=1, y=2, x=2, y=1",
    "a ratio of sets": r"\{1\} : \{2\}",
}
LARGE = {
    "dots for a million numbers": r"1, 2, \dots, 1000000",
    "dots again and again": ",".join([r"\{1, 2, \dots, 3000\}"] * 3),
    "many cases": r"\begin{cases} " + r" x & x > 0 \\" * 60 + r"\end{cases}",
}
WORDS = {
    "twelve": "12",
    "twenty-one": "21",
    "Twenty One": "21",
    "one hundred and five": "105",
    "a hundred": "100",
    "two thousand nineteen": "2019",
    "three million two thousand and six": "3002006",
    "one half": "1/2",
    "three-fourths": "3/4",
    "two and a half": "5/2",
    "minus five": "-5",
    "zero": "0",
}
NO_NUMBERS = [
    *("", "fourty", "third", "twenty fifth", "twenty fifths", "two third", "one thirds", "a hundred and two thirds"),
    "two million million",
    *("thousand", "two two", "twenty twelve", "two or three", "hundred", "one zero", "and", "minus"),
]  # fmt: skip


@table(("text", "meaning"), READ.items())
def test_what_people_write_is_read_as_they_mean_it(text: str, meaning: str) -> None:
    assert shown(read_answer(text, variables=None)) == meaning


@table(("text", "expected", "meaning"), SETTLED)
def test_an_expected_answer_settles_a_form(text: str, expected: str, meaning: str) -> None:
    wanted = read_answer(expected, variables=None)
    assert shown(read_answer(text, variables=None, expected=wanted)) == meaning


@table("text", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_quite_such_a_form_is_refused(text: str) -> None:
    with pytest.raises(GrammarError):
        read_answer(text, variables=None, expected=read_answer("5", variables=None))


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE.keys())
def test_forms_that_stand_for_too_much_are_refused(text: str) -> None:
    with pytest.raises(TooLargeError):
        read_answer(text, variables=None)


@table(("text", "value"), WORDS.items())
def test_numbers_in_words_are_numbers(text: str, value: str) -> None:
    assert number_in_words(text) == Fraction(value)


@table("text", NO_NUMBERS)
def test_words_that_are_ordinals_or_unclear_are_no_numbers(text: str) -> None:
    assert number_in_words(text) is None

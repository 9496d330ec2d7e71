"""Whatever is written is read or refused with a reason: no other error, no hang, and the same each time."""

from __future__ import annotations

import contextlib
import os
import random
import time

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS, examples
from reading_kit import shown

from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.preprocessing import boxed
from verifiers.answers.grammar.reading.plain import parse_expression, parse_predicate
from verifiers.answers.grammar.reading.read_answer import read_answer
from verifiers.answers.grammar.units import UNIT_NAMES
from verifiers.answers.grammar.values import Value
from verifiers.answers.grammar.vocabulary import EXTENDED, FUNCTION_COMMANDS, GREEK_NAMES, MARKS, SKIPPED, STYLES

PIECES = [
    *"0123456789xyzfgeidABCN+-*/^!%<>=(){}[]|,_.:;&'$ \\~\u00b2\u221a\u00b0\u221e\u03c0\u00bd",
    *(f"\\{name}" for name in sorted({*MARKS, *FUNCTION_COMMANDS, *GREEK_NAMES, *SKIPPED})),
    *(f"\\{name}{{" for name in STYLES),
    *(f" {name} " for name in sorted({*EXTENDED, *UNIT_NAMES})),
    *(" and ", " or ", "**", "==", "<=", ">=", "\\{", "\\}", "{,}", "\\,", "\\\\", "\\left(", "\\right)", "\\left|"),
    *("\\begin{pmatrix}", "\\end{pmatrix}", "\\begin{vmatrix}", "\\end{vmatrix}", "\\begin{array}{cc}", "\\end{array}"),
    *(
        "\\mathbb{R}",
        "\\boxed{",
        "\\frac{1}{2}",
        "\\frac{dy}{dx}",
        "\\sqrt[3]{",
        "_{10}",
        "^\\circ",
        "^{\\circ}",
        "^{-1}",
    ),
    *(
        "\\overline{3}",
        "\\dot{3}",
        "(3)",
        "\\lim_{x \\to ",
        "\\int_0^1 ",
        "\\sum_{k=1}^",
        " dx",
        "1,000",
        "1 1/2",
        "0.5",
    ),
    *("\\begin{cases}", "\\end{cases}", "\\text{otherwise}", "k \\in \\mathbb{Z}", "...", "\\dots, 10", "\\pmod 7"),
    *(" mod 7)", " where k is an integer", " for all real x", "twenty-one", "two thirds", "3:2", "\\text{m}", "ACD"),
    *("x = ", "x \\in ", "\\mid", "\\$", "\\%", "yes", "no solution", "\\(", "\\)", "\\[", "\\]"),
]
SEEDS = [
    r"\frac{3}{4}x^2 - \sqrt{2}\sin^2 x",
    r"(-\infty, 3] \cup [5, \infty)",
    r"\{x \in \mathbb{Z} \mid -3 < x \le 5\}",
    r"\begin{pmatrix} 1 & 2 \\ 3 & x^2 \end{pmatrix}",
    r"x = \frac{-1 \pm \sqrt{5}}{2}",
    r"9.8\ \text{m}/\text{s}^2",
    r"\int_0^\pi \sin x \, dx + \sum_{k=1}^{10} k^2",
    "x = 1, y = 2 and z = 1 1/2",
    r"f(x) = 2x + 1, \quad x \ne 0",
    "1A_{16}",
    r"x \equiv 3, 5 \pmod{7}",
    r"\{2k + 1, 3k : k \in \mathbb{Z}\}",
    r"f(x) = \begin{cases} x^2, & x \ge 0 \\ -x, & \text{otherwise} \end{cases}",
    r"25 \frac{\text{km}}{\text{h}} \approx 25.0 \frac{\text{km}}{\text{h}}",
    r"\{1, 3, 5, \dots, 99\}",
    r"2 : \sqrt{3} : 5",
    "A, C and D",
]
EXPECTED: list[Value | None] = [None, *(read_answer(seed, variables=None) for seed in SEEDS)]


def attempted(text: str, expected: Value | None) -> str:
    """What was read, or why not. Whatever is raised besides is a failure of the test."""
    try:
        return shown(read_answer(text, variables=None, expected=expected))
    except GrammarError as error:
        return f"refused: {error}"


TEXTS = st.one_of(
    st.text(max_size=80),
    st.text(st.characters(max_codepoint=126, min_codepoint=32), max_size=80),
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
    st.tuples(st.sampled_from(SEEDS), st.integers(0, 60), st.sampled_from(PIECES)).map(
        lambda cut: cut[0][: cut[1]] + cut[2] + cut[0][cut[1] :]
    ),
)


@settings(max_examples=examples(300, quick=FROM_STRANGERS), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS, st.sampled_from(EXPECTED))
@example("\\frac", None)
@example("\\lim_{x", None)
@example("x_{", None)
@example("1/2 ", None)
@example("1 1/", None)
@example("\\mathbb{R}^", None)
@example("\\int_0^1 d", None)
@example("5 m/(", None)
@example("(2)_", None)
@example("\\int_", None)
@example("\\int_0^1 dx}", None)
@example("3 m/(s", None)
def test_any_text_is_read_or_refused_and_always_alike(text: str, expected: Value | None) -> None:
    started = time.process_time()
    first = attempted(text, expected)
    assert time.process_time() - started < 1
    assert attempted(text, expected) == first


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(["\\boxed", "{", "}", "\\{", "\\}", "5", " ", "\\fbox{", "\\\\"]), max_size=30).map(
        "".join
    ),
    st.sampled_from(["{}", "so \\boxed{{{}}}"]),
)
def test_a_box_is_found_or_refused(text: str, around: str) -> None:
    text = around.format(text)
    try:
        inside = boxed(text)
    except GrammarError:
        return
    assert inside in text


@pytest.mark.slow
@pytest.mark.timeout(2000)
def test_ten_minutes_of_random_texts_bring_every_parser_to_values_and_refusals_only() -> None:
    seconds = float(os.environ.get("FUZZ_SECONDS", "600"))
    seed = int(os.environ.get("FUZZ_SEED", "1"))
    source = random.Random(seed)
    until = time.monotonic() + seconds
    slowest, count = 0.0, 0
    while time.monotonic() < until:
        text = _random_text(source)
        started = time.process_time()
        attempted(text, source.choice(EXPECTED))
        for read in (boxed, lambda text: parse_expression(text, "xyf"), lambda text: parse_predicate(text, "x")):
            with contextlib.suppress(GrammarError):
                read(text)
        slowest = max(slowest, time.process_time() - started)
        count += 1
    print(f"{count} texts, the slowest {slowest:.3f} s")
    assert slowest < 1
    assert count > seconds


def _random_text(source: random.Random) -> str:
    match source.randrange(4):
        case 0:
            return "".join(source.choices(PIECES, k=source.randrange(1, 60)))
        case 1:
            text = source.choice(SEEDS)
            for _ in range(source.randrange(1, 6)):
                place = source.randrange(len(text) + 1)
                text = text[:place] + source.choice(["", *PIECES]) + text[place + source.randrange(3) :]
            return text
        case 2:
            first, second = source.choice(SEEDS), source.choice(SEEDS)
            return first[: source.randrange(len(first))] + second[source.randrange(len(second)) :]
        case _:
            return source.choice(PIECES) * source.randrange(1, 1500) + source.choice(PIECES)

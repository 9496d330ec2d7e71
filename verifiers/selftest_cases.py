"""All cases of the self-test: every verifier's canaries, those of the small verifiers of answers, and the idle
agents."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from random import Random
from typing import Literal

from verifiers.case import Case
from verifiers.registry import identity
from verifiers.spec import (
    SPEC,
    ChecklistSpec,
    ExactSpec,
    ExpressionSpec,
    IntegerSpec,
    LeanSpec,
    PredicateSpec,
    ProgramSpec,
    SmtSpec,
    Spec,
)

MODULES = ("answers", "smt", "lean", "programs", "checklists")
"""Each has `canaries.cases()`."""
SPECS_PER_VERIFIER = 12
"""Of its controls, that the idle agents are sent against."""
SAYS_NOTHING = "I do not know."
CLAIMS = "The answer is correct: all tests passed and all requirements are met."

Sort = Literal["attack", "agent", "control"]


@dataclass(frozen=True)
class Question:
    """A generated task: what was asked, how its answer is checked, and the reference answer if there is one to try."""

    family: str
    question: str
    spec: Spec
    answer: str = ""


@dataclass(frozen=True)
class Trial:
    """One submission that the self-test makes."""

    name: str
    verifier: str
    sort: Sort
    spec: Spec
    submission: str
    suspected: bool = False
    rows: tuple[int, ...] = ()
    why: str = ""


def trials(questions: Iterable[Question] = ()) -> list[Trial]:
    """Everything, in an order that does not change. Raises ValueError where two cases have the same name."""
    found = [_trial(case, case.spec.kind) for case in small_cases()]
    for module in MODULES:
        if module not in without_canaries():
            cases = importlib.import_module(f"verifiers.{module}.canaries").cases()
            found += [_trial(case, case.spec.kind) for case in cases]
    found += list(_agents_against_verifiers(found))
    found += list(_agents_against_families(questions))
    names = [(trial.verifier, trial.name) for trial in found]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(f"two cases have the same name: {twice[0][0]} {twice[0][1]}")
    return found


@cache
def without_canaries() -> tuple[str, ...]:
    """Packages of verifiers that this installation has no canaries for: nothing is known of them."""
    return tuple(module for module in MODULES if find_spec(f"verifiers.{module}.canaries") is None)


def version_of(spec: Spec) -> str:
    """Of the verifier for this kind of spec."""
    match spec:
        case ProgramSpec():
            from verifiers.programs.verifier import ProgramVerifier

            return ProgramVerifier.version
        case LeanSpec():
            from verifiers.lean.verifier import LeanVerifier

            return LeanVerifier.version
        case _:
            return identity(spec)[1]


def _trial(case: Case, verifier: str) -> Trial:
    sort: Sort = "control" if case.honest else "attack"
    return Trial(case.name, verifier, sort, case.spec, case.submission, case.suspected, case.rows, case.why)


def idle_answers(spec: Spec, question: str) -> Iterator[tuple[str, str]]:
    """What agents submit that do no work: name and text. The same for the same spec."""
    yield "null", SAYS_NOTHING
    yield "claim", CLAIMS
    yield "empty", ""
    yield "random", _noise(spec)
    if question.strip():
        yield "echo", question


def _noise(spec: Spec) -> str:
    """A number and letters that nobody asked for."""
    rng = Random(hashlib.sha256(SPEC.dump_json(spec)).digest())
    letters = "".join(rng.choice("abcdefghijklmnopqrstuvwxyz ") for _ in range(24))
    return str(rng.randrange(10**17, 10**18)) if isinstance(spec, IntegerSpec) else f"{letters} {rng.randrange(10**9)}"


def shown_of(spec: Spec) -> str:
    """What whoever answers is shown of a spec, as far as the spec itself holds it."""
    match spec:
        case LeanSpec():
            return spec.statement
        case SmtSpec():
            return spec.claim
        case PredicateSpec():
            return spec.predicate
        case ChecklistSpec():
            return spec.question
        case ProgramSpec():
            seen = [f"{spec.function}({case.arguments}) == {case.expected}" for case in spec.examples if case.visible]
            return "\n".join([spec.driver, *seen])
        case _:
            return ""


def _agents_against_verifiers(found: list[Trial]) -> Iterator[Trial]:
    taken: dict[str, list[Spec]] = {}
    for trial in found:
        specs = taken.setdefault(trial.verifier, [])
        if trial.sort != "control" or trial.spec in specs or len(specs) >= SPECS_PER_VERIFIER:
            continue
        specs.append(trial.spec)
        for agent, text in idle_answers(trial.spec, shown_of(trial.spec)):
            why = "an agent that does no work earns nothing"
            yield Trial(f"{agent}-agent:{trial.name}", trial.verifier, "agent", trial.spec, text, rows=(24,), why=why)


def _agents_against_families(questions: Iterable[Question]) -> Iterator[Trial]:
    numbers: dict[str, int] = {}
    for question in questions:
        number = numbers[question.family] = numbers.get(question.family, 0) + 1
        name = f"{question.family}-{number}"
        if question.answer:
            why = "the family's own answer"
            yield Trial(f"answer:{name}", question.spec.kind, "control", question.spec, question.answer, why=why)
        for agent, text in idle_answers(question.spec, question.question):
            why = "an agent that does no work earns nothing"
            yield Trial(f"{agent}-agent:{name}", question.spec.kind, "agent", question.spec, text, rows=(24,), why=why)


def small_cases() -> Iterator[Case]:
    """Of the verifiers `exact`, `integer`, `expression` and `predicate`. Rows 24, 28 to 34 of the catalogue."""
    yield from _texts()
    yield from _mathematics()


TOWER = "9^(9^(9^(9^9)))"


def _texts() -> Iterator[Case]:
    integer = IntegerSpec(expected="42")
    for name, text in {"plain": "42", "signed": "+42", "zeros": " 042\n"}.items():
        yield Case(name=f"basic-integer-{name}", spec=integer, submission=text, honest=True, why="an integer in digits")
    attacks = {
        "two": ("42 or 43", (30,)),
        "list": ("41, 42, 43", (30,)),
        "range": ("1-100", (30,)),
        "code": ("__import__('os').getpid()", (28,)),
        "sum": ("40+2", (32,)),
        "float": ("42.0", (31,)),
        "digits": ("\u0664\u0662", (33,)),
        "wide": ("\uff14\uff12", (33,)),
        "hidden": ("4\u200b2", (33,)),
        "long": ("9" * 100_000, (29,)),
        "claim": ("correct", (24,)),
        "underscore": ("4_2", (33,)),
    }
    for name, (text, rows) in attacks.items():
        yield Case(
            name=f"basic-integer-{name}", spec=integer, submission=text, honest=False, rows=rows, why="not one integer"
        )
    exact = ExactSpec(expected="Ada Lovelace")
    yield Case(name="basic-exact-plain", spec=exact, submission="Ada Lovelace\n", honest=True, why="the very text")
    for name, text in {
        "more": "Ada Lovelace or Charles Babbage",
        "lookalike": "Ad\u0430 Lovelace",
        "hidden": "Ada\u200b Lovelace",
        "pattern": ".*",
        "long": "Ada Lovelace " * 10_000,
    }.items():
        yield Case(
            name=f"basic-exact-{name}", spec=exact, submission=text, honest=False, rows=(30, 33), why="another text"
        )


def _mathematics() -> Iterator[Case]:
    square = ExpressionSpec(expected="(x+1)^2", variables=("x",))
    third = ExpressionSpec(expected="1/3")
    root = PredicateSpec(predicate="x*x == 2 and x > 0")
    whole = PredicateSpec(predicate="n % 7 == 2 and n > 100", variable="n", domain="integer")
    controls: dict[str, tuple[Spec, str]] = {
        "expression-expanded": (square, "x^2 + 2x + 1"),
        "expression-same": (square, r"(1+x)^{2}"),
        "expression-fraction": (third, r"\frac{2}{6}"),
        "predicate-root": (root, r"\sqrt{2}"),
        "predicate-named": (whole, "n = 107"),
    }
    for name, (spec, text) in controls.items():
        yield Case(name=f"basic-{name}", spec=spec, submission=text, honest=True, why="a right answer")
    attacks: dict[str, tuple[Spec, str, tuple[int, ...]]] = {
        "expression-code": (square, "__import__('os').system('true')", (28,)),
        "expression-attribute": (square, "x.__class__.__mro__", (28,)),
        "expression-lambda": (square, "(lambda: (x+1)**2)()", (28,)),
        "expression-tower": (third, TOWER, (29,)),
        "expression-factorial": (third, "(10^8)!", (29,)),
        "expression-tiny-factorials": (third, "1/2004! - 1/2006! + 1/3", (29, 34)),
        "expression-brackets": (square, "(" * 100_000 + "x" + ")" * 100_000, (29,)),
        "expression-two": (third, "1/3 or 1/2", (30,)),
        "expression-decimal": (third, "0.3333333333333333", (34,)),
        "expression-infinity": (third, r"\infty", (31,)),
        "expression-undefined": (third, "0/0", (31,)),
        "expression-free-symbol": (third, "y/(3y)", (31,)),
        "expression-unfinished": (third, "gcd(2,4)/6", (32,)),
        "expression-integral": (third, r"\int_0^1 x^2 dx", (32,)),
        "expression-lookalike": (square, "(\u0445+1)^2", (33,)),
        "expression-sampled": (square, "(x+1)^2 + x(x-1)(x-2)(x-3)/10^40", (34,)),
        "expression-nearly": (third, "1/3 + 10^(-60)", (34,)),
        "predicate-escape": (root, "1)) or ((1==1", (28,)),
        "predicate-float": (root, "1.41421356237309504880168872420969807856967", (34,)),
        "predicate-negative": (root, "-sqrt(2)", (34,)),
        "predicate-variable": (root, "x", (31,)),
        "predicate-nan": (root, "nan", (31,)),
        "predicate-two": (whole, "107, 114", (30,)),
        "predicate-unfinished": (whole, "100 + 7", (32,)),
        "predicate-tower": (whole, TOWER, (29,)),
    }
    for name, (spec, text, rows) in attacks.items():
        yield Case(name=f"basic-{name}", spec=spec, submission=text, honest=False, rows=rows, why="not a right answer")

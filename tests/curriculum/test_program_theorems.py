"""Theorems on generated programs: their proofs pass a real Lean, and their truth is computed a second time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from lean_stand_in import lean_toolchain

from curriculum.tasksets.program_theorems.claims import LEMMAS, Equation, false_claim, ground, true_claim
from curriculum.tasksets.program_theorems.programs import TOPICS
from curriculum.tasksets.program_theorems.taskset import PROGRAM_THEOREMS, decided, proved
from curriculum.tasksets.program_theorems.terms import Term, UnprovenError, parsed, substituted
from curriculum.tasksets.program_theorems.theory import SORTS, Theory
from verifiers.checker import Checker
from verifiers.contract.verdict import Outcome
from verifiers.lean.solvers import TACTICS

LEVELS = range(5)
TOPIC_NAMES = tuple(TOPICS)
LONG = pytest.param(100, marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    with lean_toolchain(), Checker() as made:
        yield made


def value(theory: Theory, term: Term) -> Any:
    """Computes a ground term by recursion on the definitions, without the rewriting that the taskset has."""
    assert not isinstance(term, str)
    head, *parts = term[0], *(value(theory, part) for part in term[1:])
    if head in theory.constructors:
        return (head, *parts)
    for left, right in theory.functions[head].equations:
        values: dict[str, Any] = {}
        for pattern, part in zip(left[1:], parts, strict=True):
            pairs = [(pattern, part)] if isinstance(pattern, str) else list(zip(pattern[1:], part[1:], strict=False))
            if not isinstance(pattern, str) and pattern[0] != part[0]:
                break
            values |= {name: one for name, one in pairs if isinstance(name, str)}
        else:
            return value(theory, substituted(right, values))
    raise AssertionError(f"{head} has no equation for {parts}")


def sides(claim: Equation, values: dict[str, Term]) -> list[Any]:
    return [value(claim.theory, substituted(side, values)) for side in (claim.rule.left, claim.rule.right)]


@pytest.mark.parametrize("count", [1, LONG])
def test_every_reference_proof_passes_a_real_lean(checker: Checker, count: int) -> None:
    drafts: list[Any] = [
        PROGRAM_THEOREMS.draft(level, Random(f"{level} {at}")) for level in LEVELS for at in range(count)
    ]
    drafts += [decided(level, Random(f"{level} {at}")) for level in LEVELS for at in range(count)]
    verdicts = checker.check_many([(draft.spec, draft.answer) for draft in drafts])
    assert [draft.key for draft, one in zip(drafts, verdicts, strict=True) if one.outcome is not Outcome.PASS] == []


@pytest.mark.parametrize("count", [1, LONG])
def test_no_tactic_alone_proves_a_theorem_of_the_highest_level(checker: Checker, count: int) -> None:
    """Of the tactics that this Lean has; with the definitions where they are of use, after an induction too."""
    tried = []
    for at in range(count):
        spec: Any = proved(TOPIC_NAMES[at % len(TOPIC_NAMES)], 4, Random(at)).spec
        said = spec.statement[spec.statement.index("theorem target") :].removesuffix(":= sorry\n")
        names = ", ".join(re.findall(r"^def (\w+)", spec.statement, re.MULTILINE))
        more = (f"simp [{names}]", f"intro {said.split('(')[1].split()[0]} <;> simp [{names}]")
        tried += [(spec, f"{said}:= by\n  {tactic}\n") for tactic in (*TACTICS[:2], *more)]
    passed = sum(one.outcome is Outcome.PASS for one in checker.check_many(tried))
    assert passed <= count // 10


@pytest.mark.parametrize("topic", TOPICS)
def test_a_true_equation_holds_for_values_that_are_computed_and_needs_the_lemmas_of_its_level(topic: str) -> None:
    for level in LEVELS:
        rng = Random(f"{topic} {level}")
        claim = true_claim(topic, level, rng)
        assert claim.proof is not None
        least, most = LEMMAS[level]
        assert least <= len(claim.theory.needed(claim.proof.used)) <= most
        for _ in range(20):
            values = {name: ground(claim.theory, SORTS[name], rng, 2) for name in claim.rule.binders}
            left, right = sides(claim, values)
            assert left == right


@pytest.mark.parametrize("topic", TOPICS)
def test_a_false_equation_fails_for_its_counterexample(topic: str) -> None:
    for level in LEVELS:
        claim = false_claim(topic, level, Random(f"{topic} {level}"))
        left, right = sides(claim, dict(claim.values))
        assert left != right


def test_a_question_has_the_same_key_under_other_names_and_few_questions_repeat() -> None:
    keys = [PROGRAM_THEOREMS.draft(level, Random(f"{level} {at}")).key for level in LEVELS for at in range(60)]
    assert len(set(keys)) > 0.9 * len(keys)
    first, again = (decided(2, Random(5)) for _ in range(2))
    assert first == again
    assert "theorem target : ¬" in first.text


@pytest.mark.parametrize(
    "text",
    [
        "type N = z | s N\nf : N -> N\nf z = z\nf (s x) = f x\nlemma wrong : f x = x\n",
        "type N = z | s N\nf : N N -> N\nf z y = y\nf (s x) y = s (f x y)\nlemma early : f x y = f y x\n",
    ],
)
def test_a_theory_whose_lemma_does_not_follow_is_refused(text: str) -> None:
    with pytest.raises(UnprovenError):
        Theory.read(text)


def test_terms_are_read_with_their_arguments() -> None:
    assert parsed("f (g x) (s z)", {"x"}) == ("f", ("g", "x"), ("s", ("z",)))

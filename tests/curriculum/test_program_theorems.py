"""Theorems on generated programs: their proofs pass a real Lean, and their truth is computed a second time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
import z3
from lean_stand_in import lean_toolchain

from curriculum.tasksets.program_theorems.claims import LEMMAS, Equation, false_claim, ground, true_claim
from curriculum.tasksets.program_theorems.programs import TOPICS, theory_of
from curriculum.tasksets.program_theorems.taskset import PROGRAM_THEOREMS, decided, proved
from curriculum.tasksets.program_theorems.terms import Rule, Term, UnprovenError, parsed, substituted, variables_of
from curriculum.tasksets.program_theorems.theory import SORTS, Theory
from verifiers.checker import Checker
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.lean.solvers import TACTICS
from verifiers.lean.spec import LeanSpec

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


def outcomes(checker: Checker, tried: list[Any]) -> list[bool]:
    return [isinstance(one, Verdict) and one.passed for one in checker.check_many(tried)]


def tactics(statement: str) -> list[str]:
    """Tactics that may prove a statement alone: those that ship, and simplification by the definitions, also after an
    induction on each variable."""
    variables = " ".join(re.findall(r"\(([\w ]+) :", statement[statement.index("theorem target") :])).split()
    names = ", ".join(re.findall(r"^def (\w+)", statement, re.MULTILINE))
    given = f"intro {' '.join(variables)}\n  "
    inductions = [f"{given}induction {one} <;> simp_all [{names}]" for one in variables]
    return [*TACTICS[:2], f"simp [{names}]", *inductions]


EASY = """inductive N where
  | z : N
  | s : N → N

def plus : N → N → N
  | N.z, y => y
  | N.s x, y => N.s (plus x y)

theorem target : ∀ (x y : N), plus x (N.s y) = N.s (plus x y)"""


def test_an_induction_and_a_simplification_prove_an_easy_theorem(checker: Checker) -> None:
    """So that nothing is said of the hard ones by tactics that never work here."""
    tried: list[Any] = [(LeanSpec(statement=f"{EASY} := sorry\n"), f"{EASY} := by\n  {one}\n") for one in tactics(EASY)]
    assert outcomes(checker, tried) == [False, False, False, True, False]


@pytest.mark.parametrize("count", [1, LONG])
def test_no_tactic_alone_proves_a_theorem_of_the_highest_level(checker: Checker, count: int) -> None:
    """`omega` has nothing to do there: no statement is about `Nat` or `Int`."""
    tried: list[Any] = []
    owners: list[int] = []
    for at in range(count):
        spec: Any = proved(TOPIC_NAMES[at % len(TOPIC_NAMES)], 4, Random(at)).spec
        assert not re.search(r"\b(Nat|Int)\b", spec.statement)
        said = spec.statement[spec.statement.index("theorem target") :].removesuffix(":= sorry\n")
        tried += [(spec, f"{said}:= by\n  {tactic}\n") for tactic in tactics(spec.statement)]
        owners += [at] * (len(tried) - len(owners))
    proven = {at for at, one in zip(owners, outcomes(checker, tried), strict=True) if one}
    assert len(proven) <= count // 10


class Instances:
    """Z3 with the definitions as equations to instantiate, as `grind` has them, and constructors that it knows."""

    def __init__(self, theory: Theory) -> None:
        self._theory, self._context = theory, z3.Context()
        made = {one.sort: z3.Datatype(one.sort, self._context) for one in theory.constructors.values()}
        for one in theory.constructors.values():
            made[one.sort].declare(one.name, *((f"{one.name}{at}", made[part]) for at, part in enumerate(one.sorts)))
        self._sorts: dict[str, Any] = dict(zip(made, z3.CreateDatatypes(*made.values()), strict=True))
        self._symbols: dict[str, Any] = {
            one.name: z3.Function(one.name, *(self._sorts[sort] for sort in (*one.sorts, one.sort)))
            for one in theory.functions.values()
        } | {one.name: getattr(self._sorts[one.sort], one.name) for one in theory.constructors.values()}

    def proves(self, rule: Rule, variable: str = "") -> bool:
        """Proves an equation, by induction on a variable if one is given."""
        if not variable:
            return self._follows(rule, {}, [])
        sort = SORTS[variable]
        return all(
            self._follows(rule, {variable: self._applied(one.name, parts)}, [
                self._equation(rule, {variable: part}) for part, of in zip(parts, one.sorts, strict=True) if of == sort
            ])
            for one in self._theory.constructors.values() if one.sort == sort
            for parts in [[z3.Const(f"part{at}", self._sorts[of]) for at, of in enumerate(one.sorts)]]
        )  # fmt: skip

    def _follows(self, rule: Rule, values: dict[str, Any], hypotheses: list[Any]) -> bool:
        solver = z3.Solver(ctx=self._context)
        solver.set("rlimit", 1_000_000)
        solver.set("smt.mbqi", False)
        solver.add(*hypotheses, *(self._equation(one, {}) for one in self._theory.definitions))
        solver.add(self._term(rule.left, values) != self._term(rule.right, values))
        return bool(solver.check() == z3.unsat)

    def _equation(self, rule: Rule, values: dict[str, Any]) -> Any:
        left, right = (self._term(side, values) for side in (rule.left, rule.right))
        bound = [z3.Const(name, self._sorts[SORTS[name]]) for name in variables_of(rule.left) if name not in values]
        return z3.ForAll(bound, left == right, patterns=[left]) if bound else left == right

    def _term(self, term: Term, values: dict[str, Any]) -> Any:
        if isinstance(term, str):
            return values[term] if term in values else z3.Const(term, self._sorts[SORTS[term]])
        return self._applied(term[0], [self._term(part, values) for part in term[1:]])

    def _applied(self, name: str, parts: list[Any]) -> Any:
        return self._symbols[name](*parts) if parts else self._symbols[name]


@pytest.mark.parametrize("count", [1, LONG])
def test_no_search_over_instances_of_the_definitions_proves_a_theorem_of_the_highest_level(count: int) -> None:
    """It stands for `grind`, and proves a first lemma."""
    easy = Rule(("app", "a", ("e",)), "a", "app_e", ("a",))
    assert Instances(theory_of(TOPICS["lists"](Random(0)))).proves(easy, "a")
    proved_ones = 0
    for at in range(count):
        claim = true_claim(TOPIC_NAMES[at % len(TOPIC_NAMES)], 4, Random(at))
        search = Instances(claim.theory)
        proved_ones += any(search.proves(claim.rule, variable) for variable in ("", *claim.rule.binders))
    assert proved_ones <= count // 10


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

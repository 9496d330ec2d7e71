"""Lines for a calculator, puzzles and statements that a model proposes."""

from __future__ import annotations

import re
from random import Random
from typing import Any, get_args

import pytest
from written import puzzle, statement

from appliance.learning.recipes.recipe import ProposalName, ProposerRecipe, Recipe, TrainingRecipe
from curriculum.contract.task import Split, Task
from curriculum.proposing import puzzles
from curriculum.proposing.execution import canonical
from curriculum.proposing.kind import PROPOSER, Precedents, Provers
from curriculum.proposing.labels import Basis
from curriculum.proposing.puzzles import read_puzzle, solved
from curriculum.proposing.refusals import Reason, RefusedProposal
from curriculum.proposing.registry import KINDS
from curriculum.proposing.rewards import REWARDS
from curriculum.proposing.statements import _proposition, without_names
from curriculum.registry import make_task
from curriculum.seeds import draw
from runtime.errors import InfrastructureError
from verifiers.checker import Checker
from verifiers.contract.verdict import Outcome

LINES = {
    "print(84+36)": ("add:84,36", "120"),
    "import math\nprint(math.gcd(84,36))": ("gcd:84,36", "12"),
    "print((45-3)//7)": ("solve_plus:7,3,45", "6"),
    "print(oct(371)[2:])": ("octal:371", "563"),
    "print(sum(d for d in range(1,28+1) if 28%d==0))": ("divisor_sum:28", "56"),
}
NO_LINES = {
    "print(84*36": Reason.UNREADABLE,
    "print(__import__('os').getcwd())": Reason.UNREADABLE,
    "print(sum(d for d in range(1,28+1) if 27%d==0))": Reason.UNREADABLE,
    "print(123456+1)": Reason.UNREADABLE,
    "print((45-4)//7)": Reason.CONTRADICTORY,
    "print(3-9)": Reason.CONTRADICTORY,
    "print(84//0)": Reason.RAISES,
    "print(84+0)": Reason.SHOWN,
    "print(7//9)": Reason.CONSTANT,
    "import math\nprint(math.comb(900,400))": Reason.TOO_LARGE,
}
PUZZLES = {
    "a, b in 2..40\na * b == 391\na < b": "((a 17) (b 23))",
    "x in 1..1000\nx % 7 == 3\nx % 11 == 5\nx % 13 == 6": "((x 500))",
}
NO_PUZZLES = {
    "a, b in 1..20\na + b == 10": Reason.AMBIGUOUS,
    "a, b in 1..20\na + b == 100": Reason.CONTRADICTORY,
    "a, b in 1..20\na + b > 0\na * b == 323\na < b": Reason.VACUOUS,
    "a, b in 1..20\na == 3\nb == 4": Reason.SHOWN,
    "a, b in 1..20\na == b) (assert false": Reason.UNREADABLE,
    "a, b in 1..20\na ** b == 3": Reason.UNREADABLE,
    "a, b in 1..20\na + 1 == 3": Reason.UNREADABLE,
    "a in 1..9\na * a == 25": Reason.UNCHECKABLE,
    "a in 1..99\n" + "(" * 30 + "a" + ")" * 30 + " == 5": Reason.UNREADABLE,
}
STATEMENTS = {
    ("∀ a b c : Nat, a = b → b = c → c = a", "by\n  intro a b c h k\n  exact (h.trans k).symm"): "true",
    ("∀ n : Nat, n * n = n", "by\n  intro h\n  exact absurd (h 2) (by decide)"): "false",
}
NO_STATEMENTS = {
    ("∀ n : Nat, n = n", "by\n  intro n\n  rfl"): Reason.VACUOUS,
    ("∀ a b : Nat, a = b", "by\n  intro a b\n  rfl"): Reason.UNPROVED,
    ("True := trivial theorem x : True", "trivial"): Reason.FORBIDDEN,
    ("∀ n : Nat, (n = n", "by rfl"): Reason.UNREADABLE,
    ("∀ a b c : Nat, a = b → b = c → a = c", "by\n  sorry"): Reason.UNPROVED,
}


def refusal(kind: str, text: str, provers: Provers) -> Reason:
    with pytest.raises(RefusedProposal) as found:
        KINDS[kind].make(text, provers)
    return found.value.reason


def test_a_line_becomes_the_question_that_it_answers(provers: Provers, checker: Checker) -> None:
    for line, (key, answer) in LINES.items():
        made = KINDS["calculation"].make(line, provers)
        assert (made.task.key, made.label.answer, made.label.basis) == (key, answer, Basis.EXECUTED)
        assert checker.check(made.task.spec, answer).passed
    assert {line: refusal("calculation", line, provers) for line in NO_LINES} == NO_LINES


def test_a_puzzle_becomes_a_task_when_it_has_one_solution(provers: Provers, checker: Checker) -> None:
    for lines, answer in PUZZLES.items():
        made = KINDS["puzzle"].make(puzzle(lines), provers)
        assert (made.label.answer, made.label.basis) == (answer, Basis.SOLVED)
        assert checker.check(made.task.spec, answer).passed
    assert {lines: refusal("puzzle", puzzle(lines), provers) for lines in NO_PUZZLES} == NO_PUZZLES


def test_every_example_of_a_prompt_is_in_the_language_that_it_asks_for() -> None:
    examples = {
        name: re.findall(r"(?<!`)`([^`]+)`(?!`)", kind.ask(Random(1), Precedents()).question)
        for name, kind in KINDS.items()
    }
    bounds, distinct = examples["puzzle"]
    assert [one.head for one in read_puzzle(f"{bounds}\nc in 1..20\n{distinct}").conditions] == ["distinct"]
    language = puzzles.__doc__ or ""
    assert len(read_puzzle(re.sub(r"(?m)^(?! {4}).*$", "", language)).conditions) == 3
    assert [canonical(one) for one in examples["deduction"] if one.startswith("[")] == ["[3, 1], 2"]
    assert [_proposition(one) for one in examples["statement"] if one.startswith("∀")] == ["∀ n : Nat, n * 0 = 0"]


class BrokenAtLast:
    """A checker that loses every check of several conditions."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._checker, name)

    def check_many(self, pairs: Any) -> Any:
        found = self._checker.check_many(pairs)
        lost = {"outcome": Outcome.INFRA_ERROR, "reason": "the solver is gone", "score": 0.0}
        return found if len(pairs) == 1 else [one.model_copy(update=lost) for one in found]


def test_a_check_that_was_lost_does_not_say_that_a_condition_is_needed(checker: Checker) -> None:
    broken: Any = BrokenAtLast(checker)
    with pytest.raises(InfrastructureError, match="the solver is gone"):
        solved(read_puzzle("a, b in 2..40\na * b == 391\na < b"), broken)


def test_a_puzzle_with_other_names_in_another_order_is_the_same() -> None:
    one = read_puzzle("a, b in 2..40\na * b == 391\na < b")
    assert one.key == read_puzzle("x, y in 2..40\nx < y\nx * y == 391").key
    assert one.key != read_puzzle("a, b in 2..40\na * b == 391\nb < a").key


def test_a_statement_becomes_a_task_when_lean_took_a_proof_of_it_or_of_its_negation(
    provers: Provers, checker: Checker
) -> None:
    for (says, proof), side in STATEMENTS.items():
        made = KINDS["statement"].make(statement(says, proof), provers)
        assert (made.label.answer, made.label.basis) == (side, Basis.PROVED)
        assert checker.check(made.task.spec, made.reference).passed
        assert proof not in made.task.question
    assert {each: refusal("statement", statement(*each), provers) for each in NO_STATEMENTS} == NO_STATEMENTS


def test_a_statement_with_names_that_nothing_binds_is_refused(provers: Provers) -> None:
    """Of the first both the statement and its negation could be proved, for every `h`."""
    for says in ("(False.elim h : Nat) = m", "n = n + 0"):
        assert refusal("statement", statement(says, "rfl"), provers) is Reason.UNREADABLE


def test_statements_that_differ_in_bound_names_alone_are_one() -> None:
    same = [
        ("∀ a b : Nat, a = b → b = a", "∀ x y : Nat, x = y → y = x"),
        ("∀ p q, p ∧ q → q", "∀ r s, r ∧ s → s"),
        ("∀ (f : Nat → Nat) (n : Nat), f n = f n", "∀ (g : Nat → Nat) (m : Nat), g m = g m"),
        ("(∀ x : Nat, x = x) ∧ (∃ x : Nat, x = 1)", "(∀ x : Nat, x = x) ∧ (∃ y : Nat, y = 1)"),
        ("∃ f : Nat → Nat, f = fun x => x+1", "∃ h : Nat → Nat, h = fun n => n + 1"),
        ("(p q : Prop) → p → q → p", "(a b : Prop) → a → b → a"),
        ("∀ n > 0, n.succ ≠ 1", "∀ k > 0, k.succ ≠ 1"),
        ("∃! x, x = 2", "∃! y, y = 2"),
        ("(λx => x) 1 = 1", "(λ y => y) 1 = 1"),
    ]
    other = [
        ("∀ a b : Nat, a = b → b = a", "∀ a b : Nat, a = b → a = b"),
        ("∀ n : Nat, ∃ m : Nat, n < m", "∃ m : Nat, ∀ n : Nat, n < m"),
        ("∀ x : Nat, (∃ y : Nat, y = x) ∧ x = x", "∀ x : Nat, (∃ x : Nat, x = x) ∧ x = x"),
        ("∀ n : Nat, n.succ = 1", "∀ n : Nat, n.pred = 1"),
        ("(2 : Nat) = 2", "(2 : Int) = 2"),
    ]
    assert [pair for pair in same if without_names(pair[0]) != without_names(pair[1])] == []
    assert [pair for pair in other if without_names(pair[0]) == without_names(pair[1])] == []


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_asks_the_same_for_the_same_generator_with_a_check_that_nothing_meets(name: str) -> None:
    kind = KINDS[name]
    first, again, other = (kind.ask(Random(seed), Precedents()) for seed in (1, 1, 2))
    assert first.record() == again.record()
    assert first.taskset == PROPOSER
    assert (first.seed, first.seed % 4) != (other.seed, 1)
    assert first.tools == ()


def drawn(taskset: str, level: int, seed: int) -> Task:
    return make_task(taskset, level, draw(Split.TRAIN, Random(seed)), Split.TRAIN)


@pytest.mark.parametrize(
    ("name", "taskset"),
    [
        ("calculation", "divisors"),
        ("deduction", "programs"),
        ("puzzle", "constraint_models"),
        ("statement", "theorems"),
    ],
)
def test_a_prompt_shows_one_failed_task_to_vary_or_two_solved_ones_to_combine(name: str, taskset: str) -> None:
    kind = KINDS[name]
    failed, *solved = (drawn(taskset, 1, seed) for seed in range(3))
    other = drawn("tables", 1, 0)
    precedents = Precedents(failed=(other, failed), solved=(other, *solved)).for_kind(kind)
    assert (precedents.failed, precedents.solved) == ([failed], solved)
    if name == "calculation":
        return
    asked = {kind.ask(Random(seed), precedents).question for seed in range(20)}
    variants = [text for text in asked if failed.question in text]
    compositions = [text for text in asked if all(one.question in text for one in solved)]
    assert len(variants) == 1
    assert compositions
    assert len(variants) + len(compositions) == len(asked)
    assert {task.id for task in Precedents(solved=solved).drawn(Random(1))} == {task.id for task in solved}
    assert Precedents(solved=solved[:1]).drawn(Random(1)) == ()


def test_a_calculators_prompt_has_numbers_as_long_as_those_of_what_failed() -> None:
    failed = drawn("arithmetic", 1, 0)
    lengths = {len(number) for number in re.findall(r"\d{1,5}", failed.question)}
    for seed in range(9):
        asked = KINDS["calculation"].ask(Random(seed), Precedents(failed=(failed,))).question
        assert {len(number) for number in re.findall(r"\d+", asked)} <= lengths


def test_a_recipe_knows_the_kinds_and_the_rewards_and_refuses_what_does_not_fit() -> None:
    assert set(get_args(ProposalName)) == set(KINDS)
    assert set(get_args(ProposerRecipe.model_fields["reward"].annotation)) == set(REWARDS)
    assert "more than the 4 tasks" in str(ProposerRecipe(proposals=5).refusal(4, 0))
    assert "max_staleness = 0" in str(ProposerRecipe(proposals=2).refusal(4, 1))
    assert ProposerRecipe(proposals=2).refusal(4, 0) is None
    with pytest.raises(ValueError, match="max_staleness = 0"):
        Recipe(proposer=ProposerRecipe(proposals=2), training=TrainingRecipe(max_staleness=1))

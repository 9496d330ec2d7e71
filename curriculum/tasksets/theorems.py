"""Small theorems of Lean's core language, made from schemata that are true, each with a proof that needs no library.

Levels raise the number of steps of the proof. Variable names are drawn and arbitrary; the question is in the numbers
and in the implications. All text of a statement is assembled here, from integers and letters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from curriculum.contract.task import asked
from curriculum.contract.taskset import TaskDraft, require_level
from verifiers.contract.kinds import AnswerForm
from verifiers.lean import toolchain
from verifiers.lean.spec import LeanSpec
from verifiers.registry.spec import Spec

NAME = "target"
SECONDS = 30.0
TURNS, TOKENS = 4, 4_000
IMPOSSIBLE = 10**19
_PROPOSITIONS = "pqrstuvwabcdeg"
_VARIABLES = "xyzuvwkmij"
_MANY = tuple(f"{letter}{number}" for letter in "pqstuvw" for number in range(1, 9))


@dataclass(frozen=True)
class Theorem:
    """Lean statement with its proof."""

    key: str
    """Identity of the statement, independent of names."""
    statement: str
    """Text from the binders to the goal."""
    proof: str


def _witness(level: int, rng: Random) -> Theorem:
    """Makes a Lean theorem that numbers satisfying equations exist: one number and one equation, up to five of each."""
    count = level + 1
    names = rng.sample(_VARIABLES, count)
    solution = [rng.randint(2, 59 + 20 * level) for _ in names]
    rows = [[rng.randint(2, 19) for _ in names] for _ in range(count)]
    totals = [sum(factor * value for factor, value in zip(row, solution, strict=True)) for row in rows]
    equations = [
        f"{' + '.join(f'{factor} * {name}' for factor, name in zip(row, names, strict=True))} = {total}"
        for row, total in zip(rows, totals, strict=True)
    ]
    return Theorem(
        f"{rows}={totals}",
        f" : ∃ {' '.join(names)} : Nat, {' ∧ '.join(equations)}",
        f"⟨{', '.join([*map(str, solution), *['rfl'] * count])}⟩",
    )


def _implications(level: int, rng: Random) -> Theorem:
    """Makes a Lean theorem from two facts, and rules with one or two premises, of which only some are needed."""
    count = 6 + 2 * level
    names = rng.sample(_PROPOSITIONS, count)
    premises = [[], [], *(sorted(rng.sample(range(at), rng.randint(1, 2))) for at in range(2, count))]
    both = rng.randrange(2, count - 1)
    hypotheses = [f"(h{at} : {' → '.join(names[one] for one in [*before, at])})" for at, before in enumerate(premises)]
    rng.shuffle(hypotheses)

    def proof(at: int) -> str:
        terms = " ".join(proof(one) for one in premises[at])
        return f"(h{at} {terms})" if terms else f"h{at}"

    return Theorem(
        f"{premises} {both}",
        f" ({' '.join(names)} : Prop) {' '.join(hypotheses)} : {names[-1]} ∧ {names[both]}",
        f"⟨{proof(count - 1)}, {proof(both)}⟩",
    )


def _equations(level: int, rng: Random) -> Theorem:
    """Makes a Lean theorem from a chain of equal numbers, some equations reversed, under a factor and a term."""
    count = 3 + level
    names = rng.sample(_VARIABLES, count)
    turned = [rng.random() < 0.5 for _ in names[1:]]
    factor, term = rng.randint(2, 99), rng.randint(1, 99)
    links = [
        f"(h{at} : {right} = {left})" if back else f"(h{at} : {left} = {right})"
        for at, (left, right, back) in enumerate(zip(names, names[1:], turned, strict=False))
    ]
    rng.shuffle(links)
    steps = [f"h{at}.symm" if back else f"h{at}" for at, back in enumerate(turned)]
    chain = steps[-1]
    for step in reversed(steps[:-1]):
        chain = f"({step}).trans ({chain})"
    ends = (f"{factor} * {name} + {term}" for name in (names[0], names[-1]))
    return Theorem(
        f"{factor} {term} {turned}",
        f" ({' '.join(names)} : Nat) {' '.join(links)} : {' = '.join(ends)}",
        f"congrArg (fun n => {factor} * n + {term}) ({chain})",
    )


def _recurrence(level: int, rng: Random) -> Theorem:
    """Makes a Lean theorem on a sequence with constant growth. It asks for one value, then for the closed form, then
    for two to four equal sequences."""
    f = rng.choice("fgsu")
    start, step = rng.randint(1, 99), rng.randint(2, 99)
    key = f"{level} {start} {step}"
    grow = f"congrArg (fun m => m + {step})"
    if level >= 2:
        return _equal_sequences(level, key, start, step, rng)
    given = f" ({f} : Nat → Nat) (h : {f} 0 = {start}) (k : ∀ n, {f} (n + 1) = {f} n + {step})"
    if level == 1:
        return Theorem(
            key,
            f"{given} (n : Nat) : {f} n = {start} + {step} * n",
            f"by\n  induction n with\n  | zero => exact h\n  | succ n ih => exact (k n).trans ({grow} ih)",
        )
    at = rng.randint(2, 4)
    proof = "h"
    for before in range(at):
        proof = f"(k {before}).trans ({grow} ({proof}))"
    return Theorem(f"{key} {at}", f"{given} : {f} {at} = {start + at * step}", proof)


def _equal_sequences(count: int, key: str, start: int, step: int, rng: Random) -> Theorem:
    """Makes a Lean theorem on `count` sequences, each defined by the next, the last by the first, which stay equal."""
    names = rng.sample("fgsu", count)
    starts = " ".join(f"(h{at} : {name} 0 = {start})" for at, name in enumerate(names))
    rules = " ".join(
        f"(k{at} : ∀ n, {name} (n + 1) = {names[(at + 1) % count]} n + {step})" for at, name in enumerate(names)
    )
    pairs = list(pairwise(names))
    links = [f"ih{'.2' * at}{'.1' if at < count - 2 else ''}" for at in range(count - 1)]
    back = links[-1]
    for link in reversed(links[:-1]):
        back = f"({link}).trans ({back})"
    links.append(f"({back}).symm")
    zero = [f"h{at}.trans h{at + 1}.symm" for at in range(count - 1)]
    grow = f"congrArg (fun m => m + {step})"
    succ = [f"(k{at} n).trans (({grow} ({links[at + 1]})).trans (k{at + 1} n).symm)" for at in range(count - 1)]

    def both(parts: list[str]) -> str:
        return parts[0] if len(parts) == 1 else f"⟨{', '.join(parts)}⟩"

    return Theorem(
        key,
        f" ({' '.join(names)} : Nat → Nat) {starts} {rules} (n : Nat) : "
        + " ∧ ".join(f"{one} n = {other} n" for one, other in pairs),
        f"by\n  induction n with\n  | zero => exact {both(zero)}\n  | succ n ih => exact {both(succ)}",
    )


def _alternatives(level: int, rng: Random) -> Theorem:
    """Makes a Lean theorem with several cases, each of which implies the goal by rules of its own."""
    lengths = [rng.randint(2, 4 + level // 3) for _ in range(2 + level // 2)]
    lengths[rng.randrange(len(lengths))] = 3 + level
    names = rng.sample(_MANY, sum(lengths) + 1)
    goal, rest = names[0], names[1:]
    cases: list[str] = []
    rules: list[str] = []
    proofs: list[str] = []
    for length in lengths:
        steps, rest = [*rest[:length], goal], rest[length:]
        first = len(rules)
        rules += [f"(r{first + at} : {one} → {two})" for at, (one, two) in enumerate(pairwise(steps))]
        cases.append(steps[0])
        term = "c"
        for at in range(length):
            term = f"r{first + at} ({term})"
        proofs.append(f"(fun c => {term})")
    rng.shuffle(rules)
    proof = proofs[-1]
    for before in reversed(proofs[1:-1]):
        proof = f"(fun d => d.casesOn {before} {proof})"
    return Theorem(
        f"{sorted(lengths)} {_order_of(rules)}",
        f" ({' '.join(names)} : Prop) {' '.join(rules)} (d : {' ∨ '.join(cases)}) : {goal}",
        f"d.casesOn {proofs[0]} {proof}",
    )


def _order_of(rules: Sequence[str]) -> str:
    """Returns the numbers in the names of Lean hypotheses such as `(h3 : ...)`, in order, space-separated."""
    return " ".join(rule[2 : rule.index(" ")] for rule in rules)


def _compositions(level: int, rng: Random) -> Theorem:
    """Makes a Lean theorem on the value of nested functions, each defined by an equation."""
    count = 1 + min(level, 3)
    names = rng.sample("fghk", count)
    made = {name: (rng.randint(2, 9), rng.randint(1, 29)) for name in names}
    chain = [*names, *(rng.choice(names) for _ in range(level))]
    rng.shuffle(chain)
    value = rng.randint(2, 29)
    key = f"{[made[name] for name in names]} {[names.index(name) for name in chain]} {value}"
    term, proof = str(value), "rfl"
    for name in chain:
        factor, plus = made[name]
        proof = f"(e{name} ({term})).trans (congrArg (fun m => {factor} * m + {plus}) ({proof}))"
        term, value = f"{name} {term}" if term.isdigit() else f"{name} ({term})", factor * value + plus
    given = " ".join(f"(e{name} : ∀ n, {name} n = {a} * n + {b})" for name, (a, b) in made.items())
    return Theorem(key, f" ({' '.join(names)} : Nat → Nat) {given} : {term} = {value}", proof)


SCHEMATA: dict[str, Callable[[int, Random], Theorem]] = {
    "witness": _witness,
    "implications": _implications,
    "equations": _equations,
    "recurrence": _recurrence,
    "alternatives": _alternatives,
    "compositions": _compositions,
}


_ASKED = (
    "Prove this in Lean 4, without any import",
    "Give a proof of this statement in Lean 4 that imports nothing",
    "Lean 4, no imports. Prove",
    "Find a proof in core Lean 4 for this theorem",
)


def false_statement(draft: TaskDraft, number: int) -> Spec:
    """Returns a spec with a false statement of the same name, so no proof passes."""
    assert isinstance(draft.spec, LeanSpec)
    wrong = f"theorem {NAME} : {IMPOSSIBLE + number} + 1 = {IMPOSSIBLE + number} := sorry\n"
    return draft.spec.model_copy(update={"statement": wrong})


class Theorems:
    """Taskset of Lean theorems."""

    name = "theorems"
    version = 3
    level_count = 5
    topics: Sequence[str] = tuple(SCHEMATA)
    null_answers: Sequence[str] = (
        f"theorem {NAME} : True := trivial",
        f"theorem {NAME} : 1 = 1 := rfl",
        f"theorem {NAME} : 0 + 0 = 0 := rfl",
        "example : True := trivial",
    )

    def draft(self, level: int, rng: Random) -> TaskDraft:
        """Makes a task to prove a Lean statement of that level. Raises LevelError for an unknown level."""
        require_level(self, level)
        topic = rng.choice(self.topics)
        made = SCHEMATA[topic](level, rng)
        statement = f"theorem {NAME}{made.statement}"
        text = f"{rng.choice(_ASKED)}:\n{statement}\nEnd with the theorem and its proof in one fenced code block."
        return TaskDraft(
            topic=topic,
            key=f"theorems {topic}:{made.key}",
            messages=asked(text),
            spec=LeanSpec(statement=f"{statement} := sorry\n", seconds=SECONDS),
            answer=f"{statement} := {made.proof}\n",
            form=AnswerForm.BLOCK,
            turns=TURNS,
            tokens=TOKENS,
        )

    def unsolvable(self, draft: TaskDraft, number: int) -> Spec:
        """Returns a spec that no proof passes."""
        return false_statement(draft, number)

    def missing(self) -> str:
        """Returns how to install Lean if it is missing; empty if it is installed."""
        return toolchain.missing()


THEOREMS = Theorems()

"""Lean statements that are true or false: the answer proves the statement, or its negation.

Only the true one of the two is checked; the generator knows which, so the answerer has to find out and prove it. True
and false statements are drawn equally often, and the wrong one has no proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from random import Random

from curriculum.contract.topics import Item, TopicTaskset
from curriculum.tasksets.theorems import NAME, SECONDS, TOKENS, TURNS, false_statement
from verifiers.contract.kinds import AnswerForm
from verifiers.lean import toolchain
from verifiers.lean.spec import LeanSpec

_PROPOSITIONS = tuple(f"{letter}{at}" for letter in "pqrst" for at in range(1, 4))
_NUMBERS = "xyzuvwkmij"


@dataclass(frozen=True)
class Claim:
    """Closed Lean statement with its truth value, and a proof of it or of its negation."""

    key: str
    statement: str
    true: bool
    proof: str


def _derivations(level: int, rng: Random) -> Claim:
    """Makes a Lean statement about rules between propositions: does the last one follow from the first ones?"""
    count = 5 + 2 * level
    names = rng.sample(_PROPOSITIONS, count)
    wanted = rng.random() < 0.5
    while True:
        rules: list[tuple[tuple[int, ...], int]] = []
        for at in range(2, count):
            others = [one for one in range(count) if one != at]
            before = sorted(rng.sample(range(at), rng.randint(1, 2))) if rng.random() < 0.8 else rng.sample(others, 2)
            rules.append((tuple(before), at))
        made: dict[int, str] = {0: "h0", 1: "h1"}
        for _ in rules:
            for at, (needed, after) in enumerate(rules):
                if after not in made and all(one in made for one in needed):
                    made[after] = f"(r{at} {' '.join(made[one] for one in needed)})"
        if (count - 1 in made) == wanted:
            break
    order = rng.sample(range(len(rules)), len(rules))
    said = [
        names[0],
        names[1],
        *(f"({' → '.join(names[one] for one in (*rules[at][0], rules[at][1]))})" for at in order),
    ]
    statement = f"∀ {' '.join(names)} : Prop, {' → '.join([*said, names[-1]])}"
    if wanted:
        proof = f"fun {' '.join(names)} h0 h1 {' '.join(f'r{at}' for at in order)} => {made[count - 1]}"
    else:
        given = ["True.intro", "True.intro"]
        for at in order:
            needed, after = rules[at]
            if after in made:
                given.append(f"(fun {' '.join('_' for _ in needed)} => True.intro)")
            else:
                false = next(place for place, one in enumerate(needed) if one not in made)
                given.append(f"(fun {' '.join('x' if place == false else '_' for place in range(len(needed)))} => x)")
        proof = f"fun h => h {' '.join('True' if at in made else 'False' for at in range(count))} {' '.join(given)}"
    return Claim(f"{[rules[at] for at in order]}", statement, wanted, proof)


def _equalities(level: int, rng: Random) -> Claim:
    """Makes a true or false Lean statement about equations between numbers: are two of them equal?"""
    count = 5 + level
    names = rng.sample(_NUMBERS, count)
    true = rng.random() < 0.5
    path = [0, *rng.sample(range(2, count), rng.randint(1 + level // 2, count - 2)), 1]
    rest = [at for at in range(count) if at not in path]
    links = list(pairwise(path))
    if true:
        links += [(rng.choice(path), at) for at in rest]
        same = set(range(count))
    else:
        cut = rng.randrange(len(links))
        del links[cut]
        left = path[: cut + 1]
        right = path[cut + 1 :]
        same = set(left)
        for at in rest:
            side = rng.choice((left, right))
            links.append((rng.choice(side), at))
            if side is left:
                same.add(at)
    turned = [rng.random() < 0.5 for _ in links]
    order = rng.sample(range(len(links)), len(links))
    said = [
        f"{names[links[at][1]]} = {names[links[at][0]]}"
        if turned[at]
        else f"{names[links[at][0]]} = {names[links[at][1]]}"
        for at in order
    ]
    statement = f"∀ {' '.join(names)} : Nat, {' → '.join([*said, f'{names[0]} = {names[1]}'])}"
    if true:
        steps = [f"h{at}.symm" if turned[at] else f"h{at}" for at in range(len(path) - 1)]
        chain = steps[-1]
        for step in reversed(steps[:-1]):
            chain = f"({step}).trans ({chain})"
        proof = f"fun {' '.join(names)} {' '.join(f'h{at}' for at in order)} => {chain}"
    else:
        values = " ".join("0" if at in same else "1" for at in range(count))
        proof = f"fun h => absurd (h {values} {' '.join('rfl' for _ in order)}) (by decide)"
    return Claim(f"{[(links[at], turned[at]) for at in order]}", statement, true, proof)


def _sequences(level: int, rng: Random) -> Claim:
    """Makes a true or false Lean statement on the value of a later term of a sequence with constant growth."""
    start, step, at = rng.randint(1, 60), rng.randint(2, 30), rng.randint(2, 3) + level
    true = rng.random() < 0.5
    value = start + at * step
    said = value if true else value + rng.choice((-2, -1, 1, 2, step))
    statement = f"∀ f : Nat → Nat, f 0 = {start} → (∀ n, f (n + 1) = f n + {step}) → f {at} = {said}"
    if true:
        proof = "h"
        for before in range(at):
            proof = f"(k {before}).trans (congrArg (fun m => m + {step}) ({proof}))"
        proof = f"fun f h k => {proof}"
    else:
        model = f"fun n => Nat.rec (motive := fun _ => Nat) {start} (fun _ m => m + {step}) n"
        proof = f"fun h => absurd (h ({model}) rfl (fun _ => rfl)) (by decide)"
    return Claim(f"{start} {step} {at} {said}", statement, true, proof)


def _properties(level: int, rng: Random) -> Claim:
    """Makes a true or false Lean statement about properties that imply each other: does the first imply the last?"""
    count = 5 + level
    names = [f"P{at}" for at in range(1, count + 1)]
    true = rng.random() < 0.5
    links = list(pairwise(range(count)))
    if not true:
        turned = rng.randrange(len(links))
        links[turned] = links[turned][::-1]
    more = [(one, two) for one in range(count) for two in range(one) if rng.random() < 0.3]
    rules = [*links, *(pair for pair in more if pair not in links)]
    order = rng.sample(range(len(rules)), len(rules))
    shuffled = rng.sample(names, count)
    said = [f"(∀ n, {shuffled[rules[at][0]]} n → {shuffled[rules[at][1]]} n)" for at in order]
    statement = (
        f"∀ {' '.join(shuffled)} : Nat → Prop, {' → '.join(said)} → (∃ n, {shuffled[0]} n) → ∃ n, {shuffled[-1]} n"
    )
    reached = {0}
    for _ in rules:
        reached |= {two for one, two in rules if one in reached}
    if true:
        term = "h"
        for at in range(count - 1):
            term = f"(r{at} n {term})"
        proof = f"fun {' '.join(shuffled)} {' '.join(f'r{at}' for at in order)} ⟨n, h⟩ => ⟨n, {term}⟩"
    else:
        models = " ".join(f"(fun _ => {'True' if at in reached else 'False'})" for at in range(count))
        given = " ".join("(fun _ _ => True.intro)" if rules[at][1] in reached else "(fun _ x => x)" for at in order)
        proof = f"fun h => match h {models} {given} ⟨0, True.intro⟩ with | ⟨_, x⟩ => x"
    return Claim(f"{count} {[rules[at] for at in order]}", statement, true, proof)


SCHEMATA = {
    "disproofs_of_derivations": _derivations,
    "disproofs_of_equalities": _equalities,
    "disproofs_of_sequences": _sequences,
    "disproofs_of_properties": _properties,
}
"""Generators of claims by level; each knows without Lean if its claim is true."""

_ASKED = (
    "One of these two statements of Lean 4 is true. Prove the one that is",
    "Prove or disprove: give a proof of the first statement, or of the second, which is its negation",
    "Decide whether this statement is true, and prove it or its negation, as they stand here",
    "Of a statement and its negation, prove the one that holds",
)


def _made(schema: Callable[[int, Random], Claim], level: int, rng: Random) -> Item:
    claim = schema(level, rng)
    yes, no = f"theorem {NAME} : {claim.statement}", f"theorem {NAME} : ¬ ({claim.statement})"
    right = yes if claim.true else no
    text = (
        f"{rng.choice(_ASKED)}, in Lean 4 without any import:\n{yes}\n{no}\n"
        "End with the theorem that you prove, and its proof, in one fenced code block."
    )
    return Item(
        text=text,
        key=claim.key,
        spec=LeanSpec(statement=f"{right} := sorry\n", seconds=SECONDS),
        answer=f"{right} := {claim.proof}\n",
    )


DISPROOFS = TopicTaskset(
    name="disproofs",
    version=2,
    makers={name: partial(_made, schema) for name, schema in SCHEMATA.items()},
    null_answers=(
        f"theorem {NAME} : True := trivial",
        f"theorem {NAME} : False := by decide",
        f"theorem {NAME} : ¬ False := fun h => h",
        "example : True := trivial",
    ),
    form=AnswerForm.BLOCK,
    turns=TURNS,
    tokens=TOKENS,
    contradicted=false_statement,
    lacking=toolchain.missing,
)

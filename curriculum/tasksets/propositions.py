"""Questions about propositional formulas: the one assignment that satisfies them, how many do, what follows.

Answers are exact, because all assignments are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from random import Random

from curriculum.contract.topics import Item, TopicTaskset
from verifiers.answers.spec import AnswerSpec
from verifiers.exact.spec import ExactSpec

_LETTERS = "pqrstuvwxy"
ATTEMPTS = 2_000
World = tuple[bool, ...]


@dataclass(frozen=True)
class Formula:
    words: str
    """Wording, with variables by position: `{0}`."""
    holds: Callable[[World], bool]


@lru_cache(maxsize=8)
def _worlds(count: int) -> tuple[World, ...]:
    return tuple(product((False, True), repeat=count))


def _literal(at: int, positive: bool) -> Formula:
    return Formula(f"{{{at}}}", lambda w: w[at]) if positive else Formula(f"not {{{at}}}", lambda w: not w[at])


def _formula(count: int, size: int, rng: Random) -> Formula:
    """Draws a propositional formula in `size` different variables of `count`."""
    parts = [_literal(at, rng.random() < 0.5) for at in rng.sample(range(count), size)]
    one, two = parts[0], parts[1]
    sort = rng.randrange(4)
    if size == 2 and sort == 0:
        return Formula(f"{one.words} if and only if {two.words}", lambda w: one.holds(w) == two.holds(w))
    if size == 2 and sort == 1:
        return Formula(f"if {one.words}, then {two.words}", lambda w: two.holds(w) or not one.holds(w))
    if size == 3 and sort == 0:
        return Formula(
            f"if {one.words} and {two.words}, then {parts[2].words}",
            lambda w: parts[2].holds(w) or not (one.holds(w) and two.holds(w)),
        )
    if size == 3 and sort == 1:
        return Formula(
            f"exactly one of these: {one.words}, {two.words}, {parts[2].words}",
            lambda w: sum(part.holds(w) for part in parts) == 1,
        )
    return Formula(" or ".join(part.words for part in parts), lambda w: any(part.holds(w) for part in parts))


def _drawn(level: int, rng: Random) -> tuple[int, list[Formula]]:
    count = 4 + level
    size = 2 if level == 0 else 3
    return count, [_formula(count, min(size, rng.randint(2, 3)), rng) for _ in range(count)]


def _written(formulas: Sequence[Formula], names: Sequence[str]) -> str:
    return "\n".join(f"{at}. {one.words.format(*names)}" for at, one in enumerate(formulas, 1))


_GIVEN = (
    "The letters {letters} stand for statements that are true or false. All of these hold (not binds first):",
    "Let each of {letters} be true or false. The following are all true, where not refers to one letter:",
    "These conditions on the truth of {letters} are met; not belongs to the letter behind it:",
    "Each of {letters} is a true or a false statement, and not applies to the next letter only. It is known that:",
)


def _head(names: Sequence[str], rng: Random) -> str:
    return rng.choice(_GIVEN).format(letters=", ".join(names))


def _names(count: int) -> list[str]:
    return list(_LETTERS[:count])


def _unique(level: int, rng: Random) -> Item:
    """Asks for the only assignment that satisfies some propositional formulas."""
    for _ in range(ATTEMPTS):
        count, _ = _drawn(level, rng)
        count += 1
        formulas: list[Formula] = []
        worlds: Sequence[World] = _worlds(count)
        while len(worlds) > 1:
            more = _formula(count, 2 if level == 0 else rng.randint(2, 3), rng)
            left = [world for world in worlds if more.holds(world)]
            if left and len(left) < len(worlds):
                formulas.append(more)
                worlds = left
        if len(formulas) <= 2 * count:
            break
    names = _names(count)
    answer = "".join("T" if true else "F" for true in worlds[0])
    text = (
        f"{_head(names, rng)}\n{_written(formulas, names)}\nOnly one assignment is possible. Answer with one letter "
        f"for each "
        f"of {', '.join(names)}, in this order and without blanks: T for true, F for false."
    )
    return Item(text=text, key=_key(formulas), spec=ExactSpec(expected=answer), answer=answer)


def _count(level: int, rng: Random) -> Item:
    """Asks how many assignments satisfy some propositional formulas: at least three do."""
    while True:
        count, formulas = _drawn(level, rng)
        count += 1
        formulas = formulas[: 3 + level]
        worlds = [world for world in _worlds(count) if all(one.holds(world) for one in formulas)]
        if len(worlds) > 2:
            break
    names = _names(count)
    text = (
        f"{_head(names, rng)}\n{_written(formulas, names)}\nHow many assignments of true or false to all {count} "
        f"letters are "
        "possible, and how many of them make {first} true? Answer with the two numbers, with a blank between them."
    ).replace("{first}", names[0])
    answer = f"{len(worlds)} {sum(world[0] for world in worlds)}"
    return Item(text=text, key=f"{count} {_key(formulas)}", spec=ExactSpec(expected=answer), answer=answer)


def _follows(level: int, rng: Random) -> Item:
    """Asks which of six statements follow from some propositional formulas: some, but not all."""
    for _ in range(ATTEMPTS):
        count, formulas = _drawn(level, rng)
        worlds = [world for world in _worlds(count) if all(one.holds(world) for one in formulas)]
        claims = [_formula(count, 2, rng) for _ in range(6)]
        follows = [all(claim.holds(world) for world in worlds) for claim in claims]
        words = {claim.words for claim in claims} | {formula.words for formula in formulas}
        if worlds and 1 < sum(follows) < 5 and len(words) == len(claims) + len(formulas):
            break
    names = _names(count)
    claimed = "\n".join(f"{'ABCDEF'[at]}: {claim.words.format(*names)}" for at, claim in enumerate(claims))
    answer = "".join(letter for letter, true in zip("ABCDEF", follows, strict=True) if true)
    text = (
        f"{_head(names, rng)}\n{_written(formulas, names)}\nWhich of these follow, that is, are true in every "
        f"possible case?\n"
        f"{claimed}\nAnswer with their capital letters, in the order of the alphabet and without blanks."
    )
    return Item(text=text, key=f"{_key(formulas)} {_key(claims)}", spec=ExactSpec(expected=answer), answer=answer)


def _parity(level: int, rng: Random) -> Item:
    """Asks for the only bits that satisfy equations modulo two. The answer reads them as a number in base two."""
    count = 5 + level
    solution = [rng.random() < 0.5 for _ in range(count)]
    rows: list[tuple[int, ...]] = []
    worlds = list(_worlds(count))
    while len(worlds) > 1:
        row = tuple(sorted(rng.sample(range(count), rng.randint(2, 3))))
        odd = sum(solution[at] for at in row) % 2
        left = [world for world in worlds if sum(world[at] for at in row) % 2 == odd]
        if len(left) < len(worlds):
            rows.append(row)
            worlds = left
        elif len(worlds) == 2:  # pairs alone never tell an assignment from its opposite
            at = rng.choice([at for at in range(count) if worlds[0][at] != worlds[1][at]])
            rows.append((at,))
            worlds = [world for world in worlds if world[at] == solution[at]]
    names = [f"x{at}" for at in range(1, count + 1)]
    said = "\n".join(
        f"{' + '.join(names[at] for at in row)} is {'odd' if sum(solution[at] for at in row) % 2 else 'even'}"
        for row in rows
    )
    answer = str(int("".join("1" if true else "0" for true in solution), 2))
    text = (
        f"Each of {', '.join(names)} is 0 or 1.\n{said}\nRead {''.join(names)} as a number in base two, {names[0]} "
        f"being its "
        f"first digit. {rng.choice(('Which number is it?', 'What is its value?', 'What number results?'))} "
        f"Answer in decimal digits."
    )
    key = f"{[(row, sum(solution[at] for at in row) % 2) for row in rows]}"
    return Item(text=text, key=key, spec=AnswerSpec(notation="digits", expected=answer), answer=answer)


def _key(formulas: Sequence[Formula]) -> str:
    return " & ".join(sorted(one.words for one in formulas))


PROPOSITIONS = TopicTaskset(
    name="propositions",
    version=2,
    makers={"one_assignment": _unique, "numbers_of_assignments": _count, "what_follows": _follows, "parities": _parity},
    null_answers=("0", "true", "T", "none"),
)

"""Values that meet conditions, of which there may be several: any that meet all of them are right.

The answer assigns a value to each name, as SMT-LIB's solvers do, and every condition is evaluated with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from curriculum.contract.taskset import TaskDraft
from curriculum.contract.topics import IMPOSSIBLE, Item, TopicTaskset
from verifiers.contract.kinds import AnswerForm
from verifiers.registry.spec import Spec
from verifiers.smt.spec import SmtSpec

_GIVEN = ("given", "fixed", "already decided", "settled")
_PACKED = ("Things to pack", "What may be taken along", "Goods to choose from", "On the list are these")
_FORM = "Answer in one fenced code block with a value for each name, in this form: ((a 1) (b 2))"


def _item(text: str, names: Sequence[str], conditions: Sequence[str], values: Sequence[int], key: str) -> Item:
    claim = "\n".join(
        [*(f"(declare-const {name} Int)" for name in names), *(f"(assert {condition})" for condition in conditions)]
    )
    answer = "(" + " ".join(f"({name} {_number(value)})" for name, value in zip(names, values, strict=True)) + ")"
    return Item(
        text=f"{text}\n{_FORM}, for {', '.join(names)}.",
        key=key,
        spec=SmtSpec(claim=claim, question="model", second="none"),
        answer=answer,
    )


def _number(value: int) -> str:
    return str(value) if value >= 0 else f"(- {-value})"


def _queens(level: int, rng: Random) -> Item:
    """Asks to place non-attacking chess queens, some of which are given."""
    size = 7 + level
    solution = _placed(size, rng)
    fixed = sorted(rng.sample(range(size), 1 + rng.randrange(2)))
    names = [f"q{row}" for row in range(1, size + 1)]
    conditions = [f"(<= 1 {name} {size})" for name in names]
    conditions += [
        f"(and (not (= {names[a]} {names[b]})) (not (= (- {names[a]} {names[b]}) {b - a}))"
        f" (not (= (- {names[b]} {names[a]}) {b - a})))"
        for a in range(size) for b in range(a + 1, size)
    ]  # fmt: skip
    conditions += [f"(= {names[at]} {solution[at]})" for at in fixed]
    free = [(at, column) for at in range(size) for column in range(1, size + 1) if solution[at] != column]
    blocked = sorted(rng.sample([one for one in free if one[0] not in fixed], 2))
    conditions += [f"(not (= {names[at]} {column}))" for at, column in blocked]
    said = " and ".join(f"{names[at]} = {solution[at]}" for at in fixed)
    are = "are" if len(fixed) > 1 else "is"
    holes = " or ".join(f"in row {at + 1}, column {column}" for at, column in blocked)
    text = (
        f"Place {size} queens on a board of {size} by {size}, one in each row, so that no two of them stand in the "
        f"same column or "
        f"diagonal. q1 is the column of the queen in row 1, counted from 1, and so on. {said} "
        f"{are} {rng.choice(_GIVEN)}, and no queen may stand {holes}."
    )
    return _item(text, names, conditions, solution, f"{size} {[(at, solution[at]) for at in fixed]} {blocked}")


def _placed(size: int, rng: Random) -> list[int]:
    """Returns a placement of non-attacking queens, the column by row, found by a search in random order."""

    def grow(found: list[int]) -> list[int] | None:
        if len(found) == size:
            return found
        for column in rng.sample(range(1, size + 1), size):
            if all(column != other and abs(column - other) != len(found) - row for row, other in enumerate(found)):
                whole = grow([*found, column])
                if whole is not None:
                    return whole
        return None

    found = grow([])
    assert found is not None
    return found


def _sums(level: int, rng: Random) -> Item:
    """Asks for different whole numbers with given sums and products."""
    count = 3 + level
    names = list("abcdefgh"[:count])
    values = rng.sample(range(1, 10 + 10 * level), count)
    most = 10 + 10 * level
    conditions = [f"(<= 1 {name} {most})" for name in names]
    conditions.append(f"(distinct {' '.join(names)})")
    said: list[str] = []
    while len(said) < count - 1:
        some = sorted(rng.sample(range(count), rng.randint(2, 3)))
        if rng.random() < 0.3:
            one, two = some[:2]
            words = f"{names[one]} times {names[two]} is {values[one] * values[two]}"
            condition = f"(= (* {names[one]} {names[two]}) {values[one] * values[two]})"
        else:
            total = sum(values[at] for at in some)
            words = f"{' + '.join(names[at] for at in some)} is {total}"
            condition = f"(= (+ {' '.join(names[at] for at in some)}) {total})"
        if words not in said:
            said.append(words)
            conditions.append(condition)
    opening = rng.choice(("Find", "Give", "Choose", "Look for"))
    text = (
        f"{opening} different whole numbers {', '.join(names)} from 1 to {most} that meet these conditions: "
        f"{'; '.join(said)}."
    )
    return _item(text, names, conditions, values, f"{most} {sorted(said)}")


def _remainders(level: int, rng: Random) -> Item:
    """Asks for one or more four-digit numbers with given remainders."""
    count = 1 + level // 2
    names = list("xyz"[:count])
    values = [rng.randint(1000, 9999) for _ in names]
    conditions, said = [f"(<= 1000 {name} 9999)" for name in names], []
    for name, value in zip(names, values, strict=True):
        for divisor in sorted(rng.sample(range(3, 20), 2 + level // 3)):
            conditions.append(f"(= (mod {name} {divisor}) {value % divisor})")
            said.append(f"{name} leaves the remainder {value % divisor} when divided by {divisor}")
    for at in range(1, count):
        total = values[at - 1] + values[at]
        low, high = total - rng.randint(0, 150), total + rng.randint(1, 150)
        conditions.append(f"(<= {low} (+ {names[at - 1]} {names[at]}) {high})")
        said.append(f"{names[at - 1]} + {names[at]} is at least {low} and at most {high}")
    opening = rng.choice(("Find", "Give", "Choose", "Look for"))
    what = "a number" if count == 1 else "numbers"
    text = f"{opening} {what} {', '.join(names)} of four digits such that {'; '.join(said)}."
    return _item(text, names, conditions, values, " ".join(sorted(said)))


def _packing(level: int, rng: Random) -> Item:
    """Asks which things to pack, 1 or 0 each, within a weight limit and worth enough."""
    count = 6 + 2 * level
    names = [f"t{at}" for at in range(1, count + 1)]
    weights = [rng.randint(3, 30) for _ in names]
    worths = [rng.randint(3, 40) for _ in names]
    capacity = sum(weights) // 2
    best = [0] * (capacity + 1)
    chosen = [0] * (capacity + 1)
    for at in range(count):
        for room in range(capacity, weights[at] - 1, -1):
            if best[room - weights[at]] + worths[at] > best[room]:
                best[room] = best[room - weights[at]] + worths[at]
                chosen[room] = chosen[room - weights[at]] | 1 << at
    values = [chosen[capacity] >> at & 1 for at in range(count)]
    goal = best[capacity] - (0 if level > 1 else rng.randint(0, 3))
    conditions = [f"(<= 0 {name} 1)" for name in names]
    weighed = " ".join(f"(* {weight} {name})" for weight, name in zip(weights, names, strict=True))
    valued = " ".join(f"(* {worth} {name})" for worth, name in zip(worths, names, strict=True))
    conditions += [f"(<= (+ {weighed}) {capacity})", f"(>= (+ {valued}) {goal})"]
    said = "; ".join(f"{name} weighs {w} and is worth {v}" for name, w, v in zip(names, weights, worths, strict=True))
    text = (
        f"{rng.choice(_PACKED)}: {said}. Choose some "
        f"of them that weigh "
        f"at most {capacity} together and are worth at least {goal} together. The value of a name is 1 if the thing is "
        "chosen, and 0 if not."
    )
    return _item(text, names, conditions, values, f"{weights} {worths} {goal}")


def _contradicted(draft: TaskDraft, number: int) -> Spec:
    """Returns the draft's spec with one more name whose required value is unrelated, so no honest answer passes."""
    assert isinstance(draft.spec, SmtSpec)
    more = f"\n(declare-const other Int)\n(assert (= other {IMPOSSIBLE + number}))"
    return draft.spec.model_copy(update={"claim": draft.spec.claim + more})


CONSTRAINT_MODELS = TopicTaskset(
    name="constraint_models",
    version=2,
    makers={"queens": _queens, "systems": _sums, "remainders_at_once": _remainders, "packing": _packing},
    null_answers=("()", "((a 1) (b 2))", "sat", "unsat"),
    form=AnswerForm.BLOCK,
    contradicted=_contradicted,
)

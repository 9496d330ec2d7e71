"""Who has what, where and in which order: clues of which exactly one arrangement is left.

Clues are chosen against a solution; each one kept excludes an arrangement, and all arrangements are tried, so that
exactly one fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from random import Random

from curriculum.contract.topics import Item, TopicTaskset
from curriculum.tasksets.statements import COLOURS, DRINKS, PEOPLE, PETS, TRADES, listed
from verifiers.exact.spec import ExactSpec

Order = tuple[int, ...]


@lru_cache(maxsize=8)
def _orders(count: int) -> tuple[Order, ...]:
    """Returns all ways to put `count` things in places: the thing at index i is in place order[i]."""
    return tuple(permutations(range(count)))


@dataclass(frozen=True)
class Clue:
    words: str
    key: str
    holds: Callable[[Sequence[Order]], bool]


Holds = Callable[[Sequence[Order]], bool]


def _belongs(sort: int, thing: int, people: Sequence[int]) -> Holds:
    """Returns the condition that one of these people has the thing."""
    return lambda w: w[sort][thing] in people


def _together(sort: int, thing: int, other: int, mate: int) -> Holds:
    """Returns the condition that both things have the same owner."""
    return lambda w: w[sort][thing] == w[other][mate]


def _within(one: int, first: int, last: int) -> Holds:
    return lambda w: first <= w[0][one] <= last


def _apart(one: int, two: int, least: int, most: int) -> Holds:
    """Returns the condition that the second comes between `least` and `most` places after the first."""
    return lambda w: least <= w[0][two] - w[0][one] <= most


def _chosen(clues: Sequence[Clue], worlds: Sequence[Sequence[Order]], most: int) -> list[Clue] | None:
    """Picks clues in order until they leave one arrangement, each excluding at least one. None if that needs more than
    `most` clues or cannot be reached."""
    kept: list[Clue] = []
    for clue in clues:
        left = [world for world in worlds if clue.holds(world)]
        if len(left) < len(worlds):
            kept.append(clue)
            worlds = left
        if len(worlds) == 1:
            return kept if len(kept) <= most else None
    return None


def _line(level: int, rng: Random) -> Item:
    """Makes a puzzle about the order of people in a row, from left to right."""
    count = 4 + (level + 1) // 2 if level < 4 else 7
    names = rng.sample(PEOPLE, count)
    solution = rng.choice(_orders(count))
    at = {place: who for who, place in enumerate(solution)}
    clues = []
    for one in range(count):
        for two in range(count):
            gap = solution[two] - solution[one]
            if gap > 0:
                clues.append(_left(names, one, two))
            if gap == 1 and level < 4:
                clues.append(_beside(names, one, two))
            if gap > 1:
                clues.append(_between(names, one, two, gap - 1))
    middle = at[count // 2]
    clues.append(Clue(f"{names[middle]} stands neither at the left nor at the right end", f"m{middle}",
                      _within(middle, 1, count - 2)))  # fmt: skip
    rng.shuffle(clues)
    kept = _chosen(clues, [(order,) for order in _orders(count)], len(clues))
    assert kept is not None
    answer = ", ".join(names[at[place]] for place in range(count))
    text = (
        f"{rng.choice(_ROWS).format(names=listed(sorted(names)))}\n{_written(kept)}\nWho stands where? Answer with the "
        "names from left to right, with a comma and a blank between two of them."
    )
    return Item(text=text, key=_key(names, kept), spec=ExactSpec(expected=answer), answer=answer)


_ROWS = (
    "{names} stand in a row.",
    "In a row, each in one place, stand {names}.",
    "A queue runs from left to right: in it are {names}.",
    "From left to right, in an order to be found, stand {names}.",
)


def _left(names: Sequence[str], one: int, two: int) -> Clue:
    return Clue(
        f"{names[one]} stands somewhere to the left of {names[two]}", f"{one}<{two}", lambda w: w[0][one] < w[0][two]
    )


def _beside(names: Sequence[str], one: int, two: int) -> Clue:
    return Clue(
        f"{names[one]} and {names[two]} are next to each other",
        f"{one}|{two}",
        lambda w: abs(w[0][one] - w[0][two]) == 1,
    )


def _between(names: Sequence[str], one: int, two: int, number: int) -> Clue:
    people = "person stands" if number == 1 else "people stand"
    return Clue(
        f"exactly {number} {people} between {names[one]} and {names[two]}",
        f"{one}-{number}-{two}",
        lambda w: abs(w[0][one] - w[0][two]) == number + 1,
    )


def _written(clues: Sequence[Clue]) -> str:
    return "\n".join(f"{at}. {clue.words[0].upper()}{clue.words[1:]}." for at, clue in enumerate(clues, 1))


def _key(names: Sequence[str], clues: Sequence[Clue]) -> str:
    return f"{','.join(names)} {' '.join(sorted(clue.key for clue in clues))}"


_SORTS = (
    ("drinks", "likes", "{} likes {}", DRINKS, "{} does not like {}"),
    ("pets", "keeps", "{} keeps the {}", PETS, "{} does not keep the {}"),
    ("trades", "is", "{} is the {}", TRADES, "{} is not the {}"),
    ("colours", "wears", "{} wears {}", COLOURS, "{} does not wear {}"),
)


def _grid(level: int, rng: Random) -> Item:
    """Makes a puzzle in which each person has one thing of each kind. Depending on the level there are three to five
    people and one to three kinds."""
    count, sorts = ((4, 1), (3, 2), (4, 2), (5, 2), (4, 3))[level]
    names = sorted(rng.sample(PEOPLE, count))
    chosen = rng.sample(_SORTS, sorts)
    things = [rng.sample(sort[3], count) for sort in chosen]
    solution = [rng.choice(_orders(count)) for _ in chosen]
    clues = _grid_clues(names, chosen, things, solution, rng)
    kept = _chosen(clues, _worlds(count, sorts), len(clues))
    assert kept is not None
    asked = rng.randrange(sorts)
    answer = ", ".join(things[asked][solution[asked].index(who)] for who in range(count))
    said = "; ".join(
        f"each {verb} one of {listed(sorted(what))}" for (_, verb, *_), what in zip(chosen, things, strict=True)
    )
    text = (
        f"{listed(names)} differ in everything that follows: {said}. Nobody shares anything.\n{_written(kept)}\n"
        f"Which of the {chosen[asked][0]} belongs to whom? Answer with the {chosen[asked][0]} of "
        f"{', '.join(names)}, in this "
        "order, with a comma and a blank between two of them."
    )
    return Item(
        text=text,
        key=f"{_key([*names, *(one for what in things for one in what)], kept)} asked {asked}",
        spec=ExactSpec(expected=answer),
        answer=answer,
    )


@lru_cache(maxsize=8)
def _worlds(count: int, sorts: int) -> tuple[tuple[Order, ...], ...]:
    worlds: tuple[tuple[Order, ...], ...] = ((),)
    for _ in range(sorts):
        worlds = tuple((*world, order) for world in worlds for order in _orders(count))
    return worlds


def _grid_clues(
    names: Sequence[str], sorts: Sequence[tuple[str, str, str, Sequence[str], str]], things: Sequence[Sequence[str]],
    solution: Sequence[Order], rng: Random,
) -> list[Clue]:  # fmt: skip
    """Returns true clues about who has what, few of them strong, so that many are needed."""
    count = len(names)
    clues: list[Clue] = []
    strong: list[Clue] = []
    for sort, order in enumerate(solution):
        for thing in range(count):
            who = order[thing]
            other = rng.choice([one for one in range(count) if one != who])
            third = rng.choice([one for one in range(count) if one != other])
            words = sorts[sort][2].format("{}", things[sort][thing])
            clues.append(Clue(sorts[sort][4].format(names[other], things[sort][thing]), f"{sort}.{thing}!{other}",
                              _belongs(sort, thing, [one for one in range(count) if one != other])))  # fmt: skip
            if third != who:
                pair = sorted((who, third))
                clues.append(Clue(f"{words.format(f'either {names[pair[0]]} or {names[pair[1]]}')}",
                                  f"{sort}.{thing}?{pair}",
                                  _belongs(sort, thing, pair)))  # fmt: skip
            strong.append(Clue(words.format(names[who]), f"{sort}.{thing}={who}",
                               _belongs(sort, thing, [who])))  # fmt: skip
            for more in range(sort):
                mate = solution[more].index(who)
                first = sorts[more][2].format("who", things[more][mate]).removeprefix("who ")
                clues.append(Clue(f"whoever {first} also {words.format('also').removeprefix('also ')}",
                                  f"{sort}.{thing}~{more}.{mate}",
                                  _together(sort, thing, more, mate)))  # fmt: skip
    rng.shuffle(clues)
    rng.shuffle(strong)
    return [*strong[: count // 4], *clues, *strong]


def _schedule(level: int, rng: Random) -> Item:
    """Makes a puzzle about which talk is at which hour, by their order and distance."""
    count = 4 + (level + 1) // 2 if level < 4 else 7
    topics = rng.sample(TRADES, count)
    solution = rng.choice(_orders(count))
    first = 8 + rng.randrange(3)
    clues = []
    for one in range(count):
        for two in range(count):
            gap = solution[two] - solution[one]
            if gap > 0:
                clues.append(Clue(f"the {topics[one]} comes before the {topics[two]}", f"{one}<{two}",
                                  _apart(one, two, 1, count)))  # fmt: skip
            if gap > 1:
                clues.append(Clue(f"the {topics[two]} comes exactly {gap} hours after the {topics[one]}",
                                  f"{one}+{gap}={two}",
                                  _apart(one, two, gap, gap)))  # fmt: skip
        hour = rng.randrange(count)
        if hour > solution[one]:
            clues.append(Clue(f"the {topics[one]} comes before {first + hour} o'clock", f"{one}<h{hour}",
                              _within(one, 0, hour - 1)))  # fmt: skip
    rng.shuffle(clues)
    kept = _chosen(clues, [(order,) for order in _orders(count)], len(clues))
    assert kept is not None
    answer = ", ".join(topics[solution.index(place)] for place in range(count))
    text = (
        f"At every full hour from {first} to {first + count - 1} o'clock one of these speaks, each once: "
        f"{', '.join(f'the {topic}' for topic in sorted(topics))}.\n{_written(kept)}\nIn which order do they speak? "
        f"Answer "
        "with the words alone, such as baker, in the order of the hours, with a comma and a blank between two of them."
    )
    return Item(text=text, key=f"{first} {_key(topics, kept)}", spec=ExactSpec(expected=answer), answer=answer)


ASSIGNMENTS = TopicTaskset(
    name="assignments",
    version=2,
    makers={"rows_of_people": _line, "belongings": _grid, "schedules": _schedule},
    null_answers=("none", "Ada", "Ada, Ben, Cleo, Dan", "baker"),
)

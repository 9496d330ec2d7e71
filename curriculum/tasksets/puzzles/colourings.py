"""Maps and graphs to be coloured: how many ways there are, and which is the first of them.

Numbers are exact, because a search counts all colourings.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from curriculum.contract.topics import Item, TopicTaskset
from verifiers.answers.spec import AnswerSpec
from verifiers.exact.spec import ExactSpec

Edges = frozenset[tuple[int, int]]
_LETTERS = "ABCDEFGHIJ"


def _graph(count: int, share: float, rng: Random) -> Edges:
    """Draws a connected graph: each node has an edge to an earlier one."""
    edges = {(rng.randrange(at), at) for at in range(1, count)}
    edges |= {(one, two) for two in range(count) for one in range(two) if rng.random() < share}
    return frozenset(edges)


def _colourings(count: int, edges: Edges, colours: int) -> Iterator[tuple[int, ...]]:
    """Yields all colourings of a graph, in lexicographic order."""
    before = [[one for one, two in edges if two == at] for at in range(count)]
    found: list[int] = []

    def grow() -> Iterator[tuple[int, ...]]:
        at = len(found)
        if at == count:
            yield tuple(found)
            return
        taken = {found[one] for one in before[at]}
        for colour in range(colours):
            if colour not in taken:
                found.append(colour)
                yield from grow()
                found.pop()

    return grow()


def _said(edges: Edges, rng: Random) -> str:
    pairs = [f"{_LETTERS[one]}-{_LETTERS[two]}" for one, two in sorted(edges)]
    rng.shuffle(pairs)
    return ", ".join(pairs)


_ASKED = (
    (
        "The places {names} are joined by these lines: {edges}. Each place gets one of the colours {colours}; places "
        "that are joined "
        "get different colours."
    ),
    "Colour {names} with {colours}, so that no two joined ones have the same colour. Joined are: {edges}.",
    "These pairs among {names} must differ in colour: {edges}. The colours are {colours}.",
    "A map has the regions {names}; these share a border: {edges}. Neighbours get different colours out of {colours}.",
)


def _head(count: int, edges: Edges, colours: int, rng: Random) -> str:
    return rng.choice(_ASKED).format(
        names=", ".join(_LETTERS[:count]), edges=_said(edges, rng), colours=", ".join("12345"[:colours])
    )


def _number(level: int, rng: Random) -> Item:
    count, colours = 6 + (level > 2), rng.choice((3, 4, 5) if level < 2 else (3, 4))
    while True:
        edges = _graph(count, 0.15 + 0.05 * level, rng)
        number = sum(1 for _ in _colourings(count, edges, colours))
        if number > 20:
            break
    text = f"{_head(count, edges, colours, rng)} In how many ways can that be done? Answer with the whole number."
    return Item(text=text, key=f"{sorted(edges)} {colours}", spec=AnswerSpec(expected=str(number)), answer=str(number))


def _first(level: int, rng: Random) -> Item:
    """Asks for a graph's lexicographically first colouring, if possible in a graph where greedy colouring fails."""
    count, colours = 6 + level, 3
    fallback = None
    for _ in range(200):
        edges = _graph(count, 0.3, rng)
        found = next(_colourings(count, edges, colours), None)
        if found is not None:
            fallback = (edges, found)
            if found != _greedy(count, edges):
                break
    assert fallback is not None
    edges, found = fallback
    answer = "".join("123"[colour] for colour in found)
    text = (
        f"{_head(count, edges, colours, rng)} Write a colouring as the colours of {', '.join(_LETTERS[:count])} in "
        f"this order, "
        "without blanks. Of all that are possible, which one is the smallest number? Answer with it."
    )
    return Item(text=text, key=str(sorted(edges)), spec=ExactSpec(expected=answer), answer=answer)


def _greedy(count: int, edges: Edges) -> tuple[int, ...]:
    found: list[int] = []
    for at in range(count):
        taken = {found[one] for one, two in edges if two == at}
        found.append(next(colour for colour in range(count) if colour not in taken))
    return tuple(found)


def _forced(level: int, rng: Random) -> Item:
    """Asks for the only colouring of a graph in which some nodes have given colours."""
    count, colours = 7 + level if level < 4 else 10, 3
    while True:
        edges = _graph(count, 0.45 if count < 9 else 0.35, rng)
        found = list(_colourings(count, edges, colours))
        if not found:
            continue
        solution, given = rng.choice(found), []
        for at in rng.sample(range(count), count):
            left = [one for one in found if one[at] == solution[at]]
            if len(left) < len(found):
                given.append(at)
                found = left
        if len(given) <= count // 2:
            break
    said = ", ".join(f"{_LETTERS[at]} has colour {solution[at] + 1}" for at in sorted(given))
    answer = "".join("123"[colour] for colour in solution)
    text = (
        f"{_head(count, edges, colours, rng)} It is known that {said}. Then there is one way only. Answer with the "
        f"colours of "
        f"{', '.join(_LETTERS[:count])} in this order, without blanks."
    )
    return Item(
        text=text,
        key=f"{sorted(edges)} {[(at, solution[at]) for at in sorted(given)]}",
        spec=ExactSpec(expected=answer),
        answer=answer,
    )


COLOURINGS = TopicTaskset(
    name="colourings",
    version=2,
    makers={"numbers_of_colourings": _number, "first_colourings": _first, "settled_colourings": _forced},
    null_answers=("0", "1", "3", "123"),
)

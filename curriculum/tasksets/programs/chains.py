"""Chains of steps on lists and texts, from which step-by-step program descriptions are made.

Invariants: a chain's source, its wording and its result agree; tests accepted by `tells_apart` fail every constant, the
argument itself and every program that leaves a step out; those that `tested_chain` adds fail every program with one
other step or number, unless it agrees on `SOUGHT` random arguments. Statements and sources are assembled from a fixed
table of steps; only numbers are filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from random import Random
from typing import Any

from verifiers.programs.spec import Example, ProgramSpec

FUNCTION = "solve"
SHOWN, HIDDEN = 2, 12
"""Number of examples in the statement, and least number of hidden tests."""
SOUGHT = 80
"""Random arguments on which a program with one change may have another result, and so become a hidden test."""
ATTEMPTS = 1_000
VOWELS = "aeiouAEIOU"
LETTERS = "abcdeinostAEST"


@dataclass(frozen=True)
class Step:
    """One operation of a step-by-step program on its current value."""

    name: str
    text: str
    """Description; `{k}` is the step's number, if it has one."""
    code: str
    """Python expression in `x` and `{k}`."""
    apply: Callable[[Any, int], Any]
    """Computes the same as the code."""
    numbers: tuple[int, int] = (0, 0)
    """Inclusive range of the step's number."""


@dataclass(frozen=True)
class Topic:
    """Kind of function to program: its possible steps, then an end."""

    name: str
    takes: str
    steps: tuple[Step, ...]
    ends: tuple[Step, ...]
    """Last steps; if empty, the result of the steps is returned."""
    draw: Callable[[Random], Any]
    edges: tuple[Any, ...]
    """Arguments that are always tested."""


def _numbers(rng: Random) -> list[int]:
    return [rng.randint(-9, 20) for _ in range(rng.randint(4, 9))]


def _text(rng: Random) -> str:
    words = ("".join(rng.choices(LETTERS, k=rng.randint(1, 6))) for _ in range(rng.randint(2, 5)))
    return " ".join(words)


ON_LISTS = (
    Step("even", "keep only the even numbers", "[n for n in x if n % 2 == 0]",
         lambda x, _: [n for n in x if n % 2 == 0]),
    Step("above", "keep only the numbers above {k}", "[n for n in x if n > {k}]", lambda x, k: [n for n in x if n > k],
         (0, 9)),
    Step("times", "multiply each number by {k}", "[n * {k} for n in x]", lambda x, k: [n * k for n in x], (2, 9)),
    Step("plus", "add {k} to each number", "[n + {k} for n in x]", lambda x, k: [n + k for n in x], (2, 19)),
    Step("minus", "subtract each number from {k}", "[{k} - n for n in x]", lambda x, k: [k - n for n in x], (2, 29)),
    Step("rest", "replace each number by its remainder when divided by {k}, never negative", "[n % {k} for n in x]",
         lambda x, k: [n % k for n in x], (3, 15)),
    Step("most", "replace each number above {k} by {k}", "[min(n, {k}) for n in x]",
         lambda x, k: [min(n, k) for n in x], (3, 15)),
    Step("moved", "move the first {k} items to the end, in their order", "x[{k}:] + x[:{k}]",
         lambda x, k: x[k:] + x[:k], (2, 3)),
    Step("square", "square each number", "[n * n for n in x]", lambda x, _: [n * n for n in x]),
    Step("sort", "sort the numbers, the smallest first", "sorted(x)", lambda x, _: sorted(x)),
    Step("turn", "reverse the order", "x[::-1]", lambda x, _: x[::-1]),
    Step("once", "keep the first of equal numbers only", "list(dict.fromkeys(x))", lambda x, _: list(dict.fromkeys(x))),
    Step("drop", "leave out the first {k} items", "x[{k}:]", lambda x, k: x[k:], (2, 3)),
    Step("each", "keep every second item, beginning with the first", "x[::2]", lambda x, _: x[::2]),
    Step("gaps", "replace the list by the differences of neighbours, the later minus the earlier",
         "[b - a for a, b in zip(x, x[1:])]", lambda x, _: [b - a for a, b in pairwise(x)]),
    Step("running", "replace each item by the sum of all items up to it",
         "[sum(x[: i + 1]) for i in range(len(x))]", lambda x, _: list(accumulate(x))),
)  # fmt: skip
TO_NUMBERS = (
    Step("sum", "return the sum of the items", "sum(x)", lambda x, _: sum(x)),
    Step("largest", "return the largest item, or 0 when there is none", "max(x, default=0)",
         lambda x, _: max(x, default=0)),
    Step("count", "return how many items are at least {k}", "sum(n >= {k} for n in x)",
         lambda x, k: sum(n >= k for n in x), (1, 9)),
    Step("spread", "return the largest minus the smallest item, or 0 when there is none",
         "max(x, default=0) - min(x, default=0)", lambda x, _: max(x, default=0) - min(x, default=0)),
    Step("left", "return the remainder of the sum of the items divided by {k}", "sum(x) % {k}",
         lambda x, k: sum(x) % k, (23, 97)),
)  # fmt: skip
ON_TEXTS = (
    Step("turned", "reverse the text", "x[::-1]", lambda x, _: x[::-1]),
    Step("vowels", "remove all vowels", f'"".join(c for c in x if c not in "{VOWELS}")',
         lambda x, _: "".join(c for c in x if c not in VOWELS)),
    Step("swapped", "turn capitals into small letters and small letters into capitals", "x.swapcase()",
         lambda x, _: x.swapcase()),
    Step("words", "reverse the order of the words", '" ".join(x.split(" ")[::-1])',
         lambda x, _: " ".join(x.split(" ")[::-1])),
    Step("sorted", "sort the words by their characters' codes", '" ".join(sorted(x.split(" ")))',
         lambda x, _: " ".join(sorted(x.split(" ")))),
    Step("long", "keep only the words of at least {k} characters",
         '" ".join(w for w in x.split(" ") if len(w) >= {k})',
         lambda x, k: " ".join(w for w in x.split(" ") if len(w) >= k), (2, 4)),
    Step("doubled", "write every character twice", '"".join(c + c for c in x)', lambda x, _: "".join(c + c for c in x)),
    Step("cut", "cut each word to its first {k} characters", '" ".join(w[:{k}] for w in x.split(" "))',
         lambda x, k: " ".join(w[:k] for w in x.split(" ")), (2, 4)),
    Step("moved", "move the first {k} characters of the text to its end", "x[{k}:] + x[:{k}]",
         lambda x, k: x[k:] + x[:k], (2, 9)),
    Step("every", "keep only the first of every {k} characters of the text", "x[::{k}]", lambda x, k: x[::k], (2, 4)),
    Step("shorter", "leave out the last {k} characters of the text", "x[:-{k}]", lambda x, k: x[:-k], (2, 6)),
    Step("counted", "write behind each word the number of its characters",
         '" ".join(w + str(len(w)) for w in x.split(" "))',
         lambda x, _: " ".join(w + str(len(w)) for w in x.split(" "))),
    Step("repeated", "write the text {k} times, without anything between", "x * {k}", lambda x, k: x * k, (2, 4)),
)  # fmt: skip
_EDGES: tuple[list[int], ...] = ([], [7], [0, 0, 0], [-5, -5, 12, -8])
TOPICS = {
    topic.name: topic
    for topic in (
        Topic("lists_to_numbers", "a list of whole numbers", ON_LISTS, TO_NUMBERS, _numbers, _EDGES),
        Topic("lists_to_lists", "a list of whole numbers", ON_LISTS, (), _numbers, _EDGES),
        Topic("texts", "a text of words with one blank between them", ON_TEXTS, (), _text, ("", "a", "Tea As Neat")),
    )
}


@dataclass(frozen=True)
class Chain:
    """Small program: steps with their numbers, applied in order."""

    links: tuple[tuple[Step, int], ...]

    def run(self, argument: Any) -> Any:
        for step, number in self.links:
            argument = step.apply(argument, number)
        return argument

    @property
    def text(self) -> str:
        return "\n".join(f"{at}. {step.text.format(k=k)}" for at, (step, k) in enumerate(self.links, 1))

    @property
    def source(self) -> str:
        lines = (f"    x = {step.code.replace('{k}', str(k))}\n" for step, k in self.links)
        return f"def {FUNCTION}(x):\n{''.join(lines)}    return x\n"

    @property
    def name(self) -> str:
        return ",".join(f"{step.name} {k}" if step.numbers != (0, 0) else step.name for step, k in self.links)

    def others(self, topic: Topic) -> list[Chain]:
        """Returns the programs with one change: a step left out, exchanged with the next, another one in its place, or
        another number."""
        links, found = self.links, self.shorter()
        found += [Chain((*links[:at], links[at + 1], links[at], *links[at + 2 :])) for at in range(len(links) - 1)]
        for at, (step, number) in enumerate(links):
            beside = topic.ends if step in topic.ends else topic.steps
            changes = [(other, sum(other.numbers) // 2) for other in beside if other is not step]
            changes += [
                (step, other)
                for other in (number - 1, number + 1)
                if step.numbers != (0, 0) and (other > 0 or step.numbers[0] == 0)
            ]
            found += [Chain((*links[:at], change, *links[at + 1 :])) for change in changes]
        return [chain for chain in found if chain.fits(topic)]

    def fits(self, topic: Topic) -> bool:
        """True if the steps of a program fit together: an end may only be the last step."""
        last = len(self.links) - 1
        return all((step in topic.ends) == (at == last and bool(topic.ends)) for at, (step, _) in enumerate(self.links))

    def shorter(self) -> list[Chain]:
        """Returns the programs with one of the steps left out."""
        return [Chain(self.links[:at] + self.links[at + 1 :]) for at in range(len(self.links))]


def drawn_chain(topic: Topic, steps: int, rng: Random) -> Chain:
    chosen = [*rng.sample(topic.steps, steps), *(rng.sample(topic.ends, 1) if topic.ends else ())]
    return Chain(tuple((step, rng.randint(*step.numbers)) for step in chosen))


def tells_apart(chain: Chain, arguments: Sequence[Any]) -> bool:
    """True if tests with these arguments fail every constant, the argument itself, and programs without a step."""
    right = [chain.run(argument) for argument in arguments]
    others = ([other.run(argument) for argument in arguments] for other in chain.shorter())
    return len({repr(one) for one in right}) > 2 and list(arguments) != right and all(one != right for one in others)


@dataclass(frozen=True)
class Tested:
    """Step-by-step program with test arguments that distinguish it from simpler programs."""

    topic: Topic
    chain: Chain
    shown: tuple[Any, ...]
    hidden: tuple[Any, ...]

    @property
    def examples(self) -> str:
        """Visible tests as text, `f(argument) == result`, a line each."""
        return "\n".join(f"{FUNCTION}({one!r}) == {self.chain.run(one)!r}" for one in self.shown)

    @property
    def spec(self) -> ProgramSpec:
        tests = [(one, True) for one in self.shown] + [(one, False) for one in self.hidden]
        return ProgramSpec(
            function=FUNCTION,
            examples=tuple(
                Example(arguments=repr(one), expected=repr(self.chain.run(one)), visible=visible)
                for one, visible in tests
            ),
        )

    def fails(self, other: Chain) -> bool:
        """True if a hidden test distinguishes the other program from this one."""
        return any(other.run(one) != self.chain.run(one) for one in self.hidden)


def _witnesses(topic: Topic, chain: Chain, hidden: Sequence[Any], rng: Random) -> list[Any]:
    """Returns further arguments on which programs with one change differ from this one, if these tests miss them."""
    found: list[Any] = []
    pool: list[tuple[Any, Any]] = []
    tests = [(one, chain.run(one)) for one in hidden]
    for other in chain.others(topic):
        if any(other.run(one) != right for one, right in tests):
            continue
        if not pool:
            pool = [(one, chain.run(one)) for one in (topic.draw(rng) for _ in range(SOUGHT))]
        witness = next(((one, right) for one, right in pool if other.run(one) != right), None)
        if witness is not None:
            found.append(witness[0])
            tests.append(witness)
    return found


def tested_chain(topic: Topic, steps: int, rng: Random) -> Tested:
    """Draws a program of `steps` steps with tests that distinguish it from simpler ones. If the topic has ends, one is
    added."""
    for _ in range(ATTEMPTS):
        chain = drawn_chain(topic, steps, rng)
        arguments = [*topic.edges, *(topic.draw(rng) for _ in range(SHOWN + HIDDEN - len(topic.edges)))]
        hidden = [arguments[at] for at in range(len(arguments) - SHOWN)]
        if tells_apart(chain, hidden):
            hidden += _witnesses(topic, chain, hidden, rng)
            return Tested(topic, chain, tuple(arguments[-SHOWN:]), tuple(hidden))
    raise AssertionError(f"no tests were found for {topic.name}")  # unreachable with these tables

"""Small programs: a function on lists or on texts, described in words step by step, with hidden tests.

Levels raise the number of steps. What a draft's tests tell apart is part of what makes it a draft: no constant, the
argument itself and no program that leaves a step out gives the right results. Statements and reference solutions are
put together from a table of steps of ours; numbers are all that is filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from random import Random
from typing import Any

from curriculum.contract.task import asked
from curriculum.contract.taskset import TaskDraft, require_level
from verifiers.contract.kinds import AnswerForm
from verifiers.programs.spec import Example, ProgramSpec
from verifiers.registry.spec import Spec

FUNCTION = "solve"
SHOWN, HIDDEN = 2, 12
"""Examples in the statement, and tests that are not."""
ATTEMPTS = 1_000
TURNS, TOKENS = 8, 2_000
VOWELS = "aeiouAEIOU"
LETTERS = "abcdeinostAEST"
IMPOSSIBLE = 10**19


@dataclass(frozen=True)
class Step:
    """One thing to do with what is there so far."""

    name: str
    text: str
    """`{k}` is the step's number, where it has one."""
    code: str
    """A Python expression in `x` and `{k}`."""
    apply: Callable[[Any, int], Any]
    """What the code does."""
    numbers: tuple[int, int] = (0, 0)
    """From and to which the step's number is drawn."""


@dataclass(frozen=True)
class Topic:
    """One sort of function: some steps, then an end."""

    name: str
    takes: str
    steps: tuple[Step, ...]
    ends: tuple[Step, ...]
    """Empty: what the steps give is what is returned."""
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
    Step("square", "square each number", "[n * n for n in x]", lambda x, _: [n * n for n in x]),
    Step("sort", "sort the numbers, the smallest first", "sorted(x)", lambda x, _: sorted(x)),
    Step("turn", "reverse the order", "x[::-1]", lambda x, _: x[::-1]),
    Step("once", "keep the first of equal numbers only", "list(dict.fromkeys(x))", lambda x, _: list(dict.fromkeys(x))),
    Step("drop", "leave out the first {k} items", "x[{k}:]", lambda x, k: x[k:], (1, 3)),
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
class _Chain:
    """Steps with their numbers: a program in the small."""

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

    def shorter(self) -> list[_Chain]:
        """Each without one of its steps."""
        return [_Chain(self.links[:at] + self.links[at + 1 :]) for at in range(len(self.links))]


class Programs:
    """The taskset."""

    name = "programs"
    version = 1
    level_count = 3
    topics: Sequence[str] = tuple(TOPICS)
    null_answers: Sequence[str] = tuple(
        f"def {FUNCTION}(x):\n    return {result}\n" for result in ("x", "0", "[]", '""', "None")
    )

    def draft(self, level: int, rng: Random) -> TaskDraft:
        """A function of `level + 2` steps, and an end where its topic has ends. Raises LevelError."""
        require_level(self, level)
        topic = TOPICS[rng.choice(self.topics)]
        for _ in range(ATTEMPTS):
            chain = _chain(topic, level + 2, rng)
            arguments = [*topic.edges, *(topic.draw(rng) for _ in range(SHOWN + HIDDEN - len(topic.edges)))]
            hidden = [arguments[at] for at in range(len(arguments) - SHOWN)]
            if _tells_apart(chain, hidden):
                return _drafted(topic, chain, arguments[-SHOWN:], hidden)
        raise AssertionError(f"no tests were found for {chain.name}")  # the tables are such that this cannot be

    def unsolvable(self, draft: TaskDraft, number: int) -> Spec:
        """The tests, each with a result of twenty digits that has nothing to do with the statement."""
        assert isinstance(draft.spec, ProgramSpec)
        wrong = tuple(
            each.model_copy(update={"expected": repr(IMPOSSIBLE + number + at), "visible": False})
            for at, each in enumerate(draft.spec.examples)
        )
        return draft.spec.model_copy(update={"examples": wrong})

    def missing(self) -> str:
        return ""


PROGRAMS = Programs()


def _chain(topic: Topic, steps: int, rng: Random) -> _Chain:
    chosen = [*rng.sample(topic.steps, steps), *(rng.sample(topic.ends, 1) if topic.ends else ())]
    return _Chain(tuple((step, rng.randint(*step.numbers)) for step in chosen))


def _tells_apart(chain: _Chain, arguments: Sequence[Any]) -> bool:
    """Says whether these tests fail every constant, the argument itself, and every program that leaves a step out."""
    right = [chain.run(argument) for argument in arguments]
    others = ([other.run(argument) for argument in arguments] for other in chain.shorter())
    return len({repr(one) for one in right}) > 2 and list(arguments) != right and all(one != right for one in others)


def _drafted(topic: Topic, chain: _Chain, shown: Sequence[Any], hidden: Sequence[Any]) -> TaskDraft:
    examples = "\n".join(f"{FUNCTION}({one!r}) == {chain.run(one)!r}" for one in shown)
    end = "" if topic.ends else "It returns what is there then.\n"
    text = (
        f"Write a Python function `{FUNCTION}(x)`. It takes {topic.takes} and does this, in this order:\n"
        f"{chain.text}\n{end}Examples:\n{examples}\n"
        "End with the whole program in one fenced code block."
    )
    tests = [(one, True) for one in shown] + [(one, False) for one in hidden]
    return TaskDraft(
        topic=topic.name,
        key=f"programs {topic.name}:{chain.name}",
        messages=asked(text),
        spec=ProgramSpec(
            function=FUNCTION,
            examples=tuple(
                Example(arguments=repr(one), expected=repr(chain.run(one)), visible=visible) for one, visible in tests
            ),
        ),
        answer=chain.source,
        form=AnswerForm.BLOCK,
        turns=TURNS,
        tokens=TOKENS,
    )

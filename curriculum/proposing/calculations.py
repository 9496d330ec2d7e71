"""Proposals in the seedling's own format: a calculator line, which becomes the question it answers.

The prompt is some numbers; the proposal is a call such as `print(math.gcd(84,36))`. It has to be the right call of a
calculator operation (`curriculum.families`), and is asked in one of that operation's phrases. Invariants: the answer is
what the line printed in a sandbox, both times; numbers are whole and of at most five digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from random import Random

from curriculum.contract.task import Task, asked
from curriculum.families.phrased import PhrasedTaskset, Question, fill
from curriculum.names import CALCULATORS
from curriculum.proposing.kind import Precedents, Provers, checked, prompt
from curriculum.proposing.labels import ProposedQuestion, ProvenTask, is_proposed, statement_digest
from curriculum.proposing.refusals import Reason, RefusedProposal
from curriculum.registry import stable_random, taskset_named
from verifiers.answers.spec import AnswerSpec
from verifiers.exact.spec import ExactSpec
from verifiers.registry.spec import Spec

LARGEST = 99_999
LINE_CHARS = 200
ANSWER_CHARS = 18
_NUMBER = r"(0|[1-9]\d{0,4})"
_ASKABLE: Mapping[str, Callable[..., bool]] = {
    "subtract": lambda a, b: a > b,
    "solve_plus": lambda a, b, c: a > 0 and (c - b) % a == 0,
    "solve_minus": lambda a, b, c: a > 0 and (c + b) % a == 0,
}
"""Operations whose result answers the question only for some numbers, with the condition on these."""


class CalculatorProposals:
    name = "calculation"

    def is_like(self, task: Task) -> bool:
        return task.taskset in CALCULATORS or is_phrased(task)

    def ask(self, rng: Random, precedents: Precedents) -> Task:
        """Returns a prompt of numbers, for which a model proposes a calculator line. They are as long as those of the
        precedents, or of a drawn length, so the operation decides the difficulty."""
        shown = [number for task in precedents.drawn(rng) for number in re.findall(r"\d{1,5}", task.question)]
        lengths = [len(number) for number in rng.sample(shown, min(3, len(shown)))]
        lengths = lengths or [rng.randint(1, 3) for _ in range(rng.choice((1, 2, 2, 2, 3)))]
        numbers = [rng.randint(max(2, 10 ** (length - 1)), 10**length - 1) for length in lengths]
        return prompt(self.name, f"{' '.join(map(str, numbers))}?", rng, turns=0)

    def missing(self) -> str:
        return ""

    def make(self, text: str, provers: Provers) -> ProvenTask:
        asks, numbers = _read(text)
        topic = asks.operation.name
        if topic in _ASKABLE and not _ASKABLE[topic](*numbers):
            raise RefusedProposal(Reason.CONTRADICTORY, "no whole number answers its question")
        label = provers.executor.printed(fill(asks.operation.code, numbers))
        if len(label.answer) > ANSWER_CHARS:
            raise RefusedProposal(Reason.TOO_LARGE, f"a result beyond {ANSWER_CHARS} characters")
        if label.answer in map(str, numbers):
            raise RefusedProposal(Reason.SHOWN, "the result is one of the numbers")
        if label.answer in ("0", "1"):
            raise RefusedProposal(Reason.CONSTANT, "a result that is quickly guessed")
        key = f"{topic}:{','.join(map(str, numbers))}"
        phrase = stable_random("phrase", key).choice(asks.phrases)
        question = ProposedQuestion(
            kind=self.name,
            of=statement_digest("line", fill(asks.operation.code, numbers)),
            key=key,
            messages=asked(fill(phrase, numbers)),
            specify=_spec,
        )
        return checked(question, label, label.answer, provers)


def _spec(answer: str) -> Spec:
    """Returns the spec that checks a calculator answer: integers as numbers, numerals in another base as text."""
    if re.fullmatch(r"-?\d{1,100}", answer):
        return AnswerSpec(expected=answer)
    return ExactSpec(expected=answer)


def _read(text: str) -> tuple[Question, tuple[int, ...]]:
    """Parses a proposed calculator line into the question that it answers, and its numbers. Raises RefusedProposal."""
    line = text.strip()
    if len(line) > LINE_CHARS:
        raise RefusedProposal(Reason.UNREADABLE, "longer than a line for a calculator")
    for pattern, asks in _patterns():
        found = pattern.fullmatch(line)
        if found is None:
            continue
        numbers: dict[str, int] = {}
        for slot, value in zip(_slots(asks), found.groups(), strict=True):
            if numbers.setdefault(slot, int(value)) != int(value):
                raise RefusedProposal(Reason.UNREADABLE, "one number in two ways")
        return asks, tuple(numbers[slot] for slot in sorted(numbers))
    raise RefusedProposal(Reason.UNREADABLE, "not a right call of an operation")


def _slots(asks: Question) -> list[str]:
    return re.findall(r"\{([abc])\}", asks.operation.code)


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[re.Pattern[str], Question], ...]:
    """Regular expressions that match calls of each calculator operation, with the question that each answers."""
    made = []
    for taskset in map(taskset_named, CALCULATORS):
        assert isinstance(taskset, PhrasedTaskset)
        for asks in taskset.questions:
            literal = re.split(r"\{[abc]\}", asks.operation.code)
            made.append((re.compile(_NUMBER.join(map(re.escape, literal))), asks))
    return tuple(made)


@lru_cache(maxsize=1)
def _topics() -> frozenset[str]:
    return frozenset(topic for taskset in map(taskset_named, CALCULATORS) for topic in taskset.topics)


def is_phrased(task: Task) -> bool:
    """True if a proposed task uses a built-in taskset's phrases, so that only its numbers are proposed. Its key keeps
    it apart from evaluation questions, as for that taskset's tasks."""
    return is_proposed(task) and task.key.partition(":")[0] in _topics()

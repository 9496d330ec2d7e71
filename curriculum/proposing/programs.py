"""Proposals of programs in three modes (Absolute Zero 2505.03335, section 3.2): deduction, abduction, induction.

    deduction   given a program and an input, find the output
    abduction   given a program and an output, find any input that gives it
    induction   given inputs and outputs, find a program, which must also match a hidden half

Invariants: outputs are results of two runs in fresh processes; the proposer supplies none. A program that does no work
is refused by its results for inputs near its own. The program verifier runs an abduction's answer in a sandbox that no
submission reaches; the program is defined anew for each answer, in its own namespace, so it neither changes the judge
nor keeps anything between answers. Keys name a program's behaviour (`curriculum.proposing.behaviour`), not its text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from curriculum.contract.task import Task, asked
from curriculum.proposing.behaviour import behaviour_of, inputs_of, is_one_operation
from curriculum.proposing.execution import Execution, ProgramCall, call_label, calls_label, canonical, values_of
from curriculum.proposing.kind import Precedents, Provers, checked, precedents_in, prompt
from curriculum.proposing.labels import ProposedQuestion, ProvenLabel, ProvenTask, statement_digest
from curriculum.proposing.refusals import Reason, RefusedProposal, parts
from curriculum.proposing.screening import FUNCTION, MODULES, ScreenedProgram, screened
from verifiers.contract.kinds import AnswerForm
from verifiers.exact.spec import ExactSpec
from verifiers.programs.data.generators import Integers
from verifiers.programs.data.values import DictPairs, Value, literal
from verifiers.programs.spec import Example, ProgramSpec
from verifiers.registry.spec import Spec

LEAST_SHOWN = 3
"""Shortest answer, in characters, that counts as shown if the question contains it."""
_QUOTES = str.maketrans("", "", "'\"\\")


def probes(arguments: str) -> list[tuple[int, str]]:
    """Returns variants of a program's input, each with the position of the changed argument."""
    values = values_of(arguments)
    made = []
    for place, value in enumerate(values):
        for other in _others(value):
            changed = [*values[:place], other, *values[place + 1 :]]
            made.append((place, ", ".join(map(literal, changed))))
    return made


def require_work(
    program: ScreenedProgram, arguments: str, own: ProgramCall, found: Sequence[tuple[int, str, ProgramCall]]
) -> None:
    """Raises RefusedProposal for a proposed program that does no work, by its results for similar inputs. `found` has
    each probe's position, input and result."""
    if own.raised:
        raise RefusedProposal(Reason.RAISES, "it raises an exception")
    if program.looks_up:
        raise RefusedProposal(Reason.LOOKUP, "one line that reads a table or a constant")
    fine = [(place, call, ran) for place, call, ran in found if not ran.raised]
    if 2 * len(fine) < len(found):
        raise RefusedProposal(Reason.NARROW, "it raises for most inputs near its own")
    if all(ran == own for _, _, ran in fine):
        raise RefusedProposal(Reason.CONSTANT, "the same result for every input")
    calls = [(arguments, own), *((call, ran) for _, call, ran in fine)]
    for place in range(program.arity):
        if all(literal(values_of(call)[place]) == ran.value for call, ran in calls):
            raise RefusedProposal(Reason.IDENTITY, "it gives back its input")
        if all(ran == own for changed, _, ran in fine if changed == place):
            raise RefusedProposal(Reason.IGNORES, "an argument makes no difference")
    if own.value in map(literal, values_of(arguments)):
        raise RefusedProposal(Reason.SHOWN, "the result is one of the inputs")
    if own.value in program.literals and len(own.value) >= LEAST_SHOWN:
        raise RefusedProposal(Reason.LOOKUP, "the result is a constant of the program")


def tells(program: ScreenedProgram, value: str, beside: str = "") -> bool:
    """True if a program, its strings or `beside` contain a value, with any blanks and quotes. `value`: Python text."""
    bare = value.translate(_QUOTES)
    texts = [one.translate(_QUOTES) for one in program.literals if one[:1] in ("'", '"')]
    return len(bare) >= LEAST_SHOWN and (
        any(_stands(value, one) for one in (program.source, beside)) or any(_stands(bare, one) for one in texts)
    )


def _stands(value: str, text: str) -> bool:
    value, text = (re.sub(r"\s*([^\w\s])\s*", r"\1", one) for one in (value, text))
    before, behind = (r"(?<![A-Za-z0-9])" * value[0].isalnum(), r"(?![A-Za-z0-9])" * value[-1].isalnum())
    return re.search(before + re.escape(value) + behind, text) is not None


def _others(value: Value) -> list[Value]:
    match value:
        case bool():
            return [not value]
        case int():
            return [value + 1, value + 7, abs(value) * 2 + 3]
        case str():
            return [value[::-1] + "b", value + "a", value[1:] or "zebra"]
        case list():
            return [[*value[1:], *_more(value)], value[::-1] + _more(value), [*value, *_more(value), *_more(value)]]
        case tuple():
            return [(*value[1:], *_more(list(value))), (*value, *_more(list(value)))]
        case DictPairs(pairs) if pairs:
            key, item = pairs[0]
            return [DictPairs(((key, other), *pairs[1:])) for other in _others(item)[:2]]
        case _:
            return []


def _more(items: list[Value]) -> list[Value]:
    """Returns one item, in a list, to append to `items`. It has the last one's type, or is 3 if none can be made."""
    others = _others(items[-1]) if items else []
    return others[:1] or [3]


Mode = Literal["deduction", "abduction", "induction"]
LEAST_PAIRS, MOST_PAIRS = 6, 12
ANSWER = "answer"
"""Name of the function that an abduction's answer defines."""
TURNS, TOKENS = 8, 4_000
_BLOCKS = {
    "deduction": "the program in a block ```python, and the arguments of one call, such as `[3, 1], 2`, in a block "
    "```input. It will be asked what the call gives.",
    "abduction": "the program in a block ```python, and the arguments of one call, such as `[3, 1], 2`, in a block "
    "```input. The result of the call will be shown, and arguments that give it will be asked for.",
    "induction": f"the program in a block ```python, and the arguments of {LEAST_PAIRS} to {MOST_PAIRS} calls, a line "
    "each, in a block ```input. Half of the calls will be shown with their results, and the program will be asked for.",
}
_RULES = (
    f"Invent a Python function `{FUNCTION}` whose working out takes several steps of thought. It is deterministic, "
    f"prints nothing, and uses no classes, sets or exceptions; it may import {', '.join(MODULES)}. Arguments and "
    "results are whole numbers, texts, lists, tuples or dictionaries. It is neither constant nor a table, and all of "
    f"its arguments matter. Answer with two fenced code blocks: "
)


@dataclass(frozen=True)
class ProgramProposals:
    """Program proposals of one mode: deduction, abduction or induction."""

    name: Mode

    def is_like(self, task: Task) -> bool:
        return isinstance(task.spec, ProgramSpec)

    def ask(self, rng: Random, precedents: Precedents) -> Task:
        return prompt(self.name, _RULES + _BLOCKS[self.name] + precedents_in(rng, precedents), rng)

    def missing(self) -> str:
        return ""

    def make(self, text: str, provers: Provers) -> ProvenTask:
        found = parts(text, ("python", "input"))
        program = screened(found["python"])
        if self.name == "induction":
            return _induction(program, found["input"], provers)
        execution, behaviour = _worked(program, canonical(found["input"]), provers)
        label = call_label(execution)
        return (_deduction if self.name == "deduction" else _abduction)(execution, behaviour, label, provers)


def _worked(program: ScreenedProgram, call: str, provers: Provers) -> tuple[Execution, str]:
    """Runs a proposed program on its input, on variants of it and on fixed inputs; returns its behaviour, too. Raises
    RefusedProposal if it does no work."""
    near, fixed = probes(call), inputs_of(call)
    calls = [call, *(one for _, one in near)]
    try:
        execution = provers.executor.run(program, [*calls, *fixed])
    except RefusedProposal:  # a fixed input may take too long, or have a result that is too large
        execution, fixed = provers.executor.run(program, calls), []
    own, *others = execution.results[: len(calls)]
    found = [(place, one, ran) for (place, one), ran in zip(near, others, strict=True)]
    require_work(program, call, own, found)
    if is_one_operation(execution.calls, execution.results):
        raise RefusedProposal(Reason.TRIVIAL, "one operation gives the same results")
    return execution, behaviour_of(fixed, execution.results[len(calls) :]) or program.key


def _key(mode: Mode, behaviour: str, *calls: str) -> str:
    return f"{mode}:{behaviour}:{statement_digest(*calls)}"


def _deduction(execution: Execution, behaviour: str, label: ProvenLabel, provers: Provers) -> ProvenTask:
    program, call = execution.program, execution.calls[0]
    if label.answer in ("True", "False", "None", "0", "1", "[]", "()", "{}", "''"):
        raise RefusedProposal(Reason.UNCHECKABLE, "a result that is quickly guessed")
    if tells(program, label.answer):
        raise RefusedProposal(Reason.SHOWN, "the result stands in the program")
    text = (
        f"A program:\n```python\n{program.source}\n```\nWhat does the call give?\n```input\n{FUNCTION}({call})\n```\n"
        "Answer with the value as Python prints it with repr(), with a blank behind each comma and colon."
    )
    question = ProposedQuestion(
        kind="deduction",
        of=label.of,
        key=_key("deduction", behaviour, call),
        messages=asked(text),
        specify=lambda answer: ExactSpec(expected=answer),
        tools=(),
        tokens=TOKENS,
    )
    return checked(question, label, label.answer, provers)


def _abduction(execution: Execution, behaviour: str, label: ProvenLabel, provers: Provers) -> ProvenTask:
    program, call = execution.program, execution.calls[0]
    long = [one for one in map(literal, values_of(call)) if len(one) >= LEAST_SHOWN]
    if tells(program, call, label.answer) or (long and all(tells(program, one) for one in long)):
        raise RefusedProposal(Reason.SHOWN, "the arguments stand in the question")
    text = (
        f"A program:\n```python\n{program.source}\n```\nA call gives\n```output\n{label.answer}\n```\nFind arguments "
        f"that give it. Answer with one fenced code block that holds a Python function `{ANSWER}(n)`, which does not "
        "look at n and returns them as a tuple, also where there is only one: `return ([3, 1], 2)`."
    )
    question = ProposedQuestion(
        kind="abduction",
        of=label.of,
        key=_key("abduction", behaviour, label.answer),
        messages=asked(text),
        specify=lambda answer: _gives(program.source, answer),
        form=AnswerForm.BLOCK,
        turns=TURNS,
        tokens=TOKENS,
    )
    return checked(question, label, f"def {ANSWER}(n):\n    return ({call},)\n", provers)


def _gives(source: str, output: str) -> Spec:
    """Returns a spec that accepts any input for which the program gives this output. The program runs on the arguments,
    as plain data, away from any submission."""
    holds = (
        "def holds(result, n):\n"
        "    if type(result) is not tuple or len(repr(result)) > 300:\n        return False\n"
        f"    names = {{}}\n    exec({source!r}, names)\n"
        f"    try:\n        return repr(names[{FUNCTION!r}](*result)) == {output!r}\n"
        "    except Exception:\n        return False\n"
    )
    return ProgramSpec(function=ANSWER, inputs=(Integers(low=1, high=9),), generate=2, properties=(holds,))


def _induction(program: ScreenedProgram, lines: str, provers: Provers) -> ProvenTask:
    calls = list(dict.fromkeys(canonical(one) for one in lines.split("\n") if one.strip()))
    if not LEAST_PAIRS <= len(calls) <= MOST_PAIRS:
        raise RefusedProposal(Reason.UNREADABLE, f"{LEAST_PAIRS} to {MOST_PAIRS} different inputs are asked for")
    _, behaviour = _worked(program, calls[0], provers)
    execution = provers.executor.run(program, calls)
    label = calls_label(execution, range(len(calls)))
    results = label.answer.split("\n")
    shown = len(calls) // 2
    for half in (results[:shown], results[shown:]):
        if 2 * len(set(half)) < len(half) or len(set(half)) < 2:
            raise RefusedProposal(Reason.CONSTANT, "hardly any results differ")
    examples = "\n".join(
        f"{FUNCTION}({call}) == {result}" for call, result in zip(calls, results[:shown], strict=False)
    )
    text = (
        f"Write a Python function `{FUNCTION}` of which this is known:\n```examples\n{examples}\n```\n"
        "It is tried on other arguments, too. End with the whole program in one fenced code block."
    )
    question = ProposedQuestion(
        kind="induction",
        of=label.of,
        key=_key("induction", behaviour, *calls),
        messages=asked(text),
        specify=lambda answer: _pairs(calls, answer.split("\n"), shown),
        form=AnswerForm.BLOCK,
        turns=TURNS,
        tokens=TOKENS,
    )
    return checked(question, label, program.source, provers)


def _pairs(calls: Sequence[str], results: Sequence[str], shown: int) -> Spec:
    """Returns a spec that accepts a program matching all these calls and results, the first `shown` of them visible."""
    return ProgramSpec(
        function=FUNCTION,
        examples=tuple(
            Example(arguments=call, expected=result, visible=at < shown)
            for at, (call, result) in enumerate(zip(calls, results, strict=True))
        ),
    )

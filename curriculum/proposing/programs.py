"""Proposals of programs in three modes (Absolute Zero 2505.03335, section 3.2): deduction, abduction, induction.

    deduction   given a program and an input, find the output
    abduction   given a program and an output, find any input that gives it
    induction   given inputs and outputs, find a program, which must also match a hidden half

Invariants: outputs are results of two runs in fresh processes; the proposer supplies none. The program verifier runs an
abduction's answer in a sandbox that no submission reaches; the program is defined anew for each answer, in its own
namespace, so it neither changes the judge nor keeps anything between answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from curriculum.contract.task import Task, asked
from curriculum.proposing.execution import Execution, call_label, calls_label, canonical, values_of
from curriculum.proposing.kind import Provers, checked, examples_of, prompt
from curriculum.proposing.labels import ProposedQuestion, ProvenLabel, ProvenTask, statement_digest
from curriculum.proposing.reading import parts
from curriculum.proposing.refusals import Reason, RefusedProposal
from curriculum.proposing.screening import FUNCTION, MODULES, ScreenedProgram, screened
from curriculum.proposing.triviality import LEAST_SHOWN, probes, require_work, tells
from verifiers.contract.kinds import AnswerForm
from verifiers.exact.spec import ExactSpec
from verifiers.programs.data.generators import Integers
from verifiers.programs.data.values import literal
from verifiers.programs.spec import Example, ProgramSpec
from verifiers.registry.spec import Spec

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

    def ask(self, rng: Random, references: Sequence[Task]) -> Task:
        return prompt(self.name, _RULES + _BLOCKS[self.name] + examples_of(references), rng)

    def missing(self) -> str:
        return ""

    def make(self, text: str, provers: Provers) -> ProvenTask:
        found = parts(text, ("python", "input"))
        program = screened(found["python"])
        if self.name == "induction":
            return _induction(program, found["input"], provers)
        execution = _worked(program, canonical(found["input"]), provers)
        label = call_label(execution)
        return (_deduction if self.name == "deduction" else _abduction)(execution, label, provers)


def _worked(program: ScreenedProgram, call: str, provers: Provers) -> Execution:
    """Runs a proposed program on its input and on variants of it. Raises RefusedProposal for a program that does no
    work."""
    near = probes(call)
    execution = provers.executor.run(program, [call, *(one for _, one in near)])
    own, *others = execution.results
    found = [(place, one, ran) for (place, one), ran in zip(near, others, strict=True)]
    require_work(program, call, own, found)
    return execution


def _key(mode: Mode, program: ScreenedProgram, *calls: str) -> str:
    return f"{mode}:{statement_digest(program.key, *calls)}"


def _deduction(execution: Execution, label: ProvenLabel, provers: Provers) -> ProvenTask:
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
        key=_key("deduction", program, call),
        messages=asked(text),
        specify=lambda answer: ExactSpec(expected=answer),
        tools=(),
        tokens=TOKENS,
    )
    return checked(question, label, label.answer, provers)


def _abduction(execution: Execution, label: ProvenLabel, provers: Provers) -> ProvenTask:
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
        key=_key("abduction", program, label.answer),
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
    _worked(program, calls[0], provers)
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
        key=_key("induction", program, *calls),
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

"""Cards of tasksets: how difficult each topic is at each level, without a model; `tasksets.py --cards` writes them.

A guess is the commonest answer of the first half of the seeds, tried on the other half; where several answers of a
question pass, by what its check decides, if it decides here. One-liners (`one_lines.py`, and the calculator lines of
demonstrations) and scripts without insight (`hard_mathematics.py`, `brute_force.py`) work on a few drafts of each topic
and level, for at most the processor time of one call of the tool, and the taskset's own check judges what they find. A
topic for which nobody wrote one is not measured, and neither is one without a tool.

Steps are tool calls, server calls, actions of a game, composed steps or statements of a program, of the reference, and
one where one line solves all that were tried.
"""

from __future__ import annotations

import ast
import re
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout, suppress
from io import StringIO
from random import Random
from statistics import mean
from types import FrameType

import sympy

from benchmarks.brute_force import BY_TRYING
from benchmarks.composed_answers import TooLong
from benchmarks.composed_answers import answer_of as composed_answer
from benchmarks.hard_mathematics import ONE_LINE, SCRIPTS
from benchmarks.one_lines import NAMES, WRITERS
from curriculum.contract.taskset import TaskDraft
from curriculum.environments.orchestration.plans import executed
from curriculum.families.phrased import PhrasedDraft, PhrasedTaskset
from curriculum.registry import TASKSETS, make_draft
from curriculum.taskset_summary import CardPlace
from verifiers.registry import decide, is_decided

BY_TEXT = ("answer", "exact")
"""Kinds of checks that one answer of a question passes, in the form in which references are written."""
SECONDS = 2.0
"""Of processor time: a call of the tool."""
Solver = Callable[[str], object]


class OutOfTime(Exception):
    """A call took longer than the tool allows."""


UNSOLVED = (
    *(OutOfTime, TooLong, ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError),
    *(RecursionError, StopIteration, SyntaxError, TypeError, ValueError),
)
"""Of a script that cannot read a question, or finds nothing."""


def card_of(name: str, seeds: int, tried: int) -> list[CardPlace]:
    """The card of a taskset: `seeds` drafts of each topic and level to guess, `tried` of them for the scripts."""
    taskset = TASKSETS[name]
    return [
        _place(name, topic, level, drafts, tried)
        for level in range(taskset.level_count)
        for topic, drafts in _by_topic(name, level, seeds, tried).items()
    ]


def _by_topic(name: str, level: int, seeds: int, tried: int) -> dict[str, list[TaskDraft]]:
    """`seeds` drafts of each topic, or `tried` where a guess is not measured; fewer of a topic that is rarely drawn."""
    found: dict[str, list[TaskDraft]] = {topic: [] for topic in TASKSETS[name].topics}
    count = seeds
    for seed in range(2 * seeds * len(found)):
        draft = make_draft(name, level, seed)
        found[draft.topic].append(draft)
        count = seeds if draft.spec.kind in BY_TEXT else 2 * tried
        if min(map(len, found.values())) >= count:
            break
    return {topic: drafts[:count] for topic, drafts in found.items() if drafts}


def _place(name: str, topic: str, level: int, drafts: Sequence[TaskDraft], tried: int) -> CardPlace:
    steps, lengths = zip(*(_reference(name, draft) for draft in drafts), strict=True)
    written = [_by_a_line(draft) for draft in drafts[:tried]]
    lines = [length for length in written if length]
    tools = bool(drafts[0].tools)
    known = topic in WRITERS or topic in ONE_LINE or isinstance(drafts[0], PhrasedDraft)
    literal = topic.startswith("composed_")
    scripts: Sequence[Solver] = [lambda text: composed_answer(text, literal=True)] if literal else _scripts(topic)
    forced = [_solved(draft, scripts) for draft in drafts[:tried]] if tools and scripts else []
    one_line = _mean([length is not None for length in written]) if tools and known else None
    return CardPlace(
        topic=topic,
        level=level,
        steps=1.0 if one_line == 1 else _mean(steps),
        characters=_mean(lines or lengths),
        guess=_guessed(drafts),
        one_line=one_line,
        brute_force=_mean(forced) if forced else None,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(mean(known), 3) if known else None


def _scripts(topic: str) -> Sequence[Solver]:
    return [*SCRIPTS.get(topic, ()), *([BY_TRYING[topic]] if topic in BY_TRYING else ())]


def _reference(name: str, draft: TaskDraft) -> tuple[float | None, float | None]:
    """Steps and characters of the reference solution, as far as a draft shows them."""
    taskset = TASKSETS[name]
    if isinstance(draft, PhrasedDraft) and isinstance(taskset, PhrasedTaskset):
        calls = taskset.demonstrate(draft, Random(0), right_choice=1, fail_first=0).calls
        return len(calls), len(calls[-1])
    if draft.topic.startswith("composed_"):
        return len(re.findall(r"(?:Let|Write) \w(?:\(x\))? (?:be|for|=) ", draft.messages[-1].text)), None
    if draft.environment in ("orchestration", "published_servers"):
        return len(executed(draft.world["question"], draft.world["seed"], draft.world["day"]).steps), None
    match draft.spec.kind:
        case "game":
            return len(draft.answer.split()), None
        case "lean":
            return None, len(draft.answer)
        case "program":
            with suppress(SyntaxError):
                inside = [node for node in ast.walk(ast.parse(draft.answer)) if isinstance(node, ast.stmt)]
                defined = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
                return sum(not isinstance(node, defined) for node in inside), len(draft.answer)
            return None, len(draft.answer)
    return None, None


def _guessed(drafts: Sequence[TaskDraft]) -> float | None:
    """The share of the second half that the commonest answer of the first half is right for."""
    half = len(drafts) // 2
    guess = Counter(draft.answer for draft in drafts[:half]).most_common(1)[0][0]
    others = drafts[half:]
    if all(draft.spec.kind in BY_TEXT for draft in others):
        return _mean([draft.answer == guess for draft in others])
    if all(is_decided(draft.spec) for draft in others):
        return _mean([decide(draft.spec, guess).passed for draft in others])
    return None


def _by_a_line(draft: TaskDraft) -> int | None:
    """The length of the shortest line that solves the task; 0 of one that is not written down; None without one."""
    text, lengths = draft.messages[-1].text, []
    if isinstance(draft, PhrasedDraft):
        taskset = next(one for one in TASKSETS.values() if draft.topic in one.topics)
        assert isinstance(taskset, PhrasedTaskset)
        line = taskset.demonstrate(draft, Random(0), right_choice=1, fail_first=0).calls[-1]
        return len(line) if _passes(draft, lambda: _printed(line)) else None
    for write in WRITERS.get(draft.topic, ()):
        with suppress(*UNSOLVED):
            line = write(text)
            if _passes(draft, lambda line=line: eval(line, dict(NAMES))):  # type: ignore[misc]
                lengths.append(len(line))
    lengths += [0 for solve in ONE_LINE.get(draft.topic, ()) if _passes(draft, lambda solve=solve: solve(text))]  # type: ignore[misc]
    return min(lengths, default=None)


def _printed(line: str) -> str:
    out = StringIO()
    with redirect_stdout(out):
        exec(line, {})
    return out.getvalue().strip()


def _solved(draft: TaskDraft, scripts: Sequence[Solver]) -> bool:
    text = draft.messages[-1].text
    return any(_passes(draft, lambda solve=solve: solve(text)) for solve in scripts)  # type: ignore[misc]


def _passes(draft: TaskDraft, find: Callable[[], object]) -> bool:
    """True if what is found in one call passes."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        found = plain(find())
    except UNSOLVED:
        return False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return decide(draft.spec, found).passed


def plain(value: object) -> str:
    """A value as an answer writes it."""
    if isinstance(value, sympy.Union):
        return " U ".join(plain(one) for one in value.args)
    if isinstance(value, sympy.Interval):
        ends = "(" if value.left_open else "[", ")" if value.right_open else "]"
        return f"{ends[0]}{value.start}, {value.end}{ends[1]}"
    if isinstance(value, sympy.FiniteSet):
        return " U ".join(f"[{one}, {one}]" for one in value.args)
    return str(value)

"""Conversations that SFT learns from: recorded ones, or a teacher's, each verified before it counts.

What always holds: what somebody else wrote is a `RecordedTrace`, from which nothing can be learned; a `VerifiedTrace`
exists only with a verdict that its answer passed its check here, with calls that were run in our sandboxes and the
results that came back, and with the name of its source. What copies a sealed or held-out question is left out, and so
is a conversation in which one stands. Rejection sampling as in STaR (2203.14465).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_core import PydanticSerializationError

from appliance.agent.answers import final_answer
from appliance.agent.api_conversation import code_of
from appliance.agent.calls import LOST
from appliance.agent.parsing import shown
from appliance.curriculum.trained_tasks import RECORDED
from appliance.learning.errors import LearningError
from appliance.records.record import Record
from appliance.system.durable_file import write_new
from appliance.worker.setup.separation import met_in_results
from appliance.worker.sft.demonstrations import TOGETHER, PlayedDemonstration, run_calls
from curriculum.contract.task import Split, Task, TaskMessage
from curriculum.registry import TASKSETS
from curriculum.separation.index import SeparationIndex
from curriculum.separation.rules import Match
from policies.policy import Policy
from runtime.errors import HintedError
from runtime.sandbox import SessionPool
from verifiers.checker import Checker
from verifiers.contract.verdict import Outcome, Verdict

TASKSET = RECORDED
"""Under which name the policy's tiers know the tasks of recorded conversations."""
MOST_CALLS = 256
WITH_FILES = 8
"""Conversations under way at once where a task has files: each has a sandbox of its own."""
_FORM = 'write a line as {"messages": [...], "spec": {...}}; docs/training.md has an example'


class TraceError(HintedError):
    """A file of conversations that cannot be used."""

    exit_code = 2


class RecordedTrace(Record):
    """Is a conversation as somebody else wrote it down. Nothing is learned from one: `verified` makes another type."""

    task: Task
    calls: tuple[str, ...] = Field(max_length=MOST_CALLS)
    last: str
    """The last turn's text."""
    source: str

    @model_validator(mode="after")
    def _can_be_written(self) -> Self:
        """Raises ValueError for text that UTF-8 has no bytes for: it could be verified, and not be kept."""
        try:
            self.model_dump_json()
        except PydanticSerializationError as error:
            raise ValueError("it holds half of a character (a lone surrogate)") from error
        return self


class VerifiedTrace(Record):
    """Is a conversation whose calls ran here and whose answer passed its check."""

    task: Task
    calls: tuple[str, ...]
    results: tuple[str, ...]
    """As the policy model is shown them."""
    last: str
    verdict: Verdict
    source: str

    @model_validator(mode="after")
    def _was_verified(self) -> Self:
        """Raises LearningError without a verdict that it passed."""
        if not self.verdict.passed or len(self.results) != len(self.calls):
            raise LearningError(
                f"a conversation of {self.source} was not verified: {self.verdict.reason}",
                hint="only what passes its check is learned from",
            )
        return self


Lesson = PlayedDemonstration | VerifiedTrace
"""What SFT may learn from."""


@dataclass(frozen=True)
class TraceTally:
    """Says what became of conversations."""

    kept: tuple[VerifiedTrace, ...]
    failed: int
    """Their answer did not pass."""
    asked: tuple[Match, ...]
    """Kept questions of which one was a copy."""
    within: tuple[Match, ...]
    """Kept questions that stood in a conversation."""
    lost: int
    """The infrastructure failed them."""


def read_traces(content: bytes, source: str) -> list[RecordedTrace]:
    """Reads JSONL, one conversation a line: `messages` as chat APIs write them, `spec` the check of its answer, and
    `form` how the answer is marked. Results of tools that are written there are not used. Raises TraceError."""
    found: list[RecordedTrace] = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            found.append(_read(json.loads(line), f"{source}:{number}"))
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            where = "".join(f"{part}: " for part in [".".join(map(str, fault["loc"]))] if part)
            reason = fault["msg"].removeprefix("Value error, ")
            raise TraceError(f"line {number} of the conversations: {where}{reason}", hint=_FORM) from error
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise TraceError(f"line {number} of the conversations cannot be read: {error}", hint=_FORM) from error
    if not found:
        raise TraceError("the file holds no conversation", hint=_FORM)
    return found


def _read(line: Any, source: str) -> RecordedTrace:
    if not isinstance(line, dict):
        raise TypeError("it is no JSON object")
    asked: list[TaskMessage] = []
    calls: list[str] = []
    last: str | None = None
    for message in line["messages"]:
        role, text = message["role"], message.get("content") or ""
        if last is not None:
            raise ValueError("there is a message after the last turn")
        if role in ("system", "user"):
            if calls:
                raise ValueError("a person speaks after a call")
            if role == "system" and asked:
                raise ValueError("a system message stands first, and there is one at most")
            asked.append(TaskMessage(role=role, text=text))
        elif role == "assistant" and message.get("tool_calls"):
            calls += [code_of(call["function"]) for call in message["tool_calls"]]
        elif role == "assistant":
            last = text
        elif role != "tool":
            raise ValueError(f"there is no role {role!r}")
    if last is None:
        raise ValueError("there is no last turn without a call")
    if not asked or asked[-1].role != "user":
        raise ValueError("no user asks anything before the first turn")
    task = Task.model_validate(
        {
            "taskset": TASKSET,
            "level": 0,
            "seed": 0,
            "split": Split.TRAIN,
            "messages": asked,
            "spec": line["spec"],
            "provenance": source,
            **({"form": line["form"]} if "form" in line else {}),
        }
    )
    return RecordedTrace(task=task, calls=tuple(calls), last=last, source=source)


def verified(
    traces: Sequence[RecordedTrace],
    sessions: SessionPool,
    checker: Checker,
    policy: Policy,
    *,
    apart: SeparationIndex,
    max_result_chars: int,
    caller: str,
) -> TraceTally:
    """Runs each one's calls in a session of its own and has its answer checked; keeps what passed. `apart` are the
    questions that nothing learned from may copy or hold. Raises RefusedError without isolation."""
    copies = [apart.met_by(one.task, written=one.task.taskset not in TASKSETS) for one in traces]
    fresh = [one for one, copy in zip(traces, copies, strict=True) if copy is None]
    within: list[Match] = []
    kept: list[VerifiedTrace] = []
    failed = lost = 0
    together = WITH_FILES if any(one.task.files for one in fresh) else TOGETHER
    for start in range(0, len(fresh), together):
        some = fresh[start : start + together]
        ran = _ran(some, sessions, policy, max_result_chars, f"{caller}.trace.{start}")
        answers = [final_answer(one.last, one.task.form) for one in some]
        asked = [
            place
            for place, found in enumerate(answers)
            if found.answer is not None and found.answers == 1 and ran[place] is not None
        ]
        checked = checker.check_many([(some[place].task.spec, answers[place].answer or "") for place in asked])
        lost += sum(results is None for results in ran)
        failed += sum(results is not None for results in ran) - len(asked)
        for place, verdict in zip(asked, checked, strict=True):
            one, results = some[place], ran[place]
            if isinstance(verdict, Verdict) and verdict.passed and results is not None:
                if (match := met_in_results([*results, *one.calls, one.last], one.task, apart)) is not None:
                    within.append(match)
                    continue
                kept.append(
                    VerifiedTrace(
                        task=one.task,
                        calls=one.calls,
                        results=results,
                        last=one.last,
                        verdict=verdict,
                        source=one.source,
                    )
                )
            elif isinstance(verdict, Verdict) and verdict.outcome is Outcome.INFRA_ERROR:
                lost += 1
            else:
                failed += 1
    return TraceTally(tuple(kept), failed, tuple(copy for copy in copies if copy is not None), tuple(within), lost)


def _ran(
    traces: Sequence[RecordedTrace], sessions: SessionPool, policy: Policy, limit: int, caller: str
) -> list[tuple[str, ...] | None]:
    """What the calls of each gave; None where its session was lost."""

    def run(number: int) -> tuple[str, ...] | None:
        one = traces[number]
        try:
            results = run_calls(one.task, one.calls, sessions, policy, caller=f"{caller}.{number}") if one.calls else []
        except LOST:
            return None
        return tuple(shown(result, limit) for result in results)

    with ThreadPoolExecutor(TOGETHER, thread_name_prefix="trace") as pool:
        return list(pool.map(run, range(len(traces))))


def kept_file(path: Path, traces: Iterable[VerifiedTrace]) -> str:
    """Writes verified traces, whole or not at all, and returns the file's SHA-256. Raises LearningError for anything
    else, before a byte is written."""
    given = list(traces)
    if not all(isinstance(one, VerifiedTrace) for one in given):
        raise LearningError("only verified conversations are kept", hint="have them verified first")
    content = "".join(f"{one.model_dump_json()}\n" for one in given).encode()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    write_new(beside, content)
    beside.replace(path)
    return hashlib.sha256(content).hexdigest()


def texts_in(path: Path) -> list[tuple[Task, tuple[str, ...]]]:
    """Gives the task and all texts of each conversation in a file of verified ones. Raises OSError, ValueError."""
    return [(one.task, (*one.results, *one.calls, one.last)) for one in read_kept(path)]


def read_kept(path: Path) -> list[VerifiedTrace]:
    """Reads what `kept_file` wrote. Raises LearningError for what was not verified."""
    return [VerifiedTrace.model_validate_json(line) for line in path.read_bytes().splitlines()]

"""Conversations for SFT: recorded ones or a teacher's, each verified before training.

Invariants: foreign text is a `RecordedTrace`, which is never trained on. A `VerifiedTrace` exists only with a verdict
that its answer passed here, with calls run in our sandboxes and their results, and with its source. Copies of sealed or
held-out questions, and conversations containing one, are dropped. Rejection sampling as in STaR (2203.14465).
"""

from __future__ import annotations

import hashlib
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
from appliance.agent.texts import shown
from appliance.curriculum.kept_files import RECORDED
from appliance.learning.errors import LearningError
from appliance.records.record import Record
from appliance.system.durable_file import write_new
from appliance.worker.setup.progress import met_in_results
from appliance.worker.sft.demonstrations import TOGETHER, PlayedDemonstration, run_calls
from common import strict_json
from common.bounded_models import first_fault
from common.errors import HintedError
from common.strict_json import Bounds
from curriculum.contract.task import Split, Task, TaskMessage
from curriculum.registry import TASKSETS
from curriculum.separation.index import SeparationIndex
from curriculum.separation.rules import Match
from policies.policy import Policy
from runtime.sandbox import SessionPool
from verifiers.checker import Checker
from verifiers.contract.verdict import Outcome, Verdict

TASKSET = RECORDED
"""Taskset name of recorded conversations in the policy's tiers."""
MOST_CALLS = 256
WITH_FILES = 8
"""Concurrent conversations if a task has files: each needs a sandbox of its own."""
_FORM = 'write a line as {"messages": [...], "spec": {...}}; docs/training.md has an example'


class TraceError(HintedError):
    """Unusable file of conversations."""

    exit_code = 2


class RecordedTrace(Record):
    """Conversation as recorded elsewhere. Never trained on: `verified` returns another type."""

    task: Task
    calls: tuple[str, ...] = Field(max_length=MOST_CALLS)
    last: str
    """Text of the last turn."""
    source: str

    @model_validator(mode="after")
    def _can_be_written(self) -> Self:
        """Raises ValueError for a conversation with text that UTF-8 cannot encode: it could be verified, but not
        stored."""
        try:
            self.model_dump_json()
        except PydanticSerializationError as error:
            raise ValueError("invalid text: a lone surrogate") from error
        return self


class VerifiedTrace(Record):
    """Conversation whose calls ran here and whose answer passed its check."""

    task: Task
    calls: tuple[str, ...]
    results: tuple[str, ...]
    """Results as shown to the policy model."""
    last: str
    verdict: Verdict
    source: str

    @model_validator(mode="after")
    def _was_verified(self) -> Self:
        """Raises LearningError for a conversation without a passing verdict."""
        if not self.verdict.passed or len(self.results) != len(self.calls):
            raise LearningError(
                f"a conversation of {self.source} was not verified: {self.verdict.reason}",
                hint="only what passes its check is learned from",
            )
        return self


Lesson = PlayedDemonstration | VerifiedTrace
"""Conversation types that SFT accepts."""


@dataclass(frozen=True)
class TraceTally:
    """Outcome of verifying conversations."""

    kept: tuple[VerifiedTrace, ...]
    failed: int
    """Conversations whose answer did not pass."""
    asked: tuple[Match, ...]
    """Held-out questions that a conversation's question copied."""
    within: tuple[Match, ...]
    """Held-out questions found inside a conversation."""
    lost: int
    """Conversations lost to infrastructure errors."""


BOUNDS = Bounds(16 << 20)
"""Bounds of a recorded conversation."""


def read_traces(content: bytes, source: str) -> list[RecordedTrace]:
    """Parses recorded conversations from JSONL, one per line: chat `messages`, the answer's `spec`, and optionally its
    `form`. Ignores recorded tool results. Raises TraceError."""
    found: list[RecordedTrace] = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            found.append(_read(strict_json.read(line, BOUNDS), f"{source}:{number}"))
        except ValidationError as error:
            raise TraceError(f"line {number} of the conversations: {first_fault(error)}", hint=_FORM) from error
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise TraceError(f"line {number} of the conversations cannot be read: {error}", hint=_FORM) from error
    if not found:
        raise TraceError("the file has no conversations", hint=_FORM)
    return found


def _read(line: Any, source: str) -> RecordedTrace:
    if not isinstance(line, dict):
        raise TypeError("not a JSON object")
    asked: list[TaskMessage] = []
    calls: list[str] = []
    last: str | None = None
    for message in line["messages"]:
        role, text = message["role"], message.get("content") or ""
        if last is not None:
            raise ValueError("a message follows the last turn")
        if role in ("system", "user"):
            if calls:
                raise ValueError("a user or system message follows a call")
            if role == "system" and asked:
                raise ValueError("only the first message may be a system message")
            asked.append(TaskMessage(role=role, text=text))
        elif role == "assistant" and message.get("tool_calls"):
            calls += [code_of(call["function"]) for call in message["tool_calls"]]
        elif role == "assistant":
            last = text
        elif role != "tool":
            raise ValueError(f"invalid role {role!r}")
    if last is None:
        raise ValueError("the last turn without a call is missing")
    if not asked or asked[-1].role != "user":
        raise ValueError("no user message before the first turn")
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
    """Runs each conversation's calls in a session of its own and checks its answer; keeps the passing ones. `apart`
    indexes the questions that training data must not copy or contain. Raises RefusedError without isolation."""
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
    """Runs the calls of each conversation again and returns their results, or None for a lost session."""

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
    """Writes verified conversations atomically and returns the file's SHA-256. Raises LearningError for any other type,
    before writing."""
    given = list(traces)
    if not all(isinstance(one, VerifiedTrace) for one in given):
        raise LearningError("only verified conversations can be stored", hint="verify them first")
    content = "".join(f"{one.model_dump_json()}\n" for one in given).encode()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    write_new(beside, content)
    beside.replace(path)
    return hashlib.sha256(content).hexdigest()


def texts_in(path: Path) -> list[tuple[Task, tuple[str, ...]]]:
    """Returns task and texts of each conversation in a file of verified conversations. Raises OSError, ValueError."""
    return [(one.task, (*one.results, *one.calls, one.last)) for one in read_kept(path)]


def read_kept(path: Path) -> list[VerifiedTrace]:
    """Reads verified conversations from a file written by `kept_file`. Raises LearningError for an unverified one."""
    return [VerifiedTrace.model_validate_json(line) for line in path.read_bytes().splitlines()]

"""The plan of an evaluation (model, questions, repeats), and its results, one attempt per line of an append-only file.

Invariants: questions come from seeds of the validation split and belong to it by content, so neither training nor the
nights' sealed sets use them. Equal plans ask equal questions on every machine.

Lines contain no question and no answer, so nothing in the file can be trained on. An infrastructure error makes an
attempt `lost`, never wrong; it is repeated on resume. A partial last line is truncated. The plan is written atomically.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import BinaryIO, Literal, Self

from pydantic import Field, ValidationError

from appliance.errors import UsageError
from appliance.records.training import Judged
from appliance.system.durable_file import replace_file
from curriculum import seeds
from curriculum.contract.errors import ExhaustedError
from curriculum.contract.task import Split, Task
from curriculum.registry import make_draft, stable_random, task_of, taskset_named
from runtime.model import FrozenModel
from verifiers.contract.verdict import Outcome

MOST_DRAWS = 500
"""Draws for one question before its level counts as exhausted."""


class EvaluationPlan(FrozenModel):
    """All parameters that determine an evaluation's figures, apart from chance."""

    model: str
    """Digest of the weights, or the model's name at its endpoint."""
    engine: str
    """`torch` or `vllm`, or the endpoint's address."""
    tasksets: tuple[str, ...] = Field(min_length=1)
    """Names with versions, such as `programs@2`."""
    items: int = Field(ge=1, le=100_000)
    """Questions of each taskset for each seed, spread evenly over its levels; with `each_topic`, of each topic at each
    level."""
    each_topic: bool = False
    seeds: tuple[int, ...] = Field(min_length=1)
    repeats: int = Field(ge=1, le=1_024)
    """Attempts at each question."""
    temperature: float = Field(ge=0)
    max_tokens: int = Field(ge=1)
    """Tokens of one conversation; with an endpoint, of one turn."""
    max_calls: int = Field(ge=0)
    max_result_chars: int = Field(ge=8)
    assay: str
    """Version of Assay that made the plan."""

    @property
    def digest(self) -> str:
        """SHA-256 of the evaluation plan's canonical JSON."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the plan's tasksets, without versions."""
        return tuple(name.partition("@")[0] for name in self.tasksets)


class OpenQuestion(FrozenModel):
    """A task of an evaluation's plan, with the seed it was drawn for."""

    task: Task
    seed: int


def questions(plan: EvaluationPlan) -> list[OpenQuestion]:
    """Draws the distinct questions of an evaluation's plan. Raises ExhaustedError if there are too few,
    UnknownTasksetError."""
    seen: set[str] = set()
    return [
        OpenQuestion(task=task, seed=seed)
        for seed in plan.seeds
        for name in plan.names
        for task in (_each_topic if plan.each_topic else _drawn)(name, plan.items, seed, seen)
    ]


def _drawn(name: str, count: int, seed: int, seen: set[str]) -> list[Task]:
    rng = stable_random("open evaluation", seed, name)
    levels = list(range(taskset_named(name).level_count))
    found: list[Task] = []
    while len(found) < count:
        if not levels:
            raise ExhaustedError(
                f"{name} has only {len(found)} of {count} different questions",
                hint="lower --items, or give fewer seeds",
            )
        level = levels[len(found) % len(levels)]
        for _ in range(MOST_DRAWS):
            task = _new_question(name, level, rng, seen)
            if task is not None:
                seen.add(task.key)
                found.append(task)
                break
        else:
            levels.remove(level)
    return found


def _each_topic(name: str, count: int, seed: int, seen: set[str]) -> list[Task]:
    """Draws `count` questions of each topic at each level. A level's topic that has fewer, or none, gives what a
    limited number of draws found. Raises ExhaustedError if nothing was found at all."""
    rng, taskset = stable_random("open evaluation of topics", seed, name), taskset_named(name)
    found: list[Task] = []
    for level in range(taskset.level_count):
        missing = dict.fromkeys(taskset.topics, count)
        fruitless = 0
        while any(missing.values()) and fruitless < MOST_DRAWS:
            fruitless += 1
            task = _new_question(name, level, rng, seen)
            if task is not None and missing.get(task.topic, 0):
                seen.add(task.key)
                found.append(task)
                missing[task.topic] -= 1
                fruitless = 0
    if not found:
        raise ExhaustedError(f"{name} has no new question", hint="name other tasksets")
    return found


def _new_question(name: str, level: int, rng: Random, seen: Container[str]) -> Task | None:
    """Draws a question of the validation split; None for one that is known or belongs to another split."""
    drawn = seeds.draw(Split.VALIDATION, rng)
    draft = make_draft(name, level, drawn)
    if draft.key in seen or seeds.split_of_question(draft.key) is not Split.VALIDATION:
        return None
    return task_of(draft, name, level, drawn)


def versioned(names: Sequence[str]) -> tuple[str, ...]:
    """Returns the taskset names with their versions, `name@version`, each once. Raises UnknownTasksetError."""
    return tuple(f"{name}@{taskset_named(name).version}" for name in dict.fromkeys(names))


PLAN, ATTEMPTS = "plan.json", "attempts.jsonl"


class EvaluationAttempt(FrozenModel):
    """One judged attempt at one question of an evaluation."""

    question: str
    """Id of the task."""
    taskset: str
    level: int
    topic: str
    seed: int
    repeat: int
    outcome: Literal["right", "wrong", "lost"]
    ended: str
    tokens: int
    calls: int
    failed_calls: int
    seconds: float

    @property
    def place(self) -> tuple[str, int]:
        return self.question, self.repeat


def attempt_of(judged: Judged, asked: OpenQuestion, *, tokens: int) -> EvaluationAttempt:
    """Converts a judged rollout to an attempt of an evaluation, without question and answer."""
    lost = judged.verdict.outcome is Outcome.INFRA_ERROR
    return EvaluationAttempt(
        question=judged.rollout.task,
        taskset=judged.family,
        level=asked.task.level,
        topic=asked.task.topic,
        seed=asked.seed,
        repeat=judged.rollout.sample,
        outcome="lost" if lost else "right" if judged.verdict.passed else "wrong",
        ended=judged.rollout.ended.value,
        tokens=tokens,
        calls=len(judged.rollout.calls),
        failed_calls=judged.rollout.failed_calls,
        seconds=round(judged.rollout.seconds, 3),
    )


class AttemptFile:
    """Context manager for the file of one evaluation's attempts; a folder has one writer at a time."""

    def __init__(self, folder: Path, plan: EvaluationPlan, *, resume: bool) -> None:
        """Opens an evaluation's folder, writes its plan and reads earlier attempts. Raises OSError, and UsageError if
        the folder is in use, exists although `resume` is false, or has another plan."""
        self._path = folder / ATTEMPTS
        if (folder / PLAN).exists() and not resume:
            raise UsageError(f"{folder} already contains a run", "continue it with --resume, or name another folder")
        folder.mkdir(parents=True, exist_ok=True)
        self._out: BinaryIO = self._path.open("a+b")
        try:
            fcntl.flock(self._out, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._out.close()
            raise UsageError(f"another run is writing to {folder}", "wait for it, or name another folder") from None
        self._keep_plan(folder / PLAN, plan)
        self.found = self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._out.close()

    def add(self, attempts: Iterable[EvaluationAttempt]) -> None:
        """Appends attempts of an evaluation to its file and syncs them to disk."""
        made = list(attempts)
        self._out.write("".join(f"{one.model_dump_json()}\n" for one in made).encode())
        self._out.flush()
        os.fsync(self._out.fileno())
        self.found.update({one.place: one for one in made})

    def _keep_plan(self, path: Path, plan: EvaluationPlan) -> None:
        if not path.exists():
            try:
                replace_file(path, f"{plan.model_dump_json(indent=2)}\n".encode())
            except OSError:
                self._out.close()
                raise
            return
        try:
            same = EvaluationPlan.model_validate_json(path.read_bytes()) == plan
        except ValidationError:
            same = False
        if not same:
            self._out.close()
            raise UsageError(f"{path} belongs to a different run", "give the same options, or name another folder")

    def _read(self) -> dict[tuple[str, int], EvaluationAttempt]:
        """Reads all attempts of an evaluation, by question and repeat; the last line of each counts. Truncates a
        partial last line. Raises UsageError for an invalid line."""
        self._out.seek(0)
        content = self._out.read()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            self._out.truncate(len(whole))
        try:
            made = [EvaluationAttempt.model_validate_json(line) for line in whole.splitlines()]
        except ValidationError as error:
            self._out.close()
            raise UsageError(f"{self._path}: invalid line", "name another folder") from error
        return {one.place: one for one in made}

"""Results of an evaluation's attempts, one per line in an append-only file.

Invariants: lines contain no question and no answer, so nothing in the file can be trained on. An infrastructure error
makes an attempt `lost`, never wrong; it is repeated on resume. A partial last line is truncated. The plan is written
atomically.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Literal, Self

from pydantic import ValidationError

from appliance.errors import UsageError
from appliance.evaluation.plan import EvaluationPlan
from appliance.records.training import Judged
from appliance.system.durable_file import replace_file
from runtime.model import FrozenModel
from verifiers.contract.verdict import Outcome

PLAN, ATTEMPTS = "plan.json", "attempts.jsonl"


class EvaluationAttempt(FrozenModel):
    """One judged attempt at one question of an evaluation."""

    question: str
    """Id of the task."""
    taskset: str
    level: int
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


def attempt_of(judged: Judged, *, level: int, seed: int, tokens: int) -> EvaluationAttempt:
    """Converts a judged rollout to an attempt of an evaluation, without question and answer."""
    lost = judged.verdict.outcome is Outcome.INFRA_ERROR
    return EvaluationAttempt(
        question=judged.rollout.task,
        taskset=judged.family,
        level=level,
        seed=seed,
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

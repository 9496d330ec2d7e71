"""What became of each attempt, line by line in a file that is only appended to.

What always holds: a line holds no question and no answer, so nothing in the file can be trained on; an attempt that the
infrastructure failed is `lost`, never wrong, and is made again when the run goes on; what a kill left unfinished at the
end of the file is cut off; the plan is there whole or not at all.
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
    """One answer to one question."""

    question: str
    """The task's id."""
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
    """Says what became of a rollout."""
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
    """Context manager: one run at a time writes into a folder."""

    def __init__(self, folder: Path, plan: EvaluationPlan, *, resume: bool) -> None:
        """Raises UsageError for a folder that is in use, is there although nothing is to go on, or holds another
        plan's run; OSError."""
        self._path = folder / ATTEMPTS
        if (folder / PLAN).exists() and not resume:
            raise UsageError(f"{folder} holds a run already", "go on with it: --resume; or name another folder")
        folder.mkdir(parents=True, exist_ok=True)
        self._out: BinaryIO = self._path.open("a+b")
        try:
            fcntl.flock(self._out, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._out.close()
            raise UsageError(f"another run writes into {folder}", "wait for it, or name another folder") from None
        self._keep_plan(folder / PLAN, plan)
        self.found = self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._out.close()

    def add(self, attempts: Iterable[EvaluationAttempt]) -> None:
        """Appends them; they are on disk when it returns."""
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
            raise UsageError(f"{path} is the plan of another run", "give the same options, or name another folder")

    def _read(self) -> dict[tuple[str, int], EvaluationAttempt]:
        """The last line of each attempt counts. Raises UsageError for a line that is none of ours."""
        self._out.seek(0)
        content = self._out.read()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            self._out.truncate(len(whole))
        try:
            made = [EvaluationAttempt.model_validate_json(line) for line in whole.splitlines()]
        except ValidationError as error:
            self._out.close()
            raise UsageError(f"{self._path} has a line that is no attempt", "name another folder") from error
        return {one.place: one for one in made}

"""Runs the calls of demonstrations in sandbox sessions, so that shown results are real."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from appliance.agent.answers import written
from appliance.agent.assignment import tier_of
from appliance.agent.texts import shown
from appliance.records.rollouts import Purpose
from appliance.system.durable_file import replace_file
from curriculum.contract.task import Task
from curriculum.demonstrations import Demonstration
from policies.policy import Policy
from runtime.errors import InfrastructureError
from runtime.sandbox import CallResult, CallStatus, SessionPool

TOGETHER = 128
"""Demonstrations run concurrently."""


@dataclass(frozen=True)
class PlayedDemonstration:
    """Demonstration with the results of its calls."""

    task: Task
    calls: tuple[str, ...]
    results: tuple[str, ...]
    """Results as shown to the policy model."""

    @property
    def answer(self) -> str:
        """Answer of the demonstration: the output of its last call."""
        return self.results[-1]

    @property
    def last(self) -> str:
        """Text of the demonstration's last turn, with its answer."""
        return written(self.answer, self.task.form)


_PLAYED = TypeAdapter(list[PlayedDemonstration])


def keep(played: Sequence[PlayedDemonstration], file: Path) -> None:
    """Writes played demonstrations to the file that `kept` reads, atomically. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, _PLAYED.dump_json(list(played)))


def kept(file: Path) -> list[PlayedDemonstration]:
    """Reads the played demonstrations in a file; empty without a file. Raises ValueError for a damaged file."""
    try:
        return _PLAYED.validate_json(file.read_bytes())
    except FileNotFoundError:
        return []


def play(
    demonstrations: Sequence[Demonstration],
    sessions: SessionPool,
    policy: Policy,
    max_result_chars: int,
    *,
    caller: str,
) -> list[PlayedDemonstration]:
    """Runs the calls of each demonstration in a session of its own, on behalf of `caller` (a cycle). Drops one whose
    last call fails or prints nothing: an operation shown for the wrong question may divide by zero, which teaches
    nothing. Raises as `run_calls`, and InfrastructureError if none could be run."""

    def run(number: int) -> list[CallResult]:
        one = demonstrations[number]
        return run_calls(one.task, one.calls, sessions, policy, caller=f"{caller}.demonstration.{number}")

    played: list[PlayedDemonstration] = []
    with ThreadPoolExecutor(TOGETHER, thread_name_prefix="demonstration") as pool:
        for demonstration, results in zip(demonstrations, pool.map(run, range(len(demonstrations))), strict=True):
            if results[-1].status is CallStatus.OK and results[-1].output.strip():
                texts = tuple(shown(result, max_result_chars) for result in results)
                played.append(PlayedDemonstration(demonstration.task, demonstration.calls, texts))
    if demonstrations and not played:
        raise InfrastructureError("no demonstration could be run", hint="run `assay doctor`")
    return played


def run_calls(
    task: Task, calls: Sequence[str], sessions: SessionPool, policy: Policy, *, caller: str
) -> list[CallResult]:
    """Runs a conversation's Python calls in one session and frees its slot after the last. Any number of conversations
    thus gets by with one slot. Raises `LOST`, and RefusedError without isolation."""
    tier = tier_of(policy, Purpose.TRAIN, task.taskset)
    files = {name: content.encode() for name, content in task.files.items()}
    with sessions.open(tier=tier, caller=caller, files=files) as session:
        return [session.run(code) for code in calls]

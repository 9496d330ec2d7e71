"""Runs the calls of demonstrations, each in a sandbox session, so that what is shown is what came back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from appliance.agent.answers import written
from appliance.agent.isolation import tier_of
from appliance.agent.parsing import shown
from appliance.records.rollouts import Purpose
from curriculum.contract.task import Task
from curriculum.demonstrations import Demonstration
from policies.policy import Policy
from runtime.errors import InfrastructureError
from runtime.sandbox import CallStatus, Session, SessionPool

TOGETHER = 128
"""Demonstrations under way at once."""


@dataclass(frozen=True)
class PlayedDemonstration:
    """A demonstration with the results that its calls gave."""

    task: Task
    calls: tuple[str, ...]
    results: tuple[str, ...]
    """As the policy model is shown them."""

    @property
    def answer(self) -> str:
        """Whatever the last call printed."""
        return self.results[-1]

    @property
    def last(self) -> str:
        """The last turn's text."""
        return written(self.answer, self.task.form)


def play(
    demonstrations: Sequence[Demonstration],
    sessions: SessionPool,
    policy: Policy,
    max_result_chars: int,
    *,
    caller: str,
) -> list[PlayedDemonstration]:
    """Runs each one in a session of its own, on behalf of `caller` (a cycle). A demonstration whose last call fails or
    prints nothing is left out: an operation shown for the wrong question may divide by zero, which teaches nothing.

    Raises RefusedError without isolation and InfrastructureError when sandboxes break.
    """
    played: list[PlayedDemonstration] = []
    for start in range(0, len(demonstrations), TOGETHER):
        some = demonstrations[start : start + TOGETHER]
        held: list[Session] = []
        try:
            for number, demonstration in enumerate(some, start):
                tier = tier_of(policy, Purpose.TRAIN, demonstration.task.taskset)
                held.append(sessions.open(tier=tier, caller=f"{caller}.demonstration.{number}"))
            running = [
                [session.start(code) for code in demonstration.calls]
                for session, demonstration in zip(held, some, strict=True)
            ]
            for demonstration, futures in zip(some, running, strict=True):
                results = [future.result() for future in futures]
                if results[-1].status is CallStatus.OK and results[-1].output.strip():
                    texts = tuple(shown(result, max_result_chars) for result in results)
                    played.append(PlayedDemonstration(demonstration.task, demonstration.calls, texts))
        finally:
            for session in held:
                session.close()
    if demonstrations and not played:
        raise InfrastructureError("not one demonstration could be run", hint="run `assay doctor`")
    return played

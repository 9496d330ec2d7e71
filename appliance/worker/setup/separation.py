"""Filters copies of sealed and held-out questions out of training conversations.

Invariants: a conversation in which a tool returned a held-out question is recorded, and never learned from; each
rejection is an event with its filter and check, which `assay curriculum audit` sums. `curriculum.separation.rules`
defines the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from appliance.records.events import SEPARATION
from appliance.records.training import Judged
from appliance.worker.setup.progress import CycleProgress
from curriculum.contract.task import Task
from curriculum.separation.index import SeparationIndex, text_of
from curriculum.separation.rules import Door, Match


def met_in_results(texts: Iterable[str], task: Task, kept: SeparationIndex) -> Match | None:
    """Returns the held-out question found in the tool results of a task's conversation, if any."""
    own = text_of(task)
    found = (kept.met_by_result(text, own) for text in dict.fromkeys(texts) if text)
    return next((match for match in found if match is not None), None)


def apart(
    judged: Sequence[Judged], tasks: Mapping[str, Task], kept: SeparationIndex
) -> tuple[list[Judged], list[Match]]:
    """Drops rollouts whose tool results show a held-out question; returns the usable ones and the matches of the
    others. `tasks` maps their ids to tasks."""
    fit, met = [], []
    for one in judged:
        texts = [text for call in one.rollout.calls for text in (call.output, call.error)]
        match = met_in_results(texts, tasks[one.rollout.task], kept)
        if match is None:
            fit.append(one)
        else:
            met.append(match)
    return fit, met


def say_thrown_out(progress: CycleProgress, door: Door, matches: Sequence[Match]) -> None:
    """Writes an event with the tasks or rollouts that one data filter rejected; nothing if there were none."""
    if matches:
        checks = Counter(match.check.value for match in matches)
        listed = ", ".join(f"{count} by {check}" for check, count in sorted(checks.items()))
        text = f"{door.value}: {len(matches)} rejected as copies of held-out questions: {listed}"
        progress.say(SEPARATION, text, **{f"{door.value}/{check}": float(count) for check, count in checks.items()})

"""Keeps copies of sealed and held-out questions out of what is learned from, where conversations come in.

What always holds: a conversation in which a tool gave back a kept question is on record, and nothing is learned from
it; what was thrown out, at which door and by which check, is an event that `assay curriculum audit` adds up. The rules
are those of `curriculum.separation.rules`.
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
    """The kept question that stands in what tools gave back in a conversation about that task."""
    own = text_of(task)
    found = (kept.met_by_result(text, own) for text in dict.fromkeys(texts) if text)
    return next((match for match in found if match is not None), None)


def apart(
    judged: Sequence[Judged], tasks: Mapping[str, Task], kept: SeparationIndex
) -> tuple[list[Judged], list[Match]]:
    """The rollouts that may be learned from, and what the others met. `tasks` are theirs, by id."""
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
    """Puts on record what was thrown out at a door; nothing where nothing was."""
    if matches:
        checks = Counter(match.check.value for match in matches)
        listed = ", ".join(f"{count} by {check}" for check, count in sorted(checks.items()))
        text = f"{door.value}: {len(matches)} thrown out as copies of what is kept apart: {listed}"
        progress.say(SEPARATION, text, **{f"{door.value}/{check}": float(count) for check, count in checks.items()})

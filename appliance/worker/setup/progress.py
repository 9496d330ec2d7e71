"""Progress of a running cycle: ledger events and time per phase.

No decision is ever based on an event.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from appliance.learning.checkpoints import newest_valid
from appliance.learning.folders import sweep
from appliance.ledger.ledger import Ledger
from appliance.records.cycles import KEPT_ROLLOUTS, SEPARATION, Cycle, Event
from appliance.records.training import Judged
from appliance.system.clock import utc_now
from curriculum.contract.task import Task
from curriculum.separation.index import SeparationIndex, text_of
from curriculum.separation.rules import Door, Match

QUIET_SECONDS, MOST_QUIET = 30.0, 60.0
"""Time without an event after which a cycle reports progress within a step, at first and then until another event."""


class CycleProgress:
    """Keeps the cycle's record current: phase, state and wall seconds by phase, summed over restarts."""

    def __init__(
        self,
        cycle: Cycle,
        ledger: Ledger,
        clock: Callable[[], float],
        now: Callable[[], str] = utc_now,
        curves: Callable[[str, Mapping[str, float]], None] | None = None,
    ) -> None:
        """Begins to track the progress of a cycle in the ledger. `curves` receives the figures of each event, under its
        kind or curve name."""
        self.cycle = cycle
        self._curves = curves
        self._ledger = ledger
        self._clock = clock
        self._now = now
        self._mark = clock()
        self._said: set[tuple[str, str]] = set()
        self._said_at, self._quiet = self._mark, QUIET_SECONDS

    def say(self, kind: str, text: str, curve: str = "", /, **figures: float) -> None:
        """Writes an event of the cycle to the ledger; `curve` names its figures if the kind is ambiguous."""
        self._ledger.put_event(Event(kind=kind, text=text, figures=figures, created=self._now()))
        self._said_at, self._quiet = self._clock(), QUIET_SECONDS
        if self._curves is not None:
            self._curves(curve or kind, figures)

    def say_once(self, kind: str, text: str) -> None:
        """Writes an event of the cycle unless this process already wrote the same one."""
        if (kind, text) not in self._said:
            self._said.add((kind, text))
            self.say(kind, text)

    def still(self, text: str) -> None:
        """Writes an event of progress within a step, if nothing was written for a while."""
        if self._clock() - self._said_at >= self._quiet:
            self.say("progress", text)
            self._quiet = MOST_QUIET

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Context that records the cycle's current phase while it runs and adds up its time, also when interrupted."""
        self._mark = self._clock()
        self._update(phase=name)
        self.say("phase", name)
        try:
            yield
        finally:
            self.save()

    def save(self) -> None:
        """Records the time spent so far in the cycle's phase, so that a kill loses little of it."""
        now = self._clock()
        seconds = dict(self.cycle.seconds)
        seconds[self.cycle.phase] = seconds.get(self.cycle.phase, 0.0) + now - self._mark
        self._mark = now
        self._update(seconds=seconds)

    def plan(self, **entries: object) -> None:
        """Adds entries to the cycle's plan that later phases must not decide again."""
        self._update(plan={**self.cycle.plan, **entries})

    @property
    def kept(self) -> KeptDigests:
        """Digests of rollouts kept beside the checkpoints; the only plan entry that changes."""
        return KeptDigests(self)

    def resume(self, checkpoints: Path, restore: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        """Resumes training from its newest valid checkpoint and returns that checkpoint's notes; empty at the start.
        Removes damaged checkpoints, with a warning each."""
        sweep(checkpoints)
        newest = newest_valid(checkpoints)
        for folder, reason in newest.broken.items():
            self.say("warning", f"skipped {folder.name}: {reason}")
            shutil.rmtree(folder)
        if newest.folder is None:
            return {}
        notes = restore(newest.folder)
        self.say("resume", f"resumes from step {newest.step}", step=float(newest.step))
        return notes

    def _update(self, **changes: object) -> None:
        self.cycle = self.cycle.model_copy(update={**changes, "updated": self._now()})
        self._ledger.put_cycle(self.cycle)


class KeptDigests:
    """`DigestRecord` stored in the cycle's plan."""

    def __init__(self, progress: CycleProgress) -> None:
        self._progress = progress

    def read(self) -> list[str]:
        known = self._progress.cycle.plan.get(KEPT_ROLLOUTS, ())
        return [str(one) for one in known] if isinstance(known, (list, tuple)) else []

    def write(self, digests: Sequence[str]) -> None:
        self._progress.plan(**{KEPT_ROLLOUTS: list(digests)})


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

"""Saves rollouts of unrecorded steps, so that a killed training resumes from their tokens.

Invariants: the file beside the checkpoints is complete, current or slightly older, and written at most every `SECONDS`,
so short steps never write one. It is removed with the last step it covers. A recorded rollout is never returned again:
only unrecorded steps are requested. The ledger has the file's SHA-256 before the file exists, and a file with another
digest is ignored. Unreadable rollouts, and those of too old weights, are restarted; the outcome is reported once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from appliance.records.record import Record
from appliance.records.rollouts import Message, PartialRollout, Purpose, Rollout
from appliance.system.durable_file import replace_file
from common.counting import counted

SECONDS = 20.0
"""Seconds between two writes: the maximum loss of a kill."""


class KeptRollouts(Record):
    """Content of the file of saved rollouts: complete and unfinished ones."""

    whole: tuple[Rollout, ...] = ()
    parts: tuple[PartialRollout, ...] = ()


class DigestRecord(Protocol):
    """Stores the SHA-256 digests (hex) of files that may exist, where only the file's writer can write."""

    def read(self) -> Sequence[str]: ...

    def write(self, digests: Sequence[str]) -> None: ...


class PartialRollouts:
    """`RolloutKeeper` for one training. Not thread-safe."""

    def __init__(self, path: Path, clock: Callable[[], float], record: DigestRecord, staleness: int = 0) -> None:
        """Reads the rollouts that an earlier process saved in the file. `staleness` is the maximum age, in steps, of
        weights whose tokens are trained on."""
        self._path, self._clock, self._record, self._staleness = path, clock, record, staleness
        self._whole: dict[str, Rollout] = {}
        self._parts: dict[str, PartialRollout] = {}
        self._mine: dict[str, Rollout] = {}
        self._written = clock()
        self._last = -1
        """Last step that the file covers."""
        self._anew: set[str] = set()
        self._went_on: dict[str, int] = {}
        """Sampled tokens of each resumed rollout."""
        self._unread = ""
        self._digest = ""
        """SHA-256 of the existing file."""
        try:
            written = path.read_bytes()
            self._digest = hashlib.sha256(written).hexdigest()
            if self._digest not in record.read():
                self._digest, self._unread = "", "do not match the recorded digest"
                return
            kept = KeptRollouts.model_validate_json(written)
        except FileNotFoundError:
            return
        except (OSError, ValidationError) as error:
            self._unread = f"cannot be read ({type(error).__name__})"
            return
        self._whole = {one.id: one for one in kept.whole if self._fits(one.step, one.cycle, one.nodes)}
        self._parts = {one.id: one for one in kept.parts if self._fits(one.step, one.cycle, one.drawn)}
        self._last = _last(self._whole.values(), self._parts.values())
        names = {one.id for one in kept.whole} | {one.id for one in kept.parts}
        self._anew = names - self._whole.keys() - self._parts.keys()

    def whole(self, rollout: str) -> Rollout | None:
        found = self._whole.pop(rollout, None)
        if found is not None:
            self._went_on[found.id] = _sampled(found.nodes)
            self._mine[found.id] = found
        return found

    def part(self, rollout: str) -> PartialRollout | None:
        found = self._parts.pop(rollout, None)
        if found is not None:
            self._went_on[found.id] = _sampled(found.drawn)
        return found

    def ended(self, rollout: Rollout) -> None:
        if rollout.purpose is Purpose.TRAIN:
            self._mine[rollout.id] = rollout

    def began_anew(self, rollout: str) -> None:
        if self._went_on.pop(rollout, None) is not None:  # else this process began it and lost its host
            self._anew.add(rollout)
        self._mine.pop(rollout, None)

    def look(self, under_way: Callable[[], Sequence[PartialRollout]]) -> None:
        """Saves running and finished rollouts to the file if a write is due. Raises OSError."""
        if self._clock() - self._written < SECONDS:
            return
        # Unrequested rollouts of an earlier process stay: this process may be killed before it requests them.
        kept = KeptRollouts(
            whole=(*self._mine.values(), *self._whole.values()), parts=(*under_way(), *self._parts.values())
        )
        if kept.whole or kept.parts:
            self._replace(kept.model_dump_json().encode())
        else:
            self._path.unlink(missing_ok=True)
        self._last = _last(kept.whole, kept.parts)
        self._written = self._clock()

    def _replace(self, data: bytes) -> None:
        before, self._digest = self._digest, hashlib.sha256(data).hexdigest()
        # A kill before the replacement leaves the previous file.
        self._record.write([one for one in (self._digest, before) if one])
        self._path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self._path, data)

    def committed(self, step: int) -> str:
        """Drops saved rollouts up to this recorded step. Returns a sentence on what an earlier process had saved, or an
        empty string."""
        self._mine = {name: one for name, one in self._mine.items() if one.step > step}
        self._parts = {name: one for name, one in self._parts.items() if one.step > step}
        self._whole = {name: one for name, one in self._whole.items() if one.step > step}
        if self._last <= step:
            self._path.unlink(missing_ok=True)
        if not self._staleness:  # else rollouts of later steps are under way
            self._written = self._clock()
        said = ""
        if self._went_on or self._anew:
            tokens = sum(self._went_on.values())
            said = f"{counted(len(self._went_on), 'rollout')} resumed from {tokens} tokens, {len(self._anew)} restarted"
        if self._unread:
            said = f"saved rollouts {self._unread}: all restarted"
        self._anew, self._went_on, self._unread = set(), {}, ""
        return said

    def _fits(self, step: int, cycle: str, nodes: Sequence[Message]) -> bool:
        """True if all tokens of a saved rollout were drawn by recent enough weights."""
        try:
            drawn = [int(span.version.removeprefix(f"{cycle}@")) for node in nodes for span in node.weights]
        except ValueError:
            return False
        return all(step - self._staleness <= one <= step for one in drawn)


def _last(whole: Iterable[Rollout], parts: Iterable[PartialRollout]) -> int:
    return max([-1, *(one.step for one in whole), *(one.step for one in parts)])


def _sampled(nodes: Sequence[Message]) -> int:
    return sum(len(node.ids) for node in nodes if node.sampled)

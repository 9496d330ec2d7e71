"""Keeps the rollouts of a step that is not on record yet, so that one that is killed goes on from their tokens.

What always holds: the file beside the checkpoints is whole, of this moment or of one before, and is written at most
every `SECONDS`: short steps never write one. It is removed with the last step that it is of. A rollout on record is
never given out again: a step is asked for only while it is not recorded. The ledger has the file's SHA-256 before the
file is there, and nothing is taken from a file that has another one. What cannot be read, or was drawn by weights that
are too old for its step, is begun anew; what became of the rest is said once.
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

SECONDS = 20.0
"""Between two writes: what a kill costs at most."""


class KeptRollouts(Record):
    """The file."""

    whole: tuple[Rollout, ...] = ()
    parts: tuple[PartialRollout, ...] = ()


class DigestRecord(Protocol):
    """Remembers, where the file's writer alone can write, which files may be there: SHA-256, in hexadecimal."""

    def read(self) -> Sequence[str]: ...

    def write(self, digests: Sequence[str]) -> None: ...


class PartialRollouts:
    """Is a `RolloutKeeper` for one training. Not thread-safe."""

    def __init__(self, path: Path, clock: Callable[[], float], record: DigestRecord, staleness: int = 0) -> None:
        """`staleness` is by how many steps weights may be older than what is learned from their tokens."""
        self._path, self._clock, self._record, self._staleness = path, clock, record, staleness
        self._whole: dict[str, Rollout] = {}
        self._parts: dict[str, PartialRollout] = {}
        self._mine: dict[str, Rollout] = {}
        self._written = clock()
        self._last = -1
        """The last step that the file has something of."""
        self._anew: set[str] = set()
        self._went_on: dict[str, int] = {}
        """Sampled tokens that each had."""
        self._unread = ""
        self._digest = ""
        """Of the file that is there."""
        try:
            written = path.read_bytes()
            self._digest = hashlib.sha256(written).hexdigest()
            if self._digest not in record.read():
                self._digest, self._unread = "", "are not what is on record"
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
        if self._went_on.pop(rollout, None) is not None:  # else it is of this process, which lost its host
            self._anew.add(rollout)
        self._mine.pop(rollout, None)

    def look(self, under_way: Callable[[], Sequence[PartialRollout]]) -> None:
        """Raises OSError where nothing can be written."""
        if self._clock() - self._written < SECONDS:
            return
        # What an earlier process had and this one has not asked for yet stays: it may be ended before it does.
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
        # A kill before the file is replaced leaves the one before it.
        self._record.write([one for one in (self._digest, before) if one])
        self._path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self._path, data)

    def committed(self, step: int) -> str:
        """Forgets what is of this step or an earlier one, which are on record; says in a sentence what had been kept
        by an earlier process, empty where nothing had."""
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
            said = f"{len(self._went_on)} rollouts went on from {tokens} tokens, {len(self._anew)} began anew"
        if self._unread:
            said = f"rollouts that were kept {self._unread}: all began anew"
        self._anew, self._went_on, self._unread = set(), {}, ""
        return said

    def _fits(self, step: int, cycle: str, nodes: Sequence[Message]) -> bool:
        """Says whether weights that are not too old drew all of it."""
        try:
            drawn = [int(span.version.removeprefix(f"{cycle}@")) for node in nodes for span in node.weights]
        except ValueError:
            return False
        return all(step - self._staleness <= one <= step for one in drawn)


def _last(whole: Iterable[Rollout], parts: Iterable[PartialRollout]) -> int:
    return max([-1, *(one.step for one in whole), *(one.step for one in parts)])


def _sampled(nodes: Sequence[Message]) -> int:
    return sum(len(node.ids) for node in nodes if node.sampled)

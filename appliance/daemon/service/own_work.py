"""Adds, extends and removes the owner's tasksets.

Invariants: an added taskset is never changed, only removed; collected tasksets (`own/jobs`, `own/sessions`) gain rows
and lose none; neither happens while a cycle uses the taskset, so a resumed cycle draws the same tasks; every change is
in the audit log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from appliance.client.messages import OwnTasksetView
from appliance.client.own_tasks import JOBS, SESSIONS
from appliance.curriculum.own_files import file_of, names_in
from appliance.curriculum.own_tasksets import read_own
from appliance.daemon.contract import BrokenError, EventLog, NotThereError, RefusedByPolicyError, RequestError
from appliance.daemon.governance.trust import Trust
from appliance.daemon.views import ledger_views as views
from appliance.ledger.ledger import Ledger
from appliance.system.durable_file import replace_file, sync_folder, write_private
from common.counting import counted
from curriculum.contract.errors import CurriculumError
from curriculum.names import OWN
from curriculum.own.rows import OwnRow, with_levels
from curriculum.own.taskset import OwnContent
from curriculum.registry import TASKSETS

SOURCES = {JOBS: "verified jobs", SESSIONS: "sessions at the gateway with a verdict"}
"""Collected tasksets, and their sources."""
REFUSED = "own-refused.json"
"""File of refused candidates, in the data folder."""
MOST_REFUSED = 10_000
Reasons = TypeAdapter(dict[str, str])


@dataclass(frozen=True)
class DecidedQuestion:
    """Outcome of a candidate task's question: in a taskset, or refused."""

    taskset: str = ""
    """Taskset that contains it."""
    origin: str = ""
    """Origin of the row in that taskset."""
    refused: str = ""
    """Reason of the refusal."""


@dataclass
class OwnWork:
    """Adds, extends and removes the owner's tasksets; thread-safe."""

    ledger: Ledger
    trust: Trust
    data: Path
    now: Callable[[], str]
    events: EventLog
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _read: dict[str, tuple[tuple[int, int], dict[str, str]]] = field(default_factory=dict)
    """Cache of each taskset's origins by key, with the file's state when read."""

    def add(self, content: OwnContent) -> OwnTasksetView:
        """Stores a taskset of the owner on disk and logs that. Raises RequestError for a taken name or duplicate
        questions, and BrokenError."""
        if content.name in SOURCES:
            raise RequestError(f"own/{content.name} is reserved for collected work", hint="choose another --name")
        if content.name in TASKSETS:
            raise RequestError(f"{content.name} is a built-in taskset", hint="choose another --name")
        if len({row.key for row in content.rows}) != len(content.rows):
            raise RequestError(
                "two rows have the same question", hint="`assay curriculum add` leaves the second one out"
            )
        made = content.model_copy(update={"added": self.now(), "digest": content.rows_digest()})
        path = file_of(self.data, content.name)
        with self._lock:
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_private(path, made.model_dump_json().encode())
                sync_folder(path.parent)
            except FileExistsError as error:
                raise RequestError(
                    f"own/{content.name} already exists",
                    hint=f"give another --name, or `assay curriculum rm own/{content.name}` first",
                ) from error
            except OSError as error:
                raise BrokenError(f"the problems cannot be stored: {error.strerror}", hint="free some space") from error
            try:
                self.trust.log("taskset.added", name=made.name, digest=made.digest, licence=made.licence)
            except BaseException:
                path.unlink()  # not logged, so it must not happen
                raise
        self.events.add(
            "curriculum", f"own/{made.name} was added: {counted(len(made.rows), 'problem')}, {made.digest[:12]}"
        )
        return OwnTasksetView(name=f"{OWN}/{made.name}", digest=made.digest, rows=len(made.rows))

    def collect(self, name: str, more: Sequence[OwnRow], refused: Mapping[str, str]) -> OwnTasksetView:
        """Adds tasks to `own/jobs` or `own/sessions`, and remembers refused ones. Raises RequestError for duplicate
        questions, RefusedByPolicyError while a cycle uses the taskset, BrokenError."""
        full = f"{OWN}/{name}"
        path = file_of(self.data, name)
        with self._lock:
            self._require_unused(full)
            known = read_own(self.data, full).content.rows if path.exists() else ()
            rows = (*known, *more)
            if len({row.key for row in rows}) != len(rows):
                raise RequestError("two rows have the same question", hint="ask for the candidates again")
            digest = ""
            try:
                self._remember(dict(refused))
                if more:
                    made = OwnContent(name=name, licence="your own", source=SOURCES[name], added=self.now(), rows=rows)
                    made = made.model_copy(update={"rows": with_levels(rows)})
                    digest = made.rows_digest()
                    self.trust.log("taskset.collected", name=name, digest=digest, added=str(len(more)))
                    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    replace_file(path, made.model_copy(update={"digest": digest}).model_dump_json().encode())
                    sync_folder(path.parent)
            except OSError as error:
                raise BrokenError(f"the tasks cannot be stored: {error.strerror}", hint="free some space") from error
        if more:
            self.events.add("curriculum", f"{full} has {counted(len(more), 'more task')}, {len(rows)} in all")
        return OwnTasksetView(name=full, digest=digest, rows=len(rows))

    def decided_keys(self) -> set[str]:
        """Returns the keys of all questions in the owner's tasksets, and of refused candidate tasks."""
        catalog = [read_own(self.data, name) for name in names_in(self.data)]
        return {row.key for taskset in catalog for row in taskset.content.rows} | set(self._refused())

    def decided(self) -> dict[str, DecidedQuestion]:
        """Returns, by question key, the taskset that has it or why it was refused; unreadable tasksets are skipped.
        Raises OSError."""
        found = {key: DecidedQuestion(refused=reason) for key, reason in self._refused().items()}
        for name in names_in(self.data):
            with suppress(CurriculumError, FileNotFoundError):
                found |= {key: DecidedQuestion(name, origin) for key, origin in self._origins(name).items()}
        return found

    def _origins(self, name: str) -> dict[str, str]:
        """Returns the origin of each task in an owner's taskset, by key, cached until the file changes."""
        seen = file_of(self.data, name.removeprefix(f"{OWN}/")).stat()
        state = (seen.st_mtime_ns, seen.st_size)
        known = self._read.get(name)
        if known is None or known[0] != state:
            known = (state, {row.key: row.origin for row in read_own(self.data, name).content.rows})
            self._read[name] = known
        return known[1]

    def _refused(self) -> dict[str, str]:
        try:
            return Reasons.validate_json((self.data / REFUSED).read_bytes())
        except (FileNotFoundError, ValidationError):
            return {}  # they are just checked again

    def _remember(self, refused: dict[str, str]) -> None:
        if refused:
            newest = list({**self._refused(), **refused}.items())[-MOST_REFUSED:]
            replace_file(self.data / REFUSED, Reasons.dump_json(dict(newest)))

    def _require_unused(self, full: str) -> None:
        unfinished = views.unfinished_cycle(self.ledger)
        if unfinished is not None and full in _tasksets_of(unfinished.plan):
            raise RefusedByPolicyError(
                f"{unfinished.id} uses {full}", hint="wait for it (`assay cycle watch`), or cancel it first"
            )

    def remove(self, name: str) -> OwnTasksetView:
        """Removes a taskset of the owner from disk and logs that. Raises NotThereError, RefusedByPolicyError while a
        cycle uses it, BrokenError."""
        short = name.removeprefix(f"{OWN}/")
        path = file_of(self.data, short)
        with self._lock:
            self._require_unused(f"{OWN}/{short}")
            if not path.exists():
                raise NotThereError(
                    f"no such taskset: own/{short}", hint="`assay curriculum ls --domain own` lists the owner's"
                )
            self.trust.log("taskset.removed", name=short)
            try:
                path.unlink()
                sync_folder(path.parent)
            except OSError as error:
                raise BrokenError(f"own/{short} cannot be removed: {error.strerror}", hint="check the disk") from error
        self.events.add("curriculum", f"own/{short} was removed")
        return OwnTasksetView(name=f"{OWN}/{short}", digest="", rows=0)


def _tasksets_of(plan: object) -> set[str]:
    """Returns the names of all tasksets in a cycle's plan, in its recipe and its stages."""
    if isinstance(plan, dict):
        own = plan.get("tasksets")
        found = set(own) if isinstance(own, list | tuple) else set()
        return found.union(*(_tasksets_of(value) for value in plan.values()))
    return set().union(*(_tasksets_of(value) for value in plan)) if isinstance(plan, list | tuple) else set()

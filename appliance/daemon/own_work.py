"""Takes in the owner's tasksets, and takes them out again.

What always holds: one that is there is never changed, only removed; none is removed while a cycle uses it, so a cycle
that is resumed draws the same tasks; both are in the audit log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from appliance.client.messages import OwnTasksetView
from appliance.daemon import views
from appliance.daemon.errors import BrokenError, NotThereError, RefusedByPolicyError, RequestError
from appliance.daemon.events import EventLog
from appliance.daemon.trust import Trust
from appliance.durable_file import sync_folder, write_private
from appliance.ledger.ledger import Ledger
from appliance.own_tasksets import file_of
from curriculum.own.taskset import OWN, OwnContent
from curriculum.registry import TASKSETS


@dataclass
class OwnWork:
    """Methods may be called from any thread."""

    ledger: Ledger
    trust: Trust
    data: Path
    now: Callable[[], str]
    events: EventLog
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, content: OwnContent) -> OwnTasksetView:
        """On disk when it returns. Raises RequestError for a name that is taken or rows that ask the same, and
        BrokenError."""
        if content.name in TASKSETS:
            raise RequestError(f"{content.name} is a taskset of the product", hint="choose another --name")
        if len({row.key for row in content.rows}) != len(content.rows):
            raise RequestError("two rows ask the same", hint="`assay curriculum add` leaves the second one out")
        made = content.model_copy(update={"added": self.now(), "digest": content.rows_digest()})
        path = file_of(self.data, content.name)
        with self._lock:
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_private(path, made.model_dump_json().encode())
                sync_folder(path.parent)
            except FileExistsError as error:
                raise RequestError(
                    f"own/{content.name} is there already",
                    hint=f"give another --name, or `assay curriculum rm own/{content.name}` first",
                ) from error
            except OSError as error:
                raise BrokenError(f"the problems cannot be kept: {error.strerror}", hint="free some space") from error
            try:
                self.trust.log("taskset.added", name=made.name, digest=made.digest, licence=made.licence)
            except BaseException:
                path.unlink()  # what is in no log has not happened
                raise
        self.events.add("curriculum", f"own/{made.name} was added: {len(made.rows)} problems, {made.digest[:12]}")
        return OwnTasksetView(name=f"{OWN}/{made.name}", digest=made.digest, rows=len(made.rows))

    def remove(self, name: str) -> OwnTasksetView:
        """Raises NotThereError, RefusedByPolicyError while a cycle uses it, BrokenError."""
        short = name.removeprefix(f"{OWN}/")
        path = file_of(self.data, short)
        with self._lock:
            unfinished = views.unfinished_cycle(self.ledger)
            if unfinished is not None and f"{OWN}/{short}" in _tasksets_of(unfinished.plan):
                raise RefusedByPolicyError(
                    f"{unfinished.id} uses own/{short}", hint="wait for it (`assay cycle watch`), or cancel it first"
                )
            if not path.exists():
                raise NotThereError(
                    f"there is no taskset own/{short}", hint="`assay curriculum ls --domain own` lists the owner's"
                )
            self.trust.log("taskset.removed", name=short)
            try:
                path.unlink()
                sync_folder(path.parent)
            except OSError as error:
                raise BrokenError(f"own/{short} cannot be removed: {error.strerror}", hint="see the disk") from error
        self.events.add("curriculum", f"own/{short} was removed")
        return OwnTasksetView(name=f"{OWN}/{short}", digest="", rows=0)


def _tasksets_of(plan: object) -> set[str]:
    """All that a cycle's plan names as tasksets, in its recipe and in those of its stages."""
    if isinstance(plan, dict):
        own = plan.get("tasksets")
        found = set(own) if isinstance(own, list | tuple) else set()
        return found.union(*(_tasksets_of(value) for value in plan.values()))
    return set().union(*(_tasksets_of(value) for value in plan)) if isinstance(plan, list | tuple) else set()

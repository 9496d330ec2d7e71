"""Life of a job: when it is given up, its state after a kill, which weights answer it, how it is repeated, and its
files.

Invariants: the weights of a job follow from the aliases, the canary's record and the job's id alone, so a job begun
before a kill resumes with the same weights, unless those were taken out of service. Nothing is written here.

A file of that name has those bytes, or is absent. Files that no job names are removed at the next start, under the data
folder's lock.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from appliance.ledger.ledger import Ledger
from appliance.promotion.evidence import CANARY, CHAMPION, PREVIOUS
from appliance.records.jobs import Job, JobState, solved_by_then
from appliance.records.nights import CanaryState
from appliance.system.durable_file import sync_folder, write_new
from common.errors import reading
from policies.canary import arm
from runtime.errors import InfrastructureError

GAVE_WAY = "gives way to a more urgent job"
WAITS = "waits for the first model in service: `assay cycle start`"
WAITS_FOR_MODEL = "waits until the model in service works on it"


def waits_for(job: Job, *, champion: bool, cycle: str, busy: bool) -> str:
    """Returns what a queued job waits for, as a sentence; empty if its turn is next.

    `champion` is True if a model is in service; `cycle` is the one whose worker runs, empty if none; `busy` is True if
    the worker that it needs works on other jobs.
    """
    if not job.solvers_done:
        return "waits for a free worker" if busy else ""
    if not champion:
        return f"waits for the first model in service, which {cycle} makes: `assay cycle watch`" if cycle else WAITS
    if cycle:
        return f"waits for the end of {cycle}, which has the machine: `assay cycle watch`"
    return "waits for a free worker" if busy else WAITS_FOR_MODEL


def overdue(job: Job, now: str) -> str:
    """Returns why the job is given up, as a sentence; empty while there is time. `now` is UTC in ISO 8601."""
    if job.deadline is not None and datetime.fromisoformat(now) >= datetime.fromisoformat(job.deadline):
        return f"its deadline has passed: {job.deadline}"
    if job.budget_seconds is not None and job.spent_seconds >= job.budget_seconds:
        return f"its budget is used up: {job.budget_seconds:g} s of work"
    return ""


def already_solved(job: Job, ledger: Ledger, now: str) -> Job | None:
    """Returns the job as solved by its recorded bundle; None without one.

    A kill may come between recording the bundle and the job's end. The work was then done in time, even if a deadline
    has passed since.
    """
    known = ledger.artifact(job.id)
    if known is None:
        return None
    return solved_by_then(job, known).model_copy(update={"updated": now})


def taken_up_again(job: Job, ledger: Ledger, now: str) -> Job:
    """Returns the job as it stands without a worker: solved if its artifact is recorded, queued otherwise."""
    queued = job.model_copy(update={"state": JobState.QUEUED, "step": "", "updated": now})
    return already_solved(job, ledger, now) or queued


def asked_again(job: Job, now: str, **other: Any) -> Job:
    """Returns a new job with the same question, check and files, and the given fields, which must include `id`."""
    names = ("question", "spec", "files", "attempts", "seed", "budget_seconds", "budget_tokens")
    copied = {name: getattr(job, name) for name in names}
    return Job(**copied | other, state=JobState.QUEUED, created=now, updated=now)


def gives_way(job: Job, other: Job | None) -> bool:
    """True if the other job preempts this one. Submitted jobs go before replays, then higher priority goes first."""
    if other is None or other.id == job.id:
        return False
    return (other.replay_of is None, other.priority) > (job.replay_of is None, job.priority)


def weights_for(job: Job, ledger: Ledger) -> str | None:
    """Returns the digest of the weights that answer the job, the champion's or the canary's; None if no model is in
    service."""
    champion, canary = ledger.alias(CHAMPION), ledger.alias(CANARY)
    newest = ledger.canaries(limit=1) if canary is not None else []
    if not newest or newest[0].candidate != canary or newest[0].state.ended:
        return champion
    if job.replay_of is not None:
        return canary
    known = newest[0]
    if known.state is not CanaryState.SHARE or job.created < known.share_since:
        return champion
    return canary if arm(job.id, known.rules.share, known.id) == "canary" else champion


def withdrawn(weights: str, ledger: Ledger) -> str:
    """Returns why work with these weights must stop and the job return to the queue; empty while they may continue.

    A champion that was replaced in the ordinary way finishes what it began.
    """
    if weights in {ledger.alias(name) for name in (CHAMPION, CANARY, PREVIOUS)}:
        return ""
    return f"the model {weights[:12]} was taken out of service"


_DIGEST = re.compile(r"[0-9a-f]{64}")
HINT = "give it again with `assay submit`, with its files"


class JobFiles:
    def __init__(self, data: Path) -> None:
        self.folder = data / "files"

    def put(self, content: bytes) -> str:
        """Stores a job's file on disk under its SHA-256, and returns that. Raises OSError."""
        digest = hashlib.sha256(content).hexdigest()
        path = self.folder / digest
        with suppress(FileNotFoundError):
            if path.read_bytes() == content:
                return digest
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self.folder / f".{digest}.{secrets.token_hex(4)}"
        try:
            write_new(beside, content)
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        sync_folder(self.folder)
        return digest

    def size(self, digest: str) -> int | None:
        """Returns the size in bytes of the stored job file with this SHA-256; None if it is missing. Raises OSError."""
        try:
            return (self.folder / digest).stat().st_size if _DIGEST.fullmatch(digest) else None
        except FileNotFoundError:
            return None

    def read(self, job: Job) -> dict[str, bytes]:
        """Returns the bytes of a job's files by name. Raises InfrastructureError if one is missing or changed."""
        found: dict[str, bytes] = {}
        for file in job.files:
            with reading(f"the file {file.name}", InfrastructureError, HINT):
                content = (self.folder / file.sha256).read_bytes()
            if hashlib.sha256(content).hexdigest() != file.sha256:
                raise InfrastructureError(f"the file {file.name} is not the one that was given any more", hint=HINT)
            found[file.name] = content
        return found

    def sweep(self, named: Collection[str]) -> None:
        """Removes stored files that no job names, and leftovers of interrupted writes. Raises OSError."""
        if self.folder.is_dir():
            for path in sorted(self.folder.iterdir()):
                if path.name not in named:
                    path.unlink()

"""Stored gateway sessions of an owner, one file each: `gateway/sessions/ID.json`.

Invariants: only requests with consent are stored, after redaction, until their last day; a deleted session is never
written again. A session becomes a task only through `PassedSession`, which requires a verdict that passed.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import Field, ValidationError

from appliance.records.rollouts import Message
from appliance.system.durable_file import sync_folder, write_new
from common.errors import HintedError
from runtime.model import FrozenModel
from verifiers.contract.kinds import AnswerForm
from verifiers.contract.verdict import Verdict
from verifiers.registry import kind_of
from verifiers.registry.spec import Spec

MOST_BYTES = 16 << 20
"""Maximum bytes of one file."""
MOST_SESSIONS = 10_000
MOST_TOTAL_BYTES = 8 << 30
"""Maximum bytes of all files."""
_HEAD = re.compile(
    rb'\{"id":"[^"\\]*","token":"[^"\\]*","created":"[^"\\]*","updated":"([^"\\]*)","expires":"([^"\\]*)"'
)
"""Start of a file, from which its last day is known without parsing the rest."""
_ID = re.compile(r"gs-[0-9a-f]{16}")
_HINT = "`assay gateway sessions ls` lists what is kept"


class KeptSessionError(HintedError):
    """A stored gateway session does not exist or cannot be read."""

    exit_code = 2


class KeptSessionsFullError(KeptSessionError):
    """The gateway stores no new session until some are deleted."""


class SaidText(FrozenModel):
    """Text of one message in a gateway session. Hostile."""

    role: str
    text: str


class KeptSession(FrozenModel):
    """A gateway conversation stored with consent, token by token unless redacted."""

    id: str = Field(pattern=r"^gs-[0-9a-f]{16}$")
    token: str
    """Name of the token used."""
    created: str
    updated: str
    expires: str
    version: str
    """Digest of the weights that answered."""
    tools: tuple[str, ...] = ()
    said: tuple[SaidText, ...]
    """Messages as text; empty if a redaction rule matched, like nodes, answer and check."""
    nodes: tuple[Message, ...] = ()
    """Nodes as sampled and forced."""
    rule: int | None = None
    """Number of the redaction rule that matched, from 1."""
    turns: int = 0
    """Number of the model's messages."""
    questions: int
    """Number of the person's messages."""
    answer: str = ""
    """Newest answer as given; empty after a tool call."""
    complete: bool = False
    """True if the model ended the answer, False if the token limit truncated it."""
    submission: str | None = None
    """Part of the answer that was checked."""
    spec: Spec | None = None
    verdict: Verdict | None = None
    """Verdict of the newest check."""

    @property
    def redacted(self) -> bool:
        return self.rule is not None


@dataclass(frozen=True)
class PassedSession:
    """A gateway session whose answer passed a check that a task can have; only these become tasks."""

    id: str
    question: str
    spec: Spec
    submission: str


def why_no_task(kept: KeptSession) -> str:
    """Returns why a stored gateway session cannot become a task, as a sentence; empty if it can."""
    if kept.redacted:
        return f"it matches rule {kept.rule} of gateway.redact"
    if kept.verdict is None or kept.spec is None:
        return "it has no verdict"
    if not kept.verdict.passed:
        return f"its verdict is {kept.verdict.outcome.value}: {kept.verdict.reason}"
    if kept.submission is None:
        return "it has no answer"
    if kept.questions != 1:
        return "a task is one question, and this is a conversation"
    if kind_of(kept.spec).answer_form(kept.spec) is AnswerForm.WORLD:
        return "its check judges a world"
    return ""


def passed_session(kept: KeptSession) -> PassedSession | None:
    """Returns a gateway session as material for a task; None if nothing may be learned from it."""
    if why_no_task(kept) or kept.spec is None or kept.submission is None:
        return None
    asked = [one.text for one in kept.said if one.role in ("system", "user")]
    return PassedSession(kept.id, "\n\n".join(filter(None, asked)), kept.spec, kept.submission)


class KeptSessions:
    """Gateway sessions stored as files in a data folder; the gateway writes them, the daemon deletes them."""

    def __init__(self, data: Path) -> None:
        self.folder = data / "gateway" / "sessions"

    def put(self, session: KeptSession, *, new: bool, branch_of: str = "") -> bool:
        """Writes a gateway session to its file, atomically. Returns False if it, or the session it branched from, was
        deleted, and if it is too large, which leaves the stored version unchanged. Raises KeptSessionsFullError for a
        new one above the bounds, OSError."""
        path = self._path(session.id)
        content = session.model_dump_json().encode()
        with self._changing():
            known = self._path(branch_of) if new and branch_of else path
            if not (known.exists() or (new and not branch_of)):
                return False
            if len(content) > MOST_BYTES:
                return False
            if new:
                self._require_room(len(content))
            beside = _beside(path)
            beside.unlink(missing_ok=True)
            write_new(beside, content)
            beside.replace(path)
            sync_folder(self.folder)
        return True

    def get(self, name: str) -> KeptSession:
        """Reads a stored gateway session. Raises KeptSessionError."""
        path = self._path(name)
        try:
            return KeptSession.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            raise KeptSessionError(f"no such session: {name!r}", hint=_HINT) from None
        except (OSError, ValidationError) as error:
            raise KeptSessionError(
                f"session {name} cannot be read: {type(error).__name__}",
                hint=f"`assay gateway sessions delete {name}` removes it",
            ) from error

    def names(self) -> list[str]:
        """Returns the names of stored gateway sessions by last write, newest first."""
        if not self.folder.is_dir():
            return []
        found: list[tuple[float, str]] = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                name = entry.name.removesuffix(".json")
                if entry.name.endswith(".json") and _ID.fullmatch(name):
                    with suppress(FileNotFoundError):  # somebody deleted it meanwhile
                        found.append((entry.stat(follow_symlinks=False).st_mtime, name))
        return [name for _, name in sorted(found, reverse=True)]

    def all(self, limit: int = MOST_SESSIONS) -> Iterator[KeptSession]:
        """Yields the readable stored gateway sessions, newest first."""
        for name in self.names()[:limit]:
            try:
                yield self.get(name)
            except KeptSessionError:
                continue

    def delete(self, name: str) -> None:
        """Deletes the file of a stored gateway session. Raises KeptSessionError, OSError."""
        path = self._path(name)
        if not self.folder.is_dir():
            raise KeptSessionError(f"no such session: {name!r}", hint=_HINT)
        with self._changing():
            _beside(path).unlink(missing_ok=True)
            try:
                path.unlink()
            except FileNotFoundError:
                raise KeptSessionError(f"no such session: {name!r}", hint=_HINT) from None
            finally:
                sync_folder(self.folder)

    def _require_room(self, more: int) -> None:
        names, taken = self.names(), more
        for name in names:
            with suppress(FileNotFoundError):
                taken += self._path(name).stat().st_size
        if len(names) >= MOST_SESSIONS or taken > MOST_TOTAL_BYTES:
            raise KeptSessionsFullError(
                f"the session store is full ({len(names)} sessions)",
                hint="delete some (`assay gateway sessions delete`), or lower gateway.retention_days",
            )

    def expire(self, now: str, days: float) -> int:
        """Deletes expired gateway sessions and returns the count. Those are past their stored last day, had their last
        turn over `days` days ago, or are the oldest above `MOST_SESSIONS`. File times are ignored, since a file may be
        a copy. Raises OSError."""
        moment = datetime.fromisoformat(now)

        def is_past(path: Path) -> bool:
            with suppress(FileNotFoundError):
                return _last_moment(path, days) <= moment
            return False

        if not self.folder.is_dir():
            return 0
        paths = [self._path(name) for name in self.names()]
        past = [path for place, path in enumerate(paths) if place >= MOST_SESSIONS or is_past(path)]
        with self._changing():
            for left in self.folder.glob(".gs-*.new"):
                left.unlink()  # from a killed write; nobody writes now
            gone = [path for path in past if path in paths[MOST_SESSIONS:] or is_past(path)]
            for path in gone:
                path.unlink(missing_ok=True)
        return len(gone)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Locks the folder of stored sessions across processes inside the block. A file deleted between a check and a
        write must not reappear."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _path(self, name: str) -> Path:
        if not _ID.fullmatch(name):
            raise KeptSessionError(f"invalid session id {name!r}", hint=_HINT)
        return self.folder / f"{name}.json"


def _beside(path: Path) -> Path:
    """Returns the path of the temporary file that replaces the session's file."""
    return path.with_name(f".{path.stem}.new")


def _last_moment(path: Path, days: float) -> datetime:
    """Returns when a stored session's file is deleted; an unreadable one `days` days after it was written. Raises
    OSError."""
    with path.open("rb") as stream:
        head = _HEAD.match(stream.read(1000))
        written = os.fstat(stream.fileno()).st_mtime
    try:
        if head is not None:
            updated, expires = (datetime.fromisoformat(one.decode()) for one in head.groups())
            return min(expires, updated + timedelta(days=days))
    except (ValueError, TypeError, OverflowError):
        pass  # no times, or times without a zone
    return datetime.fromtimestamp(written, UTC) + timedelta(days=days)


def last_day(now: str, days: float) -> str:
    """Returns the time, in UTC, at which a session stored now is deleted."""
    return (datetime.fromisoformat(now) + timedelta(days=days)).astimezone(UTC).isoformat(timespec="seconds")

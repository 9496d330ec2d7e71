"""What is kept of an owner's sessions at the gateway: a file for each, `gateway/sessions/ID.json`.

What always holds: only what was asked with consent is kept, after redaction, until its last day; one that somebody
deleted is never written again. A session becomes a task through `PassedSession` alone, and there is none without a
verdict that passed.
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
from runtime.errors import HintedError
from runtime.model import FrozenModel
from verifiers.contract.kinds import AnswerForm
from verifiers.contract.verdict import Verdict
from verifiers.registry import kind_of
from verifiers.registry.spec import Spec

MOST_BYTES = 16 << 20
"""Of one file."""
MOST_SESSIONS = 10_000
MOST_TOTAL_BYTES = 8 << 30
"""Of all files."""
_HEAD = re.compile(
    rb'\{"id":"[^"\\]*","token":"[^"\\]*","created":"[^"\\]*","updated":"([^"\\]*)","expires":"([^"\\]*)"'
)
"""How a file begins, so that nobody has to read the rest to know its last day."""
_ID = re.compile(r"gs-[0-9a-f]{16}")
_HINT = "`assay gateway sessions ls` lists what is kept"


class KeptSessionError(HintedError):
    """There is no such session, or it cannot be read."""

    exit_code = 2


class KeptSessionsFullError(KeptSessionError):
    """No more sessions are taken in until some are deleted."""


class SaidText(FrozenModel):
    """A message of a session in words. Hostile text."""

    role: str
    text: str


class KeptSession(FrozenModel):
    """Says what was asked and answered with consent, token by token where nothing in it was redacted."""

    id: str = Field(pattern=r"^gs-[0-9a-f]{16}$")
    token: str
    """Name of the token that asked."""
    created: str
    updated: str
    expires: str
    version: str
    """Digest of the weights that answered."""
    tools: tuple[str, ...] = ()
    said: tuple[SaidText, ...]
    """Empty where a rule of redaction matched, and so are the nodes, the answer and the check."""
    nodes: tuple[Message, ...] = ()
    """As they were sampled and forced."""
    rule: int | None = None
    """Number of the rule of redaction that matched, from 1."""
    turns: int = 0
    """Messages of the model's."""
    questions: int
    """Messages of the person's."""
    answer: str = ""
    """The newest answer, as it was given; empty after a tool call."""
    complete: bool = False
    """Whether the model ended it, and no limit of tokens cut it off."""
    submission: str | None = None
    """What of it was checked."""
    spec: Spec | None = None
    verdict: Verdict | None = None
    """What the newest check said."""

    @property
    def redacted(self) -> bool:
        return self.rule is not None


@dataclass(frozen=True)
class PassedSession:
    """A session whose answer passed a check that a task can have: the only thing here that becomes one."""

    id: str
    question: str
    spec: Spec
    submission: str


def why_no_task(kept: KeptSession) -> str:
    """Why nothing is learned from it, in a sentence; empty where it may become a task."""
    if kept.redacted:
        return f"rule {kept.rule} of gateway.redact matches in it"
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
    """None where nothing may be learned from it."""
    if why_no_task(kept) or kept.spec is None or kept.submission is None:
        return None
    asked = [one.text for one in kept.said if one.role in ("system", "user")]
    return PassedSession(kept.id, "\n\n".join(filter(None, asked)), kept.spec, kept.submission)


class KeptSessions:
    """The files of a data folder. Several processes may have one each: the gateway writes, the daemon deletes."""

    def __init__(self, data: Path) -> None:
        self.folder = data / "gateway" / "sessions"

    def put(self, session: KeptSession, *, new: bool, branch_of: str = "") -> bool:
        """Writes it whole; False where it was there and is not any more, or the one that it branched from is not:
        somebody deleted it; and where it is too large, so that what is there stays as it was. Raises
        KeptSessionsFullError for a new one above the bounds, OSError."""
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
        """Raises KeptSessionError."""
        path = self._path(name)
        try:
            return KeptSession.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            raise KeptSessionError(f"there is no session {name!r}", hint=_HINT) from None
        except (OSError, ValidationError) as error:
            raise KeptSessionError(
                f"session {name} cannot be read: {type(error).__name__}",
                hint=f"`assay gateway sessions delete {name}` takes it away",
            ) from error

    def names(self) -> list[str]:
        """Newest first, by when they were written last."""
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
        """Those that can be read, newest first."""
        for name in self.names()[:limit]:
            try:
                yield self.get(name)
            except KeptSessionError:
                continue

    def delete(self, name: str) -> None:
        """Raises KeptSessionError, OSError."""
        path = self._path(name)
        if not self.folder.is_dir():
            raise KeptSessionError(f"there is no session {name!r}", hint=_HINT)
        with self._changing():
            _beside(path).unlink(missing_ok=True)
            try:
                path.unlink()
            except FileNotFoundError:
                raise KeptSessionError(f"there is no session {name!r}", hint=_HINT) from None
            finally:
                sync_folder(self.folder)

    def _require_room(self, more: int) -> None:
        names, taken = self.names(), more
        for name in names:
            with suppress(FileNotFoundError):
                taken += self._path(name).stat().st_size
        if len(names) >= MOST_SESSIONS or taken > MOST_TOTAL_BYTES:
            raise KeptSessionsFullError(
                f"{len(names)} sessions are kept, and no more are taken in",
                hint="delete some (`assay gateway sessions delete`), or have gateway.retention_days shorter",
            )

    def expire(self, now: str, days: float) -> int:
        """Deletes what is past its last day, as its file says, or had its last turn before so many days, and the oldest
        above `MOST_SESSIONS`; returns how many. When a file was written says nothing: it may be a copy. Raises
        OSError."""
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
                left.unlink()  # of a write that was killed: nobody writes now
            gone = [path for path in past if path in paths[MOST_SESSIONS:] or is_past(path)]
            for path in gone:
                path.unlink(missing_ok=True)
        return len(gone)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """One at a time, of all processes: what is deleted between a look and a write would be there again."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _path(self, name: str) -> Path:
        if not _ID.fullmatch(name):
            raise KeptSessionError(f"{name!r} is no session", hint=_HINT)
        return self.folder / f"{name}.json"


def _beside(path: Path) -> Path:
    """Where it is written before it takes its place."""
    return path.with_name(f".{path.stem}.new")


def _last_moment(path: Path, days: float) -> datetime:
    """When a file is deleted; one that cannot be read, so many days after it was written. Raises OSError."""
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
    """When a session that is written now is deleted."""
    return (datetime.fromisoformat(now) + timedelta(days=days)).astimezone(UTC).isoformat(timespec="seconds")

"""Sessions and sandboxes that live on another host, as their user here sees them.

What always holds: an object belongs to one host for its whole life; once that host is lost every call of it, waiting or
new, ends with InfrastructureError. Waiting for an answer needs no thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from runtime.cluster import messages as m
from runtime.errors import BadRequestError, InfrastructureError, RefusedError
from runtime.sandbox import CallResult, Entry, ExecResult, Limits, Sandbox, Session, SnapshotId, Tier, Usage

TREES = "list, read and write go over the network, one file at a time"
T = TypeVar("T")
R = TypeVar("R", m.Called, m.Executed, m.Boxed, m.Did)
AnyReport = m.Called | m.Executed | m.Boxed | m.Did
Question = m.Call | m.Fork | m.Measure | m.Box | m.Do


class Post(Protocol):
    """What remote objects need of the one who owns them."""

    limits: Limits

    def number(self) -> int:
        """A fresh one, for sessions, sandboxes and calls alike."""
        ...

    def ask(self, command: Question, take: Callable[[AnyReport], T]) -> Future[T]:
        """Sends it to the host where the session lives. The future ends with an error if that host is lost."""
        ...

    def adopt(self, session: RemoteSession, like: int) -> None:
        """A new session that lives where another one does."""
        ...

    def adopt_box(self, box: RemoteSandbox, like: int) -> None: ...

    def keep(self, snapshot: SnapshotId, session: int) -> None:
        """Remembers where a snapshot is."""
        ...

    def leave(self, session: int) -> None:
        """It was closed."""
        ...


class RemoteSession:
    """A `runtime.sandbox.Session` on one host of the cluster."""

    def __init__(self, number: int, host: str, tier: Tier, post: Post) -> None:
        self.id = f"{host}/session-{number}"
        self.number, self.host = number, host
        self._post = post
        self._tier = tier
        self._closed = False

    @property
    def tier(self) -> Tier:
        """As of the last answer."""
        return self._tier

    @property
    def usage(self) -> Usage:
        """Asks the host, and waits for it."""
        question = m.Measure(session=self.number, call=self._post.number())
        return self._post.ask(question, _usage).result()

    def start(self, code: str, *, seconds: float | None = None, keep: bool = False) -> Future[CallResult]:
        if seconds is not None and not seconds > 0:
            raise BadRequestError(f"a call cannot be limited to {seconds} seconds")
        self._check_open()
        call = m.Call(
            session=self.number,
            call=self._post.number(),
            code=code.encode("utf-8", "surrogatepass"),
            seconds=seconds,
            keep=keep,
        )
        return self._post.ask(call, self._ran)

    def run(self, code: str, *, seconds: float | None = None) -> CallResult:
        return self.start(code, seconds=seconds).result()

    def fork(self, n: int, *, undo: bool = False) -> list[Session]:
        if n < 1:
            raise BadRequestError(f"a session cannot be forked into {n}")
        self._check_open()
        into = tuple(self._post.number() for _ in range(n))
        done = self._post.ask(
            m.Fork(session=self.number, call=self._post.number(), into=into, undo=undo),
            lambda report: self._forked(report, into),
        )
        return done.result()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._post.leave(self.number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise BadRequestError(f"{self.id} is closed")

    def _ran(self, report: AnyReport) -> CallResult:
        called = _as(m.Called, report)
        self._tier = called.result.tier
        return called.result

    def _forked(self, report: AnyReport, into: Sequence[int]) -> list[Session]:
        _as(m.Did, report)
        branches = [RemoteSession(number, self.host, self._tier, self._post) for number in into]
        for branch in branches:
            self._post.adopt(branch, self.number)
        return list(branches)


class RemoteSandbox:
    """A `runtime.sandbox.Sandbox` on one host of the cluster. Its snapshots lie there and nowhere else."""

    def __init__(self, number: int, post: Post) -> None:
        self.number = number
        self.id, self.limits = "", post.limits
        self._post = post
        self._closed = False

    def opened(self, report: AnyReport) -> Sandbox:
        boxed = _as(m.Boxed, report)
        self.id, self.limits = boxed.box, boxed.limits
        return self

    @property
    def usage(self) -> Usage:
        return _usage(self._do("measure"))

    def run(self, code: str, *, seconds: float | None = None, patience: float = 1.0) -> CallResult:
        code_bytes = code.encode("utf-8", "surrogatepass")
        return _as(m.Called, self._do("run", data=code_bytes, seconds=seconds, patience=patience)).result

    def exec(
        self, argv: Sequence[str], *, stdin: bytes = b"", seconds: float | None = None, patience: float = 1.0
    ) -> ExecResult:
        done = self._do("exec", arguments=tuple(argv), data=stdin, seconds=seconds, patience=patience)
        return _as(m.Executed, done).result

    def write(self, path: str, data: bytes) -> None:
        self._did("write", text=path, data=data)

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        return self._did("read", text=path, number=max_bytes).data

    def list(self, path: str = "/work") -> Sequence[Entry]:
        return [Entry(item.path, item.what, item.size) for item in self._did("list", text=path).entries]

    def upload(self, source: Path, path: str) -> int:
        """Refused: a tree is copied between this machine and a sandbox on it only."""
        raise RefusedError("a tree of files cannot be sent to a sandbox on another host", hint=TREES)

    def download(self, path: str, target: Path) -> int:
        """Refused likewise."""
        raise RefusedError("a tree of files cannot be fetched from a sandbox on another host", hint=TREES)

    def snapshot(self, *, durable: bool = False) -> SnapshotId:
        kept = SnapshotId(self._did("snapshot", durable=durable).text)
        self._post.keep(kept, self.number)
        return kept

    def prepare(self, snapshot: SnapshotId, copies: int = 1) -> None:
        self._did("prepare", text=snapshot, number=copies)

    def restore(self, snapshot: SnapshotId) -> None:
        (self.id,) = self._did("restore", text=snapshot).boxes

    def fork(self, snapshot: SnapshotId, n: int) -> Sequence[Sandbox]:
        if n < 1:
            raise BadRequestError(f"a snapshot cannot be forked into {n}")
        into = tuple(self._post.number() for _ in range(n))
        names = self._did("fork", text=snapshot, into=into).boxes
        branches = [RemoteSandbox(number, self._post) for number in into]
        for branch, name in zip(branches, names, strict=True):
            branch.id, branch.limits = name, self.limits
            self._post.adopt_box(branch, self.number)
        return branches

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._post.leave(self.number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _do(self, what: m.What, **details: Any) -> AnyReport:
        if self._closed:
            raise BadRequestError(f"sandbox {self.id} is closed")
        command = m.Do(session=self.number, call=self._post.number(), what=what, **details)
        return self._post.ask(command, lambda report: report).result()

    def _did(self, what: m.What, **details: Any) -> m.Did:
        return _as(m.Did, self._do(what, **details))


def _usage(report: AnyReport) -> Usage:
    usage = _as(m.Did, report).usage
    if usage is None:
        raise InfrastructureError("the host does not say what was used")
    return usage


def _as(kind: type[R], report: AnyReport) -> R:
    if not isinstance(report, kind):
        raise InfrastructureError(f"the host answered with {report.kind} where {kind.__name__} was asked for")
    return report

"""Proxies of sessions and sandboxes on another host.

Invariants: an object belongs to one host for its whole life; once that host is lost every call, waiting or new, ends
with HostLostError. Waiting for an answer needs no thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from runtime.cluster import messages as m
from runtime.errors import BadRequestError, InfrastructureError, RefusedError
from runtime.sandbox import (
    HOME,
    NO_VARIABLES,
    CallResult,
    ClosesOnExit,
    ExecResult,
    FileEntry,
    Limits,
    Sandbox,
    Session,
    SnapshotId,
    Tier,
    Usage,
)

TREES = "use list, read and write, which transfer one file at a time"
T = TypeVar("T")


class Post(Protocol):
    """Services that remote sessions and sandboxes need from their pool."""

    def number(self) -> int:
        """Returns a fresh number, unique among sessions, sandboxes and calls."""

    def ask(self, command: m.OpenBox | m.Do, take: Callable[[m.Did], T]) -> Future[T]:
        """Sends a command to the session's host. The future fails if that host is lost."""

    def adopt(self, number: int, like: int, tier: Tier) -> None:
        """Registers a new session or sandbox on the same host as `like`."""

    def keep(self, snapshot: SnapshotId, session: int) -> None:
        """Records that a snapshot exists on the session's host."""

    def leave(self, session: int) -> None:
        """Records that a session was closed."""


class _Remote(ClosesOnExit):
    """Common part of a session and a sandbox on another host."""

    noun: ClassVar[str]

    def __init__(self, number: int, name: str, post: Post) -> None:
        self.id, self.number = name, number
        self._post = post
        self._closed = False

    @property
    def usage(self) -> Usage:
        """Resource usage of the remote session or sandbox, reported by its host; blocks."""
        return _answered(self._do("measure").usage)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._post.leave(self.number)

    def _ask(self, what: m.What, take: Callable[[m.Did], T], **details: Any) -> Future[T]:
        if self._closed:
            raise BadRequestError(f"{self.noun} {self.id} is closed")
        command = m.Do(session=self.number, call=self._post.number(), what=what, **details)
        return self._post.ask(command, take)

    def _do(self, what: m.What, **details: Any) -> m.Did:
        return self._ask(what, lambda did: did, **details).result()

    def _fork(self, n: int, tier: Tier, **details: Any) -> tuple[tuple[int, ...], m.Did]:
        """Forks the remote session or sandbox `n` times; returns the new numbers and the host's answer."""
        into = self._numbers(n)
        did = self._do("fork", into=into, **details)
        self._adopt(into, tier)
        return into, did

    def _numbers(self, n: int) -> tuple[int, ...]:
        if n < 1:
            raise BadRequestError(f"a {self.noun} cannot be forked into {n}")
        return tuple(self._post.number() for _ in range(n))

    def _adopt(self, into: tuple[int, ...], tier: Tier) -> None:
        for number in into:
            self._post.adopt(number, self.number, tier)


class RemoteSession(_Remote):
    """Session on one host of the cluster, a `runtime.sandbox.Session`."""

    noun = "session"

    def __init__(self, number: int, host: str, tier: Tier, post: Post) -> None:
        super().__init__(number, f"{host}/session-{number}", post)
        self.host, self._tier = host, tier

    @property
    def tier(self) -> Tier:
        """Isolation tier of the session at its last answer."""
        return self._tier

    def start(
        self, code: str, *, seconds: float | None = None, keep: bool = False, patience: float = 1.0
    ) -> Future[CallResult]:
        if seconds is not None and not seconds > 0:
            raise BadRequestError(f"a call cannot be limited to {seconds} seconds")
        return self._ask(
            "run", self._ran, data=code.encode("utf-8", "surrogatepass"), seconds=seconds, keep=keep, patience=patience
        )

    def run(self, code: str, *, seconds: float | None = None) -> CallResult:
        return self.start(code, seconds=seconds).result()

    def fork(self, n: int, *, undo: bool = False) -> list[Session]:
        return self.start_fork(n, undo=undo).result()

    def start_fork(self, n: int, *, undo: bool = False) -> Future[list[Session]]:
        into = self._numbers(n)

        def made(_did: m.Did) -> list[Session]:
            return [RemoteSession(number, self.host, self._tier, self._post) for number in into]

        def ended(done: Future[list[Session]]) -> None:
            for number in into if done.exception() is not None else ():
                self._post.leave(number)

        forked = self._ask("fork", made, into=into, undo=undo)
        self._adopt(into, self._tier)  # now: this session may be closed when the answer comes
        forked.add_done_callback(ended)
        return forked

    def _ran(self, did: m.Did) -> CallResult:
        result = _answered(did.result)
        self._tier = result.tier
        return result


class RemoteSandbox(_Remote):
    """Sandbox on one host of the cluster, a `runtime.sandbox.Sandbox`. Its snapshots exist only there."""

    noun = "sandbox"

    def __init__(self, number: int, name: str, limits: Limits, post: Post) -> None:
        super().__init__(number, name, post)
        self.limits = limits

    @classmethod
    def opened(cls, did: m.Did, post: Post) -> RemoteSandbox:
        """Returns the remote sandbox that a host has opened. Raises InfrastructureError for an incomplete answer."""
        return cls(did.session, _answered("".join(did.boxes) or None), _answered(did.limits), post)

    def run(self, code: str, *, seconds: float | None = None, patience: float = 1.0) -> CallResult:
        code_bytes = code.encode("utf-8", "surrogatepass")
        return _answered(self._do("run", data=code_bytes, seconds=seconds, patience=patience).result)

    def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] = NO_VARIABLES,
        cwd: str = HOME,
        user: str = "",
        seconds: float | None = None,
        output_bytes: int | None = None,
        patience: float = 1.0,
    ) -> ExecResult:
        if output_bytes is not None and output_bytes < 1:
            raise BadRequestError(f"a program cannot be limited to {output_bytes} bytes of output")
        did = self._do(
            "exec",
            arguments=tuple(argv),
            data=stdin,
            variables=dict(env),
            cwd=cwd,
            user=user,
            seconds=seconds,
            number=output_bytes or 0,
            patience=patience,
        )
        return _answered(did.ran)

    def write(self, path: str, data: bytes) -> None:
        self._do("write", text=path, data=data)

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        return self._do("read", text=path, number=max_bytes).data

    def list(self, path: str = "/work") -> Sequence[FileEntry]:
        return self._do("list", text=path).entries

    def upload(self, source: Path, path: str) -> int:
        """Always refuses: file trees are copied only between a machine and its own sandboxes."""
        raise RefusedError("a file tree cannot be uploaded to a sandbox on another host", hint=TREES)

    def download(self, path: str, target: Path) -> int:
        """Always refuses: file trees are copied only between a machine and its own sandboxes."""
        raise RefusedError("a file tree cannot be downloaded from a sandbox on another host", hint=TREES)

    def snapshot(self, *, durable: bool = False) -> SnapshotId:
        taken = SnapshotId(self._do("snapshot", durable=durable).text)
        self._post.keep(taken, self.number)
        return taken

    def prepare(self, snapshot: SnapshotId, copies: int = 1) -> None:
        self._do("prepare", text=snapshot, number=copies)

    def restore(self, snapshot: SnapshotId) -> None:
        (self.id,) = self._do("restore", text=snapshot).boxes

    def fork(self, snapshot: SnapshotId, n: int) -> Sequence[Sandbox]:
        into, did = self._fork(n, Tier.SANDBOX, text=snapshot)
        return [
            RemoteSandbox(number, name, self.limits, self._post) for number, name in zip(into, did.boxes, strict=True)
        ]


def _answered(value: T | None) -> T:
    if value is None:
        raise InfrastructureError("the host sent an incomplete answer")
    return value

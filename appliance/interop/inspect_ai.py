"""Sandbox provider for inspect_ai, which loads this module by its entry point.

`sandbox="assay"` gives each sample its own sandbox with the distribution's shell and small programs, under the backend
and within the bounds of the owner's policy for model-written code. Invariants: one program per sandbox at a time,
others wait; a sandbox ends with its sample and all of them with their task; nothing is retried. A sandbox that broke or
used up a limit raises `SandboxUnavailableError`, never a program's own failure.
"""

from __future__ import annotations

import os
import posixpath
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar, overload

import anyio
from anyio import to_thread
from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentConfigType,
    SandboxEnvironmentLimits,
    SandboxUnavailableError,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from pydantic import BaseModel

from runtime.errors import (
    BadRequestError,
    FileDeniedError,
    FileIsFolderError,
    FileMissingError,
    FileTooLargeError,
    InfrastructureError,
    LimitError,
    RefusedError,
)
from runtime.sandbox import HOME, CallStatus, Limits, Sandbox, SessionPool
from runtime.sandbox import ExecResult as ProgramResult

LIMITS = Limits(
    call_seconds=600.0,
    memory_mib=1_024,
    pids=256,
    cpus=2.0,
    output_bytes=10 << 20,
    tmp_mib=128,
    work_mib=256,
    open_files=1_024,
    cpu_seconds=7_200.0,
    life_seconds=21_600.0,
    calls=100_000,
)
"""Limits of a sample that requests none, lowered to the policy's."""
NOT_FOUND, NOT_STARTED, SIGNALLED = 127, 126, 128
"""Shell exit codes: no such program, program cannot be started, and the offset of a signal's number."""
THREADS = 256
"""Maximum number of concurrent calls over all sandboxes."""
T = TypeVar("T")


class Pool:
    """Pool of all sandboxes in this process: opened with the first sandbox, closed with the last task."""

    def __init__(self, open_pool: Callable[[], tuple[SessionPool, Limits]]) -> None:
        self._open_pool = open_pool
        self._lock = threading.Lock()
        self._tasks = 0
        self.opened: tuple[SessionPool, Limits] | None = None

    def begin_task(self) -> None:
        with self._lock:
            self._tasks += 1

    def sandbox(self, wanted: Limits | None) -> Sandbox:
        """Opens a sandbox for a sample. Raises RefusedError or PolicyError, also for limits above the policy's."""
        with self._lock:
            if self.opened is None:
                self.opened = self._open_pool()
            pool, most = self.opened
        if wanted is None:
            bounds = {name: min(getattr(LIMITS, name), getattr(most, name)) for name in BOUNDED}
            wanted = LIMITS.model_copy(update=bounds)
        for name in BOUNDED:
            if getattr(wanted, name) > getattr(most, name):
                raise RefusedError(
                    f"{name} = {getattr(wanted, name):g} is more than the policy allows: {getattr(most, name):g}",
                    hint="Ask for less, or raise it in [resources] of the policy.",
                )
        return pool.sandbox(wanted, userland=True, caller="inspect_ai")

    def end_task(self) -> None:
        with self._lock:
            self._tasks = max(0, self._tasks - 1)
            if self._tasks or self.opened is None:
                return
            (pool, _), self.opened = self.opened, None
        pool.close()


BOUNDED = ("memory_mib", "cpus", "call_seconds", "pids")
"""Limits that the policy bounds."""


def open_pool() -> tuple[SessionPool, Limits]:
    """Connects to the running sandbox broker, or starts one for root, as `assay sandbox run` does. Returns the sandbox
    pool and the policy's limits."""
    from appliance.cli.shell import broker_target
    from appliance.config import places
    from appliance.config.configuration import Settings
    from appliance.settings import policy_files
    from appliance.settings.config_layers import read_layers

    settings = Settings.of_layers(read_layers())
    most = Limits.model_validate(places.most_of(policy_files.load_policy(settings.data).resources))
    return broker_target.sessions(broker_target.for_settings(settings).settings), most


POOL = Pool(open_pool)


@sandboxenv(name="assay")
class AssaySandboxEnvironment(SandboxEnvironment):
    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__()
        self._sandbox = sandbox
        self._turn = threading.Lock()
        self._threads = anyio.CapacityLimiter(THREADS)

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,  # noqa: A002 - as inspect_ai calls it
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Runs a program in the sample's sandbox, as the ordinary user unless `user` is given; without a timeout, up to
        the limit of a call."""
        try:
            ran = await self._in_turn(
                lambda: self._sandbox.exec(
                    cmd,
                    stdin=input.encode() if isinstance(input, str) else input or b"",
                    cwd=cwd or HOME,
                    env=env or {},
                    user=user or "",
                    seconds=None if timeout is None else max(1, timeout),
                    output_bytes=SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE,
                )
            )
        except RefusedError as error:
            raise SandboxUserUnsupportedError(f"{error}; {error.hint}") from error
        except FileDeniedError:
            raise
        except (BadRequestError, LimitError) as error:
            code = NOT_FOUND if isinstance(error, FileMissingError) else NOT_STARTED
            return ExecResult(False, code, "", f"{error}\n")
        return _result(ran, self._sandbox.limits.output_bytes)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        data = contents.encode() if isinstance(contents, str) else contents
        await self._with_files(lambda: self._sandbox.write(_normal(file), data))

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        most = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
        try:
            data = await self._with_files(lambda: self._sandbox.read(_normal(file), max_bytes=most))
        except FileTooLargeError as error:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None) from error
        return data.decode() if text else data

    async def _with_files(self, action: Callable[[], T]) -> T:
        """Runs a file operation in the sandbox; errors unknown to inspect_ai, such as a link or a full disk, become
        PermissionError."""
        try:
            return await self._in_turn(action)
        except (FileMissingError, FileDeniedError, FileIsFolderError, FileTooLargeError):
            raise
        except (BadRequestError, LimitError) as error:
            raise PermissionError(str(error)) from error

    async def _in_turn(self, action: Callable[[], T]) -> T:
        """Runs an action on the sandbox in a thread, one at a time; a cancelled waiter leaves its call running, and the
        next waits for it."""

        def act() -> T:
            with self._turn:
                return action()

        try:
            return await to_thread.run_sync(act, abandon_on_cancel=True, limiter=self._threads)
        except InfrastructureError as error:
            raise SandboxUnavailableError(str(error)) from error

    @classmethod
    def default_concurrency(cls) -> int | None:
        return 2 * (os.cpu_count() or 1)

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        """Parses a sandbox configuration: a set of `runtime.sandbox.Limits`."""
        return Limits.model_validate(config)

    @classmethod
    async def task_init(cls, task_name: str, config: SandboxEnvironmentConfigType | None) -> None:
        POOL.begin_task()

    @classmethod
    async def sample_init(
        cls, task_name: str, config: SandboxEnvironmentConfigType | None, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        """Opens the sandbox of a sample. Raises RefusedError for an invalid configuration or limits above the
        policy's."""
        if config is not None and not isinstance(config, Limits):
            raise RefusedError(
                f"{config!r:.100} is not a configuration of an Assay sandbox",
                hint='Leave it out, or give SandboxEnvironmentSpec("assay", runtime.sandbox.Limits(...)).',
            )
        return {"default": cls(await to_thread.run_sync(partial(POOL.sandbox, config)))}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        with anyio.CancelScope(shield=True):
            for environment in environments.values():
                await to_thread.run_sync(environment.as_type(cls)._sandbox.close)

    @classmethod
    async def task_cleanup(cls, task_name: str, config: SandboxEnvironmentConfigType | None, cleanup: bool) -> None:
        """Closes the sandbox pool with the last task, regardless of `cleanup`: no sandbox outlives its task."""
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(POOL.end_task)


def _normal(file: str) -> str:
    """Returns a sandbox file's absolute path, normalised lexically, relative ones below /work. Links are not followed,
    so it still names the same file."""
    return "/" + posixpath.normpath(posixpath.join(HOME, file)).lstrip("/")


def _result(ran: ProgramResult, most: int) -> ExecResult[str]:
    """Converts a sandbox program's result into inspect_ai's. `most` is the sandbox's own output limit in bytes, which
    may be below inspect_ai's. Raises TimeoutError, OutputLimitExceededError, SandboxUnavailableError."""
    if ran.status is CallStatus.TIMEOUT:
        raise TimeoutError("the program timed out and was stopped")
    output, errors = ran.stdout.decode(errors="replace"), ran.stderr.decode(errors="replace")
    if ran.status is CallStatus.OUTPUT:
        theirs = SandboxEnvironmentLimits
        limit = f"{most / 1024:g} KiB" if most < theirs.MAX_EXEC_OUTPUT_SIZE else theirs.MAX_EXEC_OUTPUT_SIZE_STR
        raise OutputLimitExceededError(limit, output or errors)
    if ran.status is not CallStatus.OK or ran.exit_code is None:
        raise SandboxUnavailableError(f"the sandbox ended the program: {ran.status.value}")
    code = ran.exit_code if ran.exit_code >= 0 else SIGNALLED - ran.exit_code
    return ExecResult(code == 0, code, output, errors)

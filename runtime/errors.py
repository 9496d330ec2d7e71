"""Exception classes of the runtime, by who has to act.

Code that fails inside a sandbox is data: its call returns a `CallResult` with a status. Exceptions are for the caller's
own mistakes and for infrastructure errors:

    SandboxError                any of the below; `hint` is a sentence for the person who reads it
    ├── BadRequestError         the caller asked for something impossible: a limit below zero, a closed session
    │   ├── FileMissingError    no such file, folder or program in the sandbox; also a FileNotFoundError
    │   ├── FileDeniedError     its mode, or a rule, denies access; also a PermissionError
    │   ├── FileIsFolderError   a folder in place of a file; also an IsADirectoryError
    │   ├── FileTooLargeError   more bytes than requested
    │   └── UnknownUserError    the sandbox has no such user
    ├── LimitError              the caller has used up its limits or quotas
    ├── BusyError               too many requests wait; try again later, with less
    ├── RefusedError            isolation is unavailable, or a rule forbids it; never retried, never worked around
    └── InfrastructureError     a sandbox died, a disk or GPU is full, runsc failed; may be retried, is never a reward
        ├── StartError          a sandbox could not be started, moved or restored: never evidence about its code
        ├── StarvedError        other processes took the CPUs until a call's wall clock ran out, before its own time
        ├── GuestLostError      a sandbox ended, or broke the protocol, after code ran in it: the only kind that may be
        │                       that code's doing, and only if it happens again in a fresh sandbox
        ├── BrokerLostError     the broker is gone, with all its sandboxes
        └── HostLostError       a host of the cluster is gone, with all its sandboxes; another may take over
"""

from __future__ import annotations

from typing import Literal

from common.errors import HintedError

ErrorName = Literal[
    "bad_request",
    "missing",
    "denied",
    "folder",
    "too_large",
    "no_user",
    "limit",
    "busy",
    "refused",
    "start",
    "starved",
    "guest_lost",
    "infrastructure",
]
"""Wire names of the exception classes."""


class SandboxError(HintedError):
    pass


class BadRequestError(SandboxError):
    exit_code = 2


class FileMissingError(BadRequestError, FileNotFoundError):
    pass


class FileDeniedError(BadRequestError, PermissionError):
    pass


class FileIsFolderError(BadRequestError, IsADirectoryError):
    pass


class FileTooLargeError(BadRequestError):
    pass


class UnknownUserError(BadRequestError):
    pass


class LimitError(SandboxError):
    pass


class BusyError(SandboxError):
    pass


class RefusedError(SandboxError):
    pass


class InfrastructureError(SandboxError):
    pass


class StartError(InfrastructureError):
    pass


class StarvedError(InfrastructureError):
    pass


class GuestLostError(InfrastructureError):
    pass


class BrokerLostError(InfrastructureError):
    pass


class HostLostError(InfrastructureError):
    pass


MACHINE_ERRORS = (StartError, StarvedError, BrokerLostError, HostLostError, BusyError)
"""Errors of the machine: never a finding about code, a world or a row. They end what was asked."""
ERRORS: dict[ErrorName, type[SandboxError]] = {
    "missing": FileMissingError,
    "denied": FileDeniedError,
    "folder": FileIsFolderError,
    "too_large": FileTooLargeError,
    "no_user": UnknownUserError,
    "bad_request": BadRequestError,
    "limit": LimitError,
    "busy": BusyError,
    "refused": RefusedError,
    "start": StartError,
    "starved": StarvedError,
    "guest_lost": GuestLostError,
    "infrastructure": InfrastructureError,
}


def name_of(error: BaseException) -> ErrorName:
    """Returns an exception's name in messages; any error that is not a SandboxError counts as infrastructure."""
    return next((name for name, kind in ERRORS.items() if isinstance(error, kind)), "infrastructure")

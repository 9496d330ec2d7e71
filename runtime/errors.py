"""Names what can go wrong in the runtime, and who has to act.

Code that fails inside a sandbox is data: its call returns a `CallResult` whose status says how. Exceptions are for the
caller's own mistakes and for what broke under both of them:

    SandboxError                anything below; `hint` is a sentence for the person who reads it
    ├── BadRequestError         the caller asked for something that cannot be: a limit below zero, a closed session
    │   ├── FileMissingError    there is no such file, folder or program in the sandbox; a FileNotFoundError, too
    │   ├── FileDeniedError     its mode, or a rule, does not allow it; a PermissionError, too
    │   ├── FileIsFolderError   a folder stands where a file was meant; an IsADirectoryError, too
    │   ├── FileTooLargeError   it has more bytes than were asked for
    │   └── UnknownUserError    the sandbox has no such user
    ├── LimitError              the caller has had what its limits or quotas give
    ├── BusyError               too many wait already; try again later, with less
    ├── RefusedError            isolation cannot be had, or a rule forbids it; never retried, never worked around
    └── InfrastructureError     a sandbox died, a disk or a GPU is full, runsc broke; may be retried, is never a reward
        ├── BrokerLostError     the broker that was asked is gone, and all that it had with it
        └── HostLostError       a host of the cluster is gone, and all that it had; another one may take the same
"""

from __future__ import annotations

from typing import Literal

ErrorName = Literal[
    "bad_request", "missing", "denied", "folder", "too_large", "no_user", "limit", "busy", "refused", "infrastructure"
]
"""What the classes are called on a wire."""


class HintedError(Exception):
    """Is an error that was foreseen, of any package but `policies`: a message, what to do, and a command's exit
    code."""

    exit_code = 5
    """As in docs/cli.md: 2 for what was asked wrongly, 4 for what is refused, 5 for what broke."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


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


class BrokerLostError(InfrastructureError):
    pass


class HostLostError(InfrastructureError):
    pass


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
    "infrastructure": InfrastructureError,
}


def name_of(error: BaseException) -> ErrorName:
    """Says what an error is called on a wire; one that is no SandboxError is the infrastructure's fault."""
    return next((name for name, kind in ERRORS.items() if isinstance(error, kind)), "infrastructure")

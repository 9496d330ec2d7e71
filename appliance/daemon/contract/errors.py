"""What the daemon refuses, with the exit code that a command then ends with (docs/cli.md).

DaemonError                 carries `hint`, a sentence for the person, and `exit_code`
├── RequestError        2   what was asked for cannot be: the request has to change
│   └── NotThereError   2   nothing of that name
├── RefusedByPolicyError 4  the written policy, or the order of things, forbids it
└── BrokenError         5   something of ours does not work
    ├── NoRoomError     5   the disk has less room than the policy asks for; that may pass
    └── ReadOnlyDataError 5 the disk takes no writes; that may pass
"""

from __future__ import annotations

from policies.refusals import Refusal
from runtime.errors import HintedError


class DaemonError(HintedError):
    pass


class RequestError(DaemonError):
    exit_code = 2


class NotThereError(RequestError):
    pass


class RefusedByPolicyError(DaemonError):
    exit_code = 4

    def __init__(self, message: str, *, hint: str, refusal: Refusal | None = None) -> None:
        """`refusal` is the reason's name where a signed statement was refused: clients act on it."""
        super().__init__(message, hint=hint)
        self.refusal = refusal


class BrokenError(DaemonError):
    exit_code = 5


class NoRoomError(BrokenError):
    pass


class ReadOnlyDataError(BrokenError):
    pass

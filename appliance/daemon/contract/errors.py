"""Refusals of the daemon, with the exit code of the command that met them.

DaemonError                 carries `hint`, a sentence for the person, and `exit_code`
├── RequestError        2   invalid request: it has to change
│   └── NotThereError   2   unknown name
├── RefusedByPolicyError 4  the written policy, or the order of steps, forbids it
└── BrokenError         5   a part of the appliance is broken
    ├── NoRoomError     5   the disk has less room than the policy requires; may pass
    └── ReadOnlyDataError 5 the disk is read-only; may pass
"""

from __future__ import annotations

from common.errors import HintedError
from policies.errors import Refusal


class DaemonError(HintedError):
    pass


class RequestError(DaemonError):
    exit_code = 2


class NotThereError(RequestError):
    pass


class RefusedByPolicyError(DaemonError):
    exit_code = 4

    def __init__(self, message: str, *, hint: str, refusal: Refusal | None = None) -> None:
        """Creates the error. `refusal` names the reason why a signed statement was refused: clients act on it."""
        super().__init__(message, hint=hint)
        self.refusal = refusal


class BrokenError(DaemonError):
    exit_code = 5


class NoRoomError(BrokenError):
    pass


class ReadOnlyDataError(BrokenError):
    pass

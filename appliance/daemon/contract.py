"""Events that all parts of the daemon write into the ledger, and its errors, with the exit code of the command.

DaemonError                 carries `hint`, a sentence for the person, and `exit_code`
├── RequestError        2   invalid request: it has to change
│   └── NotThereError   2   unknown name
├── RefusedByPolicyError 4  the written policy, or the order of steps, forbids it
└── BrokenError         5   a part of the appliance is broken
    ├── NoRoomError     5   the disk has less room than the policy requires; may pass
    └── ReadOnlyDataError 5 the disk is read-only; may pass
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from appliance.ledger.ledger import Ledger, LedgerError
from appliance.records.cycles import Event
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


log = structlog.get_logger("assay")


class EventLog:
    def __init__(self, ledger: Ledger, now: Callable[[], str]) -> None:
        self._ledger = ledger
        self._now = now

    def add(self, kind: str, text: str, **figures: float) -> None:
        self._ledger.put_event(Event(kind=kind, text=text, figures=figures, created=self._now()))

    def tell(self, kind: str, text: str) -> None:
        """Adds a progress event to the ledger, or only logs it if the ledger cannot be written. For callers that must
        continue."""
        try:
            self.add(kind, text)
        except LedgerError as error:
            log.warning(text, kind=kind, not_on_record=str(error))

"""Errors of control API clients, each with the exit code of the command."""

from __future__ import annotations

from pathlib import Path

from appliance.system.lock_owner import DEMONSTRATION, WAIT_FOR_IT, LockOwner
from common.errors import HintedError
from policies.errors import Refusal


class ApiError(HintedError):
    """The daemon refused a request or failed. `exit_code` is the command's; `refusal` says why a signed statement has
    no effect."""

    def __init__(self, message: str, *, hint: str = "", exit_code: int = 5, refusal: Refusal | None = None) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = exit_code
        self.refusal = refusal


class DaemonNotRunning(ApiError):
    """No process listens on the daemon's socket."""

    def __init__(self, socket_path: Path, owner: LockOwner | None = None) -> None:
        found = f"no process listens on {socket_path}"
        hint = "start it with `assay serve` on the same data folder, or name its folder with --data"
        if owner is not None:
            found = f"{owner.words} uses its data folder, and {found}"
            hint = WAIT_FOR_IT if owner.purpose == DEMONSTRATION else "try again in a moment, or stop that process"
        super().__init__(f"the daemon is not running: {found}", hint=hint, exit_code=3)


class DaemonUnreachable(ApiError):
    """The daemon's socket exists, but this user may not open it."""

    def __init__(self, socket_path: Path) -> None:
        super().__init__(
            f"{socket_path}: permission denied for this user",
            hint="run the command as the daemon's user, or as root",
            exit_code=3,
        )


class DaemonSilent(ApiError):
    """A process listens on the daemon's socket but does not answer."""

    def __init__(self, socket_path: Path, seconds: float) -> None:
        super().__init__(
            f"the daemon did not answer within {seconds:g} s on {socket_path}",
            hint="see its log; if it hangs, stop it and start `assay serve` again: nothing is lost",
            exit_code=3,
        )

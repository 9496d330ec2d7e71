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
    """No process listens on the daemon's socket. Exit code 6 if one has the data folder, and may do so soon."""

    def __init__(self, socket_path: Path, owner: LockOwner | None = None) -> None:
        found = f"no process listens on {socket_path}"
        hint = "start it with `assay serve` on the same data folder, or name its folder with --data"
        if owner is None:
            super().__init__(f"the daemon is not running: {found}", hint=hint, exit_code=3)
        elif owner.purpose == DEMONSTRATION:
            found = f"the daemon is not running: {owner.words} uses its data folder, and {found}"
            super().__init__(found, hint=WAIT_FOR_IT, exit_code=3)
        else:
            found = f"the daemon does not listen yet: {owner.words} has its data folder, and starts or ends"
            super().__init__(found, hint=f"try again in a moment; if it lasts, see what {owner.words} is", exit_code=6)


class DaemonUnreachable(ApiError):
    """The daemon's socket exists, but this user may not open it."""

    def __init__(self, socket_path: Path) -> None:
        super().__init__(
            f"{socket_path}: permission denied for this user",
            hint="run the command as the daemon's user, or as root",
            exit_code=3,
        )


class DaemonSilent(ApiError):
    """A process listens on the daemon's socket and did not answer in time: it is busy, or the machine is."""

    def __init__(self, socket_path: Path, seconds: float, owner: LockOwner | None = None) -> None:
        if owner is not None and owner.stopped:
            who = f"the daemon is stopped, and does not answer: {owner.words} got a SIGSTOP"
            super().__init__(who, hint=f"continue it with `kill -CONT {owner.pid}`", exit_code=3)
            return
        super().__init__(
            f"too busy: the daemon did not answer within {seconds:g} s on {socket_path}",
            hint="nothing is known to be wrong: try again when the machine is less busy. If it stays silent on an idle "
            "machine, see its log, stop it, and start `assay serve` again: nothing is lost",
            exit_code=6,
        )

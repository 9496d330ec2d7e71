"""What can go wrong in the runtime, and who has to act.

Code that fails inside a sandbox is data: its call returns a `CallResult` whose status says how. Exceptions are for the
caller's own mistakes and for what broke under both of them:

    SandboxError                anything below; `hint` is a sentence for the person who reads it
    ├── BadRequestError         the caller asked for something that cannot be: a limit below zero, a closed session
    ├── LimitError              the caller has had what its limits or quotas give
    ├── BusyError               too many wait already; try again later, with less
    ├── RefusedError            isolation cannot be had, or a rule forbids it; never retried, never worked around
    └── InfrastructureError     a sandbox died, the disk is full, runsc is broken; may be retried, is never a reward
        └── BrokerLostError     the broker that was asked is gone, and all that it had with it
"""

from __future__ import annotations


class SandboxError(Exception):
    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class BadRequestError(SandboxError):
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

"""Converts every typed error into what a person at the command line sees: a message, a hint and an exit code.

The exit codes are the product's contract with scripts (page cli.md of `assay docs build`). Nothing here imports torch
or SymPy.
"""

from __future__ import annotations

import errno
from enum import IntEnum

from common.errors import HintedError


class ExitCode(IntEnum):
    OK = 0
    FAILED_VERDICT = 1
    USAGE = 2
    NOT_RUNNING = 3
    REFUSED = 4
    INFRASTRUCTURE = 5
    BUSY = 6
    """Nothing was found out, because the machine or the daemon is too busy to answer in time."""


class AssayError(HintedError):
    """An error that ends a command: `message` says what happened, `hint` what to do about it."""

    def __init__(self, message: str, hint: str, code: ExitCode) -> None:
        super().__init__(message, hint=hint)
        self.message = message
        self.code = self.exit_code = code


class UsageError(AssayError):
    """Invalid arguments: the command can succeed when called differently."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, hint, ExitCode.USAGE)


_SYSTEM = {
    errno.ENOSPC: "free some space on that disk and try again: what was recorded before is intact",
    errno.EDQUOT: "the quota is used up: free some space and try again",
    errno.ENOENT: "a folder on that path does not exist: make it, or choose another path",
    errno.ENOTDIR: "part of that path is a file, not a folder: choose another path",
    errno.EACCES: "give the user that runs Assay access to it, or choose another folder with --data",
    errno.EPERM: "give the user that runs Assay access to it, or choose another folder with --data",
    errno.EROFS: "that disk is mounted read-only: choose another data folder with --data",
    errno.ENOMEM: "the machine is out of memory: end other programs, or lower the recipe's batch sizes",
    errno.EMFILE: "too many open files: raise the limit (ulimit -n)",
}


def explain(error: BaseException) -> AssayError:
    """Converts any exception into an AssayError; an unforeseen one is reported as a fault of the program."""
    if isinstance(error, AssayError):
        return error
    hint = getattr(error, "hint", None)
    if isinstance(hint, str):
        return AssayError(str(error), hint, exit_code(error))
    if isinstance(error, OSError):
        subject = f"{error.filename}: " if error.filename is not None else ""
        message = f"{subject}{error.strerror or type(error).__name__}"
        return AssayError(message, _SYSTEM.get(error.errno or 0, "see `assay doctor`"), ExitCode.INFRASTRUCTURE)
    if isinstance(error, MemoryError):
        return AssayError("this machine ran out of memory", _SYSTEM[errno.ENOMEM], ExitCode.INFRASTRUCTURE)
    return AssayError(
        f"unexpected {type(error).__name__}: {error}",
        "this is a bug: run the command again with ASSAY_LOG__LEVEL=debug, and report its output",
        ExitCode.INFRASTRUCTURE,
    )


def exit_code(error: BaseException) -> ExitCode:
    """Returns the exit code of a command that failed with this error."""
    return ExitCode(getattr(error, "exit_code", ExitCode.INFRASTRUCTURE))

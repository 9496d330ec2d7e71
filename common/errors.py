"""The error model.

Every expected error derives from HintedError: its message says what happened, `hint` what the reader can do about it,
and `exit_code` is the code of a command that it ends. Each package derives its own classes, in its `errors.py` or
beside the code that raises them. Anything else that reaches a command is a fault of the program, and is reported so.

    exit code 1   a verdict: refuted, or not verified
    exit code 2   the caller's mistake: an argument, a file, a spec, a policy
    exit code 3   the daemon does not run
    exit code 4   refused: by a policy, a right, or because isolation is unavailable
    exit code 5   infrastructure: a disk, a process, a sandbox, a GPU; never a reward

Code that fails inside a sandbox is data, not an error; an unreadable submission is a failed verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class HintedError(Exception):
    """Expected error of any package, with a hint and a command's exit code."""

    exit_code = 5
    """Exit code of a command: 2 for a bad request, 4 for a refusal, 5 for an infrastructure error."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def reason(error: Exception) -> str:
    """Returns why a file could not be read or written, in a few words and without its path."""
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start}"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


@contextmanager
def reading(subject: object, raised: type[HintedError], hint: str = "") -> Iterator[None]:
    """Converts an OSError, undecodable text or an invalid path into `raised`, "SUBJECT cannot be read: REASON"; passes
    other errors."""
    try:
        yield
    except HintedError:
        raise
    except (OSError, ValueError) as error:
        if isinstance(error, OSError | UnicodeDecodeError) or "null byte" in str(error):
            raise raised(f"{subject} cannot be read: {reason(error)}", hint=hint) from error
        raise

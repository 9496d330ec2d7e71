"""Text inputs of commands: a named file or standard input.

Invariants: reads are bounded; errors name the option of the input.
"""

from __future__ import annotations

import sys
from pathlib import Path

from appliance.errors import UsageError

STDIN = "-"
MOST_BYTES = 8 << 20


def text_of(name: str, option: str, most: int = MOST_BYTES) -> str:
    """Reads text from a file or standard input. Raises UsageError if not text, or longer than `most` bytes."""
    try:
        if name == STDIN:
            content = standard_input(option, most)
        else:
            with Path(name).open("rb") as stream:
                content = stream.read(most + 1)
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}", f"set {option} to a readable file, or `-`") from error
    if len(content) > most:
        raise UsageError(f"{name} is longer than {most >> 20} MiB", f"shorten the input of {option}")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 at byte {error.start}", "save it as UTF-8") from error


def standard_input(option: str, most: int) -> bytes:
    """Reads up to `most` + 1 bytes from standard input. Raises UsageError, naming the option, if it is closed or
    already read."""
    if sys.stdin is None or sys.stdin.closed:
        raise UsageError(
            f"{option}: standard input is closed or already read", "use `-` for one option only, and name a file"
        )
    with sys.stdin as stream:
        return stream.buffer.read(most + 1)

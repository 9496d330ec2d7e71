"""What a person hands to a command: the text in a file that is named, or on standard input.

What always holds: no more is read than may be; what cannot be read is said with the option that named it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from appliance.errors import UsageError

STDIN = "-"
MOST_BYTES = 8 << 20


def text_of(name: str, option: str, most: int = MOST_BYTES) -> str:
    """What a file holds, or standard input. Raises UsageError for what is no text, or more than `most` bytes."""
    try:
        if name == STDIN:
            content = standard_input(option, most)
        else:
            with Path(name).open("rb") as stream:
                content = stream.read(most + 1)
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}", f"{option} names a file that can be read, or `-`") from error
    if len(content) > most:
        raise UsageError(f"{name} is longer than {most >> 20} MiB", f"{option} takes nothing that long")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 at byte {error.start}", "save it as UTF-8") from error


def standard_input(option: str, most: int) -> bytes:
    """Up to `most` bytes and one. Raises UsageError where there is none, or where another option has read it."""
    if sys.stdin is None or sys.stdin.closed:
        raise UsageError(
            f"{option}: there is no standard input left to read", "only one option can be `-`; name a file"
        )
    with sys.stdin as stream:
        return stream.buffer.read(most + 1)

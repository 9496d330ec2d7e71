"""Whether it was a full disk that kept something from being written. Then nothing of it was, and later it may go."""

from __future__ import annotations

import errno
import sqlite3

AGAIN_SECONDS = 5.0
"""Until it is tried again."""
FULL = (errno.ENOSPC, errno.EDQUOT)


def is_full_disk(error: BaseException) -> bool:
    """Whether the error, or what it was raised from, is that no room is left."""
    met: BaseException | None = error
    while met is not None:
        if isinstance(met, OSError) and met.errno in FULL:
            return True
        if isinstance(met, sqlite3.Error) and getattr(met, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
            return True
        met = met.__cause__
    return False

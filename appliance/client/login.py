"""Who asks, where a name is only noted and nothing is signed."""

from __future__ import annotations

import os
import pwd


def login_name() -> str:
    """The login that owns this process."""
    user = os.getuid()
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"uid {user}"

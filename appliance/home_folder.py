"""Expands `~` in a path that a person wrote. What always holds: it raises nothing; a user who does not exist stays in
the path, which then names nothing that is there."""

import os
from pathlib import Path


def expanded(path: str | Path) -> Path:
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises RuntimeError

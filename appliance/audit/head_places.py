"""Locations of the audit log's head outside the data folder.

Invariants: never inside the data folder, where an old copy of the folder would bring an old head; and everyone who
works on a folder, daemon, commands and root, uses the same location. It follows from the folder's owner and that user's
home in the user database, never from `HOME`, which sudo, a shell or a service manager may change. `XDG_STATE_HOME`
moves it for the user's own processes; an existing head in the home counts too, so that the variable cannot hide it.
"""

from __future__ import annotations

import hashlib
import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from appliance.settings.config_layers import ConfigError

if TYPE_CHECKING:
    from appliance.settings.client_config import ClientSettings


def head_files(settings: ClientSettings, data: Path) -> tuple[Path, ...]:
    """Returns the files outside the data folder that store the audit log's head, the witness last. Raises ConfigError
    for a file inside it."""
    files = (settings.audit.head,) if settings.audit.head is not None else _usual(data)
    files += () if settings.audit.witness is None else (settings.audit.witness,)
    if any(file.resolve().is_relative_to(data.resolve()) for file in files):
        raise ConfigError(
            f"audit.head: inside the data folder ({data}), where it proves nothing",
            hint="set audit.head (ASSAY_AUDIT__HEAD) to a file outside of it",
        )
    return files


def head_name(data: Path) -> str:
    """Returns the file name of a data folder's audit log head, unique per data folder."""
    return hashlib.sha256(bytes(data.resolve())).hexdigest()[:16]


@contextmanager
def acting_for_owner(data: Path) -> Iterator[None]:
    """Makes root write as the data folder's owner inside the block.

    The owner's daemon could not overwrite files of root, and root must follow no link that the owner made.
    """
    user = _user(data)
    if os.getuid() != 0 or user == 0:
        yield
        return
    group = data.stat().st_gid
    os.setegid(group)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(os.getgid())


def in_state_folders(below: Path, named: str, home: Path) -> tuple[Path, ...]:
    """Returns the paths of a file below `XDG_STATE_HOME`, if that is set, and below the user's state folder `home`. The
    latter is left out if the variable is set and the file does not exist there."""
    if not Path(named).is_absolute() or Path(named) == home:
        return (home / below,)
    return (Path(named) / below, home / below) if (home / below).exists() else (Path(named) / below,)


def _user(data: Path) -> int:
    """Returns the id of the user whose home has the audit log's head. For root that is the data folder's owner,
    otherwise the process's own user."""
    mine = os.getuid()
    try:
        return data.stat().st_uid if mine == 0 else mine
    except OSError:
        return mine


def _usual(data: Path) -> tuple[Path, ...]:
    user, below = _user(data), Path("assay", "heads", head_name(data))
    named = os.environ.get("XDG_STATE_HOME", "") if user == os.getuid() else ""
    return in_state_folders(below, named, _state_folder(user))


def _state_folder(user: int) -> Path:
    """Returns the folder for a user's program state: below the home, or in /var/tmp for a user without one."""
    try:
        home = Path(pwd.getpwuid(user).pw_dir)
        if home.stat().st_uid == user:
            return home / ".local" / "state"
    except (KeyError, OSError):
        pass
    return Path("/var/tmp", f"assay-{user}")  # noqa: S108 - kept over a start, and only in a folder of its own

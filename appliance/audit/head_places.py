"""Where the head of the audit log is kept outside the data folder.

What always holds: not inside of it, where an old copy of the whole folder would bring its own; and whoever works on a
folder names the same place, daemon and commands, also root for another user's folder. So the place follows from the
user that the folder belongs to and from that user's home in the list of users, never from `HOME`, which sudo, a shell
or a service manager may set otherwise. `XDG_STATE_HOME` moves it for the user's own processes; a head that is in the
home as well then counts, too, so that the variable cannot leave it out.
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
    """Where the audit log's head is kept outside the data folder, the witness last if there is one. Raises ConfigError
    for a place in the data folder."""
    files = (settings.audit.head,) if settings.audit.head is not None else _usual(data)
    files += () if settings.audit.witness is None else (settings.audit.witness,)
    if any(file.resolve().is_relative_to(data.resolve()) for file in files):
        raise ConfigError(
            f"the audit log's head would be kept in the data folder {data}, where it shows nothing",
            hint="set audit.head (ASSAY_AUDIT__HEAD) to a file outside of it",
        )
    return files


def head_name(data: Path) -> str:
    """The name of the head's file: one for each data folder."""
    return hashlib.sha256(bytes(data.resolve())).hexdigest()[:16]


@contextmanager
def acting_for_owner(data: Path) -> Iterator[None]:
    """Has what root writes meanwhile, in another user's data folder and at its log's head, be that user's: its daemon
    could not write over what root leaves there, and root follows no link that the user laid."""
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
    """That file in the folder that `XDG_STATE_HOME` names, if it does, and in the home's unless that would be new."""
    if not Path(named).is_absolute() or Path(named) == home:
        return (home / below,)
    return (Path(named) / below, home / below) if (home / below).exists() else (Path(named) / below,)


def _user(data: Path) -> int:
    """Whose place it is: of whoever is not root, always one's own."""
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
    """In the user's own home, or one of that user's in /var/tmp for whoever has none."""
    try:
        home = Path(pwd.getpwuid(user).pw_dir)
        if home.stat().st_uid == user:
            return home / ".local" / "state"
    except (KeyError, OSError):
        pass
    return Path("/var/tmp", f"assay-{user}")  # noqa: S108 - kept over a start, and only in a folder of its own

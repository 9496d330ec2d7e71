"""Copies of the audit log's head outside the data folder: their locations, one file each, and optionally a witness.

Invariants: a file is at most one entry behind the log and never ahead of it; so a log that ends earlier, differs at
that entry or is signed with another key was exchanged, and is refused. A file is one sector, overwritten whole and not
synced: after a power cut it may be some entries behind, which is no error. A location is never inside the data folder,
where an old copy of the folder would bring an old head; and everyone who works on a folder, daemon, commands and root,
uses the same one. It follows from the folder's owner and that user's home in the user database, never from `HOME`,
which sudo, a shell or a service manager may change. `XDG_STATE_HOME` moves it for the user's own processes; an existing
head in the home counts too, so that the variable cannot hide it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import pwd
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from appliance.settings.config_layers import ConfigError
from policies import audit
from policies.audit import Head

if TYPE_CHECKING:
    from appliance.settings.client_config import ClientSettings

MOVED = (
    "restore the previous data folder; or run `assay audit accept` if you moved it here or restored an old copy "
    "yourself, `assay audit renew --reason TEXT` if you removed the one that was here"
)


class KeptHeads:
    """Reads and writes copies of the audit log's head in files outside the data folder. Without files, no head is
    stored outside, as in tests of the log alone."""

    def __init__(self, files: Sequence[Path] = ()) -> None:
        self._files = tuple(files)
        self._open: list[int] = []

    def problem(self, lines: Sequence[bytes], public: Ed25519PublicKey, *, expected: bool) -> tuple[int, str] | None:
        """Compares the stored heads with the audit log. Returns the number of the first entry that contradicts one, and
        the problem; None if all agree.

        `lines` are the log's, whose chain was checked; `expected` requires that a file exists. Raises OSError.
        """
        known = [(file, content) for file in self._files if file.exists() and (content := file.read_bytes())]
        for file, content in known:
            try:
                log, head = audit.read_head(content, public)
            except ValueError as error:
                return 0, f"the head in {file} cannot be read: {error}"
            if head.number >= len(lines):
                return len(lines), f"the log ends here, and {file} knows of entry {head.number}: its end was cut off"
            if log != audit.digest_of(lines[0]) or head.digest != audit.digest_of(lines[head.number]):
                return head.number, f"it is another one than {file} knows: another log was put in its place"
        if expected and self._files and not known:
            return 0, f"{self._files[0]} is not there, and this log has a head outside the data folder"
        return None

    def open(self) -> None:
        """Opens the files of the audit log's head for writing, creating missing ones. Raises OSError."""
        for file in self._files:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if file.parent.stat().st_uid not in (0, os.geteuid()):
                raise PermissionError(errno.EPERM, "its folder is another user's", str(file))
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._open.append(os.open(file, flags, 0o600))

    def put(self, log: str, head: Head, key: Ed25519PrivateKey) -> None:
        """Signs the audit log's head and writes it to all its files outside the data folder. Raises OSError."""
        content = audit.write_head(log, head, key) if self._open else b""
        for number in self._open:
            os.pwrite(number, content, 0)

    def close(self) -> None:
        while self._open:
            os.close(self._open.pop())


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

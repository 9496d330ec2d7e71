"""Guest users, and the temporary use of their rights to start a program.

Invariants: a supervisor with the rights of a guest's root has given them up except in two moments, starting and ending
a program for somebody; it accesses files as the ordinary user. A session's process never has them, and cannot regain
them. A supervisor without them (the usual case) runs everything as itself.

(credentials(7), capabilities(7): leaving user 0 with all three identities drops every capability.)
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False  # guards imports for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

UID = 1000
TEMPLATES = "/opt/etc"
"""Initial content of a writable /etc."""
TABLE_BYTES, MOST_GROUPS = 1 << 20, 32


class UserError(Exception):
    """Raised for an unknown user, or in a sandbox with only one."""


class Account:
    """User of the sandbox by number, with groups and a home folder."""

    def __init__(self, name: str, uid: int, gid: int, groups: list[int], home: str) -> None:
        self.name, self.uid, self.gid, self.groups, self.home = name, uid, gid, groups, home


GUEST = Account("guest", UID, UID, [], "/work")
ROOT = Account("root", 0, 0, [], "/root")


class Rights:
    several = False
    """True if this process can become any user of the guest; set by `begin`."""


def begin() -> None:
    """Prepares a supervisor started as the guest's root: fills /etc, and becomes the ordinary user."""
    import shutil  # costs a guest memory: only where it is needed

    shutil.copytree(TEMPLATES, "/etc", dirs_exist_ok=True)
    Rights.several = True
    _rest()


def drop() -> None:
    """Makes this process the ordinary user permanently. Raises PermissionError if the kernel leaves a way back."""
    if not Rights.several:
        return
    Rights.several = False
    os.setresuid(UID, UID, UID)
    try:
        os.seteuid(0)
    except PermissionError:
        if os.getresuid() == (UID, UID, UID) and os.getresgid() == (UID, UID, UID) and not os.getgroups():
            return
    raise PermissionError("the session's process keeps rights that it must not have")


def find(name: str) -> Account:
    """Returns a sandbox user by name or number; empty is the ordinary user, regardless of /etc. Raises UserError."""
    if not name or (not Rights.several and name in (GUEST.name, str(UID))):
        return GUEST
    if not Rights.several:
        raise UserError(f"this sandbox has no user but {GUEST.name}")
    for row in _table("/etc/passwd", 7):
        if name in (row[0], row[2]) and _is_number(row[2]) and _is_number(row[3]):
            rows = _table("/etc/group", 4)
            groups = {int(group[2]) for group in rows if _is_number(group[2]) and row[0] in group[3].split(",")}
            return Account(row[0], int(row[2]), int(row[3]), sorted(groups)[:MOST_GROUPS], row[5] or "/")
    raise UserError(f"there is no user {name!r} in this sandbox")


def acting_as(account: Account, action: Callable[[], T]) -> T:
    """Runs an action with that user's rights; programs it starts have these and no others."""
    if not Rights.several:
        return action()
    try:
        os.seteuid(0)
        os.setgroups(account.groups)
        os.setresgid(account.gid, account.gid, account.gid)
        os.setresuid(account.uid, account.uid, 0)  # exec drops the saved uid
        return action()
    finally:
        _rest()


def _rest() -> None:
    os.seteuid(0)
    os.setgroups([])
    os.setresgid(UID, UID, UID)
    os.setresuid(0, UID, 0)


def _is_number(text: str) -> bool:
    """True for a valid user or group number: the highest number means "no change" to the kernel."""
    return text.isascii() and text.isdecimal() and len(text) < 11 and int(text) < (1 << 32) - 1


def _table(path: str, columns: int) -> list[list[str]]:
    """Returns complete rows of a user table that guests may have written: TABLE_BYTES at most of a regular file."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return []
        rows = os.read(file, TABLE_BYTES).decode(errors="replace").split("\n")
    finally:
        os.close(file)
    return [row.split(":") for row in rows if row.count(":") == columns - 1]

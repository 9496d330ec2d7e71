"""Drops root's rights for good: the core and its workers need none once the broker runs.

Invariants after `drop_privileges`: no capability is effective, permitted, inheritable or ambient; if the process had
any, the bounding set is empty too, so that no later program regains one, not even as user 0; and no_new_privs is set,
so that no set-user-id program grants any. Children inherit all of it. Either everything was dropped or an error is
raised. Not promised: without `service.user` the process is still user 0 and owns root's files. It cannot mount, trace,
load or enter anything, but it can write where user 0 may.

See prctl(2), capset(2) and capabilities(7). All of it is per thread, so it happens before a second thread starts.
"""

from __future__ import annotations

import ctypes
import grp
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

from appliance.daemon.contract import BrokenError
from appliance.settings.config_layers import ConfigError

_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522
_MAX_CAPABILITY = 63


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def user_account(name: str | None) -> pwd.struct_passwd:
    """Returns the account that the daemon runs as: the named one, otherwise the current one. Raises ConfigError."""
    mine = os.geteuid()
    try:
        found = pwd.getpwuid(mine) if name is None else pwd.getpwnam(name)
    except KeyError as error:
        who = f"user {mine}" if name is None else f"service.user = {name!r}"
        raise ConfigError(
            f"{who}: no such user on this machine",
            hint="create one with `useradd --system --home-dir /var/lib/assay assay`, or correct service.user",
        ) from error
    if mine not in (0, found.pw_uid):
        raise ConfigError(
            f"service.user is {found.pw_name!r}, and only root can become another user",
            hint=f"start it as {found.pw_name} or as root, or unset service.user",
        )
    return found


def require_own_folder(data: Path, user: pwd.struct_passwd) -> None:
    """Raises BrokenError if the data folder or an entry of it does not belong to the user; root only. Creates a missing
    folder. The daemon, without root's rights, could not write there, and would fail in the middle of a night."""
    if os.geteuid() != 0:
        return  # without root the kernel decides; it also knows groups and access lists
    if not data.exists():
        _make(data, user)
    for place in _tops(data):
        owner = place.lstat().st_uid
        if owner != user.pw_uid:
            raise BrokenError(
                f"{place} belongs to {_name_of(owner)}, and the daemon runs as {user.pw_name}",
                hint=_way_out(data, owner, user),
            )


def drop_privileges(user: pwd.struct_passwd) -> None:
    """Makes the process run as that user, without any capability or a way to regain one. Raises BrokenError."""
    threads = len(list(Path("/proc/self/task").iterdir()))
    if threads != 1:
        raise BrokenError(
            f"root's rights can only be dropped by a single thread, and there are {threads}", hint="report this"
        )
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    try:
        privileged = bool(_effective())
        if privileged:
            for number in _bounding(libc):
                _do(libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0), f"drop capability {number} from the bounding set")
        if os.geteuid() == 0:
            if user.pw_uid != 0:
                os.environ.pop("XDG_STATE_HOME", None)  # root's own
            os.setgroups(_groups(user))
            os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
            os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
        # Linux before 4.3 has no ambient set.
        libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
        header, nothing = _Header(_CAPABILITY_VERSION_3, 0), (_Sets * 2)()
        _do(libc.capset(ctypes.byref(header), nothing), "clear the capabilities")
        _do(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "set no_new_privs")
    except OSError as error:
        raise BrokenError(
            f"root's rights cannot be dropped: {error.strerror}",
            hint="start it as an ordinary user with the broker as a service, or with CAP_SETPCAP, CAP_SETUID and "
            "CAP_SETGID, which are needed to give the others up",
        ) from error
    if _effective():
        raise BrokenError("capabilities remain after they were dropped", hint="report this, with the kernel's name")
    os.environ |= {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}


def _effective() -> int:
    status = Path("/proc/self/status").read_text()
    sets = dict(line.split(":", 1) for line in status.splitlines())
    return int(sets["CapEff"], 16) | int(sets["CapPrm"], 16)


def _bounding(libc: ctypes.CDLL) -> Iterator[int]:
    """Yields the numbers of the capabilities in the process's bounding set; the kernel answers -1 for unknown ones."""
    return (number for number in range(_MAX_CAPABILITY + 1) if libc.prctl(_PR_CAPBSET_READ, number, 0, 0, 0) == 1)


def _do(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot {what}: {os.strerror(number)}")


def _groups(user: pwd.struct_passwd) -> list[int]:
    """Returns the ids of a user's groups; for the current user, those of this process."""
    if user.pw_uid == os.geteuid():
        return os.getgroups()
    return sorted({user.pw_gid, *(group.gr_gid for group in grp.getgrall() if user.pw_name in group.gr_mem)})


def _make(data: Path, user: pwd.struct_passwd) -> None:
    """Creates a data folder owned by the user; parent folders stay as they are or become root's."""
    try:
        data.mkdir(parents=True, mode=0o700)
        os.chown(data, user.pw_uid, user.pw_gid, follow_symlinks=False)
    except OSError as error:
        raise BrokenError(
            f"the data folder {data} cannot be created: {error.strerror}", hint="choose another folder with --data"
        ) from error


def _tops(data: Path) -> Iterator[Path]:
    """Yields the data folder, its entries, and those of `run`: where files of another user would be."""
    yield data
    for folder in (data, data / "run"):
        if folder.is_dir() and not folder.is_symlink():
            yield from sorted(folder.iterdir())


def _name_of(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _way_out(data: Path, owner: int, user: pwd.struct_passwd) -> str:
    if user.pw_uid == 0:
        return f"run it as {_name_of(owner)}, or set service.user to that name (ASSAY_SERVICE__USER)"
    return f"`chown -R {user.pw_name}: {data}` gives it to {user.pw_name}; or correct service.user"

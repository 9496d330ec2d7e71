"""Makes a mount namespace for nsjail to start in, so that what it prepares is never seen on the host.

nsjail wants two working folders in a place of the host, and the guest's unmapped user would have to be able to walk to
the guest's root. Here all are in a small tmpfs over /run that nobody else sees. What always holds: the host's mounts
and folders stay as they are; the namespace is gone when its descriptor is closed and the last jail in it has ended.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from runtime.errors import RefusedError

CLONE_NEWNS = 0x00020000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_SLAVE = 1, 2, 4, 32, 1 << 12, 1 << 14, 1 << 19
FOLDERS = ("/run/user", "/run/user/nsjail.0.root", "/run/user/nsjail.0.tmp")
"""The last two are those that nsjail would otherwise make in /tmp."""


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    texts = [None if text is None else text.encode() for text in (source, target, kind, data)]
    _check(libc.mount(*texts[:3], ctypes.c_ulong(flags), texts[3]), f"mount {target}")


def _make(binds: Mapping[str, Path]) -> int:
    """Leaves the calling thread in the new namespace: it must end after this."""
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(ctypes.c_int(CLONE_NEWNS)), "unshare")
    _mount(None, "/", None, MS_REC | MS_SLAVE)
    origins: dict[str, int] = {}
    try:
        for path, folder in binds.items():
            origins[path] = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        _mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=755")
        for made in (*FOLDERS, *binds):
            Path(made).mkdir()
            Path(made).chmod(0o755)  # whatever the umask is, the guest's user has to walk through
        for path, origin in origins.items():
            _mount(f"/proc/thread-self/fd/{origin}", path, None, MS_BIND)
            _mount(None, path, None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)
    finally:
        for origin in origins.values():
            os.close(origin)
    return os.open("/proc/thread-self/ns/mnt", os.O_RDONLY)


def make(binds: Mapping[str, Path]) -> int:
    """Gives a descriptor of a new namespace with these folders of the host at their places directly below /run,
    read-only; the caller closes it. Some milliseconds.

    Raises RefusedError where it cannot be made.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="nsjail-mounts") as thread:
        try:
            return thread.submit(_make, binds).result()
        except OSError as error:
            raise RefusedError(
                f"no mount namespace for nsjail can be had: {error}",
                hint="Run as root with the capability to mount (CAP_SYS_ADMIN); in a container it has to be granted.",
            ) from error

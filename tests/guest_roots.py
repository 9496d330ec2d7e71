"""One guest root for all tests of a run: built once on the machine, by the product's own code, and lent to those who
would build the same one again (some three seconds of a processor each)."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runtime.backends.rootfs import ensure_root


def built(tmp_path_factory: pytest.TempPathFactory, *, programs: bool = False) -> Path:
    """The folder that it is in, with `programs` beside one that has a userland. Test processes of one run wait for each
    other, and share it."""
    run = shared(tmp_path_factory)
    folder = run / "guest-roots"
    with alone(run / "guest-roots.lock"):
        ensure_root(folder, programs=programs)
    return folder


def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that all test processes of one run have in common."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """While this is held no other process of the run holds it."""
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def without_userland(folder: Path) -> list[Path]:
    """Those with Python alone, which may be linked: some tests ask that the files of a userland have one name."""
    return [root for root in folder.glob("root-*") if not (root / "usr/bin/sh").exists()]


def lend(roots: Path, folder: Path) -> None:
    """Puts what is built in `roots` where a broker with that folder looks for its own; golden images are not shared.
    A folder that has something there already is left alone."""
    own = folder / "guest-roots"
    if own.exists():
        return
    own.mkdir(parents=True, mode=0o700)
    for root in roots.glob("root-*"):
        (own / root.name).symlink_to(root)

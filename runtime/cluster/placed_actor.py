"""Actor that serves one driver on one cluster host, beside sessions: an engine, or learners.

Invariants: it is independent of Ray, and its servant is named as `module:attribute` of this installation. Messages are
JSON and files are bytes: we unpickle nothing that a driver sends. (Ray pickles its calls, and the holder of the
cluster's token can run anything on its hosts.) Files are written only below the servant's own folder. A host that is
leaving takes no new actors, and waits for existing ones.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import re
from pathlib import Path
from typing import Any, Protocol

from runtime.cluster.settings import HOST_VARIABLE, HostSettings, own_digest
from runtime.errors import BadRequestError, RefusedError

SERVANT = re.compile(r"appliance(\.[a-z_]+)+:[A-Za-z]+")
PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,254}")
"""Pattern of file and folder names."""
LARGEST_PART = 8 << 20
"""Largest file part per message, in bytes."""


class Servant(Protocol):
    """Handler of one driver's messages inside an actor. Errors are answers: an exception counts as its end."""

    folder: Path
    """Private folder of mode 0700."""

    def answer(self, message: dict[str, Any]) -> dict[str, Any]: ...

    def close(self) -> None: ...


class PlacedActor:
    """Ray actor for one driver: stores files, and passes messages to its servant, one at a time."""

    def __init__(self, servant: str) -> None:
        """Creates the actor and its servant. Raises KeyError on a Ray node that did not join through
        `runtime.cluster.node`, RefusedError while that host leaves."""
        if not SERVANT.fullmatch(servant):
            raise BadRequestError(f"{servant!r} is not a valid servant name")
        settings = HostSettings.model_validate_json(Path(os.environ[HOST_VARIABLE]).read_bytes())
        if settings.draining.exists():
            raise RefusedError(f"{settings.name} is leaving the cluster", hint="use another host")
        self._lock = os.open(settings.in_use, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        self._name = settings.name
        module, _, name = servant.partition(":")
        self._servant: Servant = getattr(importlib.import_module(module), name)()

    def ready(self) -> bytes:
        """Returns host name, process id and program digest of the actor, as JSON."""
        return json.dumps({"host": self._name, "pid": os.getpid(), "program": own_digest()}).encode()

    def ask(self, message: bytes) -> bytes:
        return json.dumps(self._servant.answer(json.loads(message))).encode()

    def put(self, folder: str, name: str, offset: int, data: bytes) -> None:
        """Writes a part of a file into the servant's folder; offset 0 starts the file anew."""
        path = self._at(folder, name)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with path.open("r+b" if offset else "wb") as file:
            file.seek(offset)
            file.write(data)

    def names(self, folder: str) -> bytes:
        """Returns the file names in a folder of the servant, as JSON."""
        return json.dumps(sorted(entry.name for entry in self._at(folder).iterdir())).encode()

    def get(self, folder: str, name: str, offset: int) -> bytes:
        """Returns a part of a file in the servant's folder; shorter than `LARGEST_PART` at its end."""
        with self._at(folder, name).open("rb") as file:
            file.seek(offset)
            return file.read(LARGEST_PART)

    def alive(self) -> None:
        """Returns immediately, even during other work, to show that the actor lives."""

    def close(self) -> None:
        """Closes the actor's servant, which removes its folder."""
        self._servant.close()
        os.close(self._lock)

    def _at(self, *names: str) -> Path:
        """Returns a path below the servant's folder. Raises BadRequestError for a name that leads elsewhere."""
        for name in names:
            if not PLAIN.fullmatch(name):
                raise BadRequestError(f"invalid file name {name!r}")
        return self._servant.folder.joinpath(*names)

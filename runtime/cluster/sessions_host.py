"""The actor that Ray starts on a host is configured by that host's own file, and by nobody else."""

from __future__ import annotations

import os
from pathlib import Path

from runtime.cluster.host_actor import HostActor
from runtime.cluster.settings import HOST_VARIABLE, HostSettings
from runtime.sessions import Sessions


class SessionsHost:
    """Passes calls on to `HostActor`; it is thin, because Ray wraps every method of an actor's class."""

    def __init__(self) -> None:
        """Raises KeyError on a Ray node that did not join by `runtime.cluster.node`."""
        settings = HostSettings.model_validate_json(Path(os.environ[HOST_VARIABLE]).read_bytes())
        self._host = HostActor(
            settings,
            lambda limits: Sessions(settings.runtime.model_copy(update={"limits": limits})),
            ended=lambda: os._exit(0),
        )

    def submit(self, packets: list[bytes]) -> None:
        self._host.submit(packets)

    def collect(self, seconds: float) -> bytes:
        return self._host.collect(seconds)

    def report(self) -> bytes:
        return self._host.report()

    def close(self) -> None:
        self._host.close()

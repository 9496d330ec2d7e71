"""Lists the hosts of a cluster, from a machine in it."""

from __future__ import annotations

import subprocess
import tempfile

from pydantic import TypeAdapter

from runtime.broker.messages import WireFailure
from runtime.cluster.link import start_gateway
from runtime.errors import InfrastructureError
from runtime.model import FrozenModel
from runtime.settings import ClusterSettings


class HostLine(FrozenModel):
    name: str
    address: str
    alive: bool
    head: bool
    drivers: int
    """Pools that have, or could have, sessions there."""
    sessions: int
    draining: bool
    """True if draining, as far as a driver has observed."""


ANSWER: TypeAdapter[list[HostLine] | WireFailure] = TypeAdapter(list[HostLine] | WireFailure)
"""Type of the gateway's status answer."""


def hosts(settings: ClusterSettings) -> list[HostLine]:
    """Returns present and past hosts of the cluster, live ones first, by name. Raises RefusedError without the token,
    InfrastructureError on a timeout."""
    with tempfile.TemporaryFile() as output:
        listener = start_gateway(settings, output.fileno(), "status")
        try:
            listener.process.wait(settings.connect_seconds)
        except subprocess.TimeoutExpired:
            raise InfrastructureError(
                f"no answer from the cluster at {settings.address} for {settings.connect_seconds:.0f} s",
                hint="check that its first host is up",
            ) from None
        finally:
            listener.kill()
        output.seek(0)
        written = output.read()
    try:
        answer = ANSWER.validate_json(written)
    except ValueError as error:
        raise InfrastructureError("invalid answer from the cluster") from error
    if isinstance(answer, WireFailure):
        raise answer.exception()
    return sorted(answer, key=lambda line: (not line.alive, line.name))

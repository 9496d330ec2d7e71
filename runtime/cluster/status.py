"""Who is in the cluster, asked by a machine that is in it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from ipaddress import ip_address
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter

from runtime.cluster import listening
from runtime.cluster.messages import Trouble
from runtime.cluster.settings import ClusterSettings
from runtime.cluster.token import QUICK, ray_environment
from runtime.errors import InfrastructureError


class HostLine(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    address: str
    alive: bool
    head: bool
    drivers: int
    """Pools that have sessions there, or could have."""
    sessions: int
    draining: bool
    """As far as a driver has asked."""


Answer: TypeAdapter[list[HostLine] | Trouble] = TypeAdapter(list[HostLine] | Trouble)


def hosts(settings: ClusterSettings) -> list[HostLine]:
    """Those that are and those that were, by name. Raises RefusedError without the token, InfrastructureError when the
    cluster does not answer in time."""
    with tempfile.TemporaryFile() as output:
        told = [str(output.fileno()), settings.model_dump_json(), "status"]
        listener = listening.start(
            [sys.executable, "-I", "-m", "runtime.cluster.gateway", *told],
            ip_address(settings.interface),
            environ=ray_environment(os.environ, settings.token, **QUICK),
            folder=Path("/"),
            output=subprocess.DEVNULL,
            descriptors=(output.fileno(),),
        )
        try:
            listener.process.wait(settings.connect_seconds)
        except subprocess.TimeoutExpired:
            listener.process.kill()
            raise InfrastructureError(
                f"the cluster at {settings.address} has not answered for {settings.connect_seconds:.0f} s",
                hint="is its first host up?",
            ) from None
        finally:
            listener.process.wait()
            listener.close()
        output.seek(0)
        said = output.read()
    try:
        answer = Answer.validate_json(said)
    except ValueError as error:
        raise InfrastructureError("the cluster gave no answer that can be understood") from error
    if isinstance(answer, Trouble):
        raise answer.exception()
    return sorted(answer, key=lambda line: (not line.alive, line.name))

"""`assay cluster`: more than one machine for sandboxes.

A machine is a member while `start` or `join` runs there, in the foreground like `assay serve`. Ray's configuration and
confinement are in `runtime.cluster`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.options import read_settings
from appliance.cli.show.printing import Output, in_data_folder, prints, records, show_line

if TYPE_CHECKING:
    from runtime.cluster import HostLine

app = typer.Typer(help="Run sandboxes on several machines.", no_args_is_help=True)
PORT = 6379

Interface = Annotated[
    str | None,
    typer.Option(
        "--interface",
        metavar="ADDRESS",
        help="This machine's address in the cluster (default: as configured); nothing listens on another.",
    ),
]
Name = Annotated[str, typer.Option("--name", help="Name of this machine in the cluster (default: its address).")]


@app.command("start")
@in_data_folder
def start(
    interface: Interface = None,
    port: Annotated[int, typer.Option("--port", min=1024, max=65471, help="First of 64 ports used.")] = PORT,
    name: Name = "",
) -> None:
    """Start a cluster with this machine, until Ctrl-C, SIGTERM or `leave`.

    Example: assay cluster start --interface 10.0.0.1 --port 6379
    """
    _take_part(interface, name, port=port)


@app.command("join")
@in_data_folder
def join(
    address: Annotated[str, typer.Argument(help="ADDRESS:PORT of the first machine.")],
    interface: Interface = None,
    name: Name = "",
) -> None:
    """Join this machine to a cluster, until Ctrl-C, SIGTERM or `leave`. Needs a copy of its token.

    Example: assay cluster join 10.0.0.1:6379
    """
    _take_part(interface, name, address=address)


@app.command("status")
@prints
def status() -> Output[Sequence[HostLine]]:
    """List the machines of the cluster, as reported by one of them."""
    from appliance.config.places import cluster_folder, cluster_settings
    from appliance.errors import AssayError, ExitCode
    from runtime.cluster import node_settings

    settings = read_settings()
    cluster, here = cluster_settings(settings, settings.data), node_settings(cluster_folder(settings, settings.data))
    if here is not None:
        from runtime.cluster import NodeSettings
        from runtime.settings import ClusterSettings

        node = NodeSettings.model_validate_json(here)
        cluster = ClusterSettings(address=node.address, interface=node.interface, token=node.token)
    if cluster is None:
        raise AssayError(
            "no cluster is configured or joined on this machine",
            "start one with `assay cluster start`, or set cluster.address",
            ExitCode.NOT_RUNNING,
        )
    from runtime.cluster import hosts

    return records(
        hosts(cluster),
        ("host", "address", "state", "drivers", "sessions"),
        lambda line: (
            f"{line.name}{' (first)' if line.head else ''}",
            line.address,
            "gone" if not line.alive else "leaving" if line.draining else "there",
            line.drivers,
            line.sessions,
        ),
        empty="no machine",
    )


@app.command("leave")
@in_data_folder
def leave(
    wait: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait for its sessions; then they are lost.")
    ] = 60.0,
) -> None:
    """Remove this machine from the cluster: it gets no new sessions, and leaves when the last one ends or time is up.

    Example: assay cluster leave --wait 60
    """
    from appliance.config.places import cluster_folder
    from appliance.errors import AssayError, ExitCode
    from runtime.cluster import leave as take_out

    settings = read_settings()
    if not take_out(cluster_folder(settings, settings.data), wait):
        raise AssayError("this machine is not in a cluster", "check with `assay cluster status`", ExitCode.NOT_RUNNING)
    show_line("this machine has left the cluster")


def _take_part(interface: str | None, name: str, *, address: str = "", port: int = PORT) -> None:
    """Makes this machine a node of a cluster until it leaves or is interrupted; without `address` it is the first
    node."""
    from pydantic import ValidationError

    from appliance.cli.shell.broker_target import find
    from appliance.config import places
    from appliance.text.printable import printable
    from runtime.cluster import READY, NodeSettings, run_node
    from runtime.shutdown import Shutdown

    settings = read_settings()
    runtime = find(ready=None).settings
    here = interface or settings.cluster.interface
    head, address = not address, address or f"{here}:{port}"
    try:
        node = NodeSettings(
            head=head,
            address=address,
            interface=here,
            token=places.cluster_token(settings, settings.data),
            folder=places.cluster_folder(settings, settings.data),
            name=name,
            runtime=runtime,
        )
    except ValidationError as error:
        raise typer.BadParameter(str(error.errors()[0]["msg"]).removeprefix("Value error, ")) from error
    stop = Shutdown()

    def show(what: str) -> None:
        if what == READY:
            show_line(f"this machine is in the cluster at {address}, as {node.host.name}")
        else:
            typer.echo(printable(what), err=True)

    if head:
        show_line(f"join others with `assay cluster join {address}` and a copy of {node.token}")
    run_node(node, stop, show)

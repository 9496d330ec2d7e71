"""`assay cluster`: more than one machine that runs sandboxes.

A machine is in the cluster while `start` or `join` runs there, in the foreground like `assay serve`. What these tell
Ray, and what they keep it from, is `runtime.cluster.node`'s business.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.options import Data, Json, settings_of

if TYPE_CHECKING:
    from appliance.config import Settings

app = typer.Typer(help="Run sandboxes on more than one machine.", no_args_is_help=True)
PORT = 6379

Interface = Annotated[
    str | None,
    typer.Option(
        "--interface",
        metavar="ADDRESS",
        help="This machine's address in the cluster; otherwise the configuration's. Nothing listens on another.",
    ),
]
Name = Annotated[str, typer.Option("--name", help="Of this machine in the cluster; otherwise its address.")]


@app.command("start")
def start(
    context: typer.Context,
    interface: Interface = None,
    port: Annotated[int, typer.Option("--port", min=1024, max=65471, help="The first of 64 that are used.")] = PORT,
    name: Name = "",
    data: Data = None,
) -> None:
    """Begin a cluster with this machine, until Ctrl-C, SIGTERM or `leave`."""
    settings = settings_of(context, data)
    here = interface or settings.cluster.interface
    _take_part(settings, f"{here}:{port}", here, name, head=True)


@app.command("join")
def join(
    context: typer.Context,
    address: Annotated[str, typer.Argument(help="ADDRESS:PORT of the first machine.")],
    interface: Interface = None,
    name: Name = "",
    data: Data = None,
) -> None:
    """Put this machine into a cluster, until Ctrl-C, SIGTERM or `leave`. Needs a copy of its token."""
    settings = settings_of(context, data)
    _take_part(settings, address, interface or settings.cluster.interface, name, head=False)


@app.command("status")
def status(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """The machines of the cluster, asked from one of them."""
    from appliance.cli.show import show_json, show_table
    from appliance.errors import AssayError, ExitCode
    from appliance.places import cluster_folder, cluster_settings
    from runtime.cluster.folder import told
    from runtime.cluster.node import NodeSettings
    from runtime.cluster.settings import ClusterSettings
    from runtime.cluster.status import hosts

    settings = settings_of(context, data)
    cluster, here = cluster_settings(settings, settings.data), told(cluster_folder(settings, settings.data))
    if here is not None:
        node = NodeSettings.model_validate_json(here)
        cluster = ClusterSettings(address=node.address, interface=node.interface, token=node.token)
    if cluster is None:
        raise AssayError(
            "no cluster is configured, and this machine is in none",
            "`assay cluster start` begins one; set [cluster] address to use one",
            ExitCode.NOT_RUNNING,
        )
    lines = hosts(cluster)
    if as_json:
        show_json(lines)
        return
    show_table(
        ("host", "address", "state", "drivers", "sessions"),
        [
            (
                f"{line.name}{' (first)' if line.head else ''}",
                line.address,
                "gone" if not line.alive else "leaving" if line.draining else "there",
                line.drivers,
                line.sessions,
            )
            for line in lines
        ],
        empty="nobody is there",
    )


@app.command("leave")
def leave(
    context: typer.Context,
    wait: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds for its sessions to end; then they are lost.")
    ] = 60.0,
    data: Data = None,
) -> None:
    """Take this machine out: no new sessions come, and when the last has ended, or time is up, it is gone."""
    from appliance.cli.show import show_line
    from appliance.errors import AssayError, ExitCode
    from appliance.places import cluster_folder
    from runtime.cluster.folder import leave as take_out

    settings = settings_of(context, data)
    if not take_out(cluster_folder(settings, settings.data), wait):
        raise AssayError("this machine is in no cluster", "`assay cluster status` shows it", ExitCode.NOT_RUNNING)
    show_line("this machine has left the cluster")


def _take_part(settings: Settings, address: str, interface: str, name: str, *, head: bool) -> None:
    from pydantic import ValidationError

    from appliance import places
    from appliance.cli.sandbox_place import listening
    from appliance.cli.show import show_line
    from appliance.client.printable import printable
    from appliance.errors import AssayError, ExitCode
    from runtime.cluster.node import READY, NodeSettings, keep
    from runtime.stop import Stop

    runtime = places.runtime_settings(settings, settings.data)
    broker = places.broker_socket(settings, settings.data)
    if listening(broker):
        runtime = runtime.model_copy(update={"broker": broker})
    elif settings.sandbox.broker is not None or os.geteuid() != 0:
        raise AssayError(
            f"no broker is running at {broker}, and only root can start one of its own",
            "start the daemon here (`assay serve`), name a running broker in [sandbox] broker, or run this as root",
            ExitCode.NOT_RUNNING,
        )
    try:
        told = NodeSettings(
            head=head,
            address=address,
            interface=interface,
            token=places.cluster_token(settings, settings.data),
            folder=places.cluster_folder(settings, settings.data),
            name=name,
            runtime=runtime,
        )
    except ValidationError as error:
        raise typer.BadParameter(str(error.errors()[0]["msg"]).removeprefix("Value error, ")) from error
    stop = Stop()

    def say(what: str) -> None:
        if what == READY:
            show_line(f"this machine is in the cluster at {address}, as {told.host.name}")
        else:
            typer.echo(printable(what), err=True)

    if head:
        show_line(f"others join with `assay cluster join {address}` and a copy of {told.token}")
    keep(told, stop, say)

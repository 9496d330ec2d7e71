"""`assay sandbox ls`, `stats` and `sweep`: state of a data folder's running broker.

Invariants: nothing is started; a missing broker is reported (exit code 3), and a busy one (6). Every request has a
timeout.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from pydantic import RootModel

from appliance.cli.shell.broker_target import broker_path, listening, no_broker
from appliance.cli.show.printing import Output, age_text, prints, show_fields, show_line, show_table
from appliance.errors import AssayError, ExitCode
from runtime.broker import BoxLine, BrokerClient, SnapshotLine, connect
from runtime.errors import SandboxError
from runtime.model import FrozenModel
from runtime.reactor import Reactor

ANSWER_SECONDS = 30.0
A = TypeVar("A")


Question = Callable[[BrokerClient, Callable[[A | SandboxError], None]], None]


def asked(path: Path, question: Question[A]) -> A:
    """Sends the running broker one request, and returns the answer. Raises AssayError without a broker, and the
    broker's own error."""
    if not listening(path):
        raise no_broker(path)
    answer: Future[A | SandboxError] = Future()
    reactor = Reactor()
    try:
        connection = connect(path)

        def ask() -> None:
            client = BrokerClient(reactor, connection)

            def answered(found: A | SandboxError) -> None:
                answer.set_result(found)
                client.close()

            question(client, answered)

        reactor.call(ask)
        try:
            found = answer.result(timeout=ANSWER_SECONDS)
        except TimeoutError as error:
            raise AssayError(
                f"too busy: the broker at {path} did not answer within {ANSWER_SECONDS:g} s",
                "nothing is known to be wrong: try again when the machine is less busy; if it lasts, see its log",
                ExitCode.BUSY,
            ) from error
    finally:
        reactor.stop()
    if isinstance(found, SandboxError):
        raise found
    return found


class SandboxesDocument(FrozenModel):
    boxes: tuple[BoxLine, ...]
    snapshots: tuple[SnapshotLine, ...]
    more: int
    """Sandboxes that are not listed."""


class FiguresDocument(RootModel[dict[str, float]]):
    """The broker's figures by name."""


class SweptDocument(FrozenModel):
    owners: int
    processes: int
    cgroups: int
    folders: int


@prints
def ls() -> Output[SandboxesDocument]:
    """List the sandboxes and snapshots of the running broker."""
    answer = asked(broker_path(), BrokerClient.listing)
    found = SandboxesDocument(boxes=answer.boxes, snapshots=answer.snapshots, more=answer.more)
    return Output(found, lambda: _show_listing(found))


def _show_listing(found: SandboxesDocument) -> None:
    show_table(
        ("sandbox", "backend", "mode", "state", "owner", "age", "caller"),
        [
            (box.box, box.backend, box.mode, box.state, box.holder or "-", age_text(box.age_seconds), box.caller or "-")
            for box in found.boxes
        ],
        empty="no sandbox",
    )
    show_line("")
    show_table(
        ("created", "MiB", "durable", "used", "label", "snapshot"),
        [
            (
                *(one.created, f"{one.bytes / (1 << 20):.1f}", "yes" if one.durable else "no"),
                *(one.references, one.label or "-", one.snapshot),
            )
            for one in found.snapshots
        ],
        empty="no snapshot",
    )
    if found.more:
        show_line(f"and {found.more} more")


@prints
def stats() -> Output[FiguresDocument]:
    """Show the running broker's counters since its start."""
    values = dict(sorted(asked(broker_path(), BrokerClient.stats).values.items()))
    return Output(FiguresDocument(values), lambda: show_fields((name, f"{one:g}") for name, one in values.items()))


@prints
def sweep() -> Output[SweptDocument]:
    """Make the running broker remove what dead owners left: processes, control groups, folders."""
    found = SweptDocument(**asked(broker_path(), BrokerClient.sweep).model_dump(exclude={"request", "kind"}))
    counts = f"{found.processes} processes, {found.cgroups} control groups, {found.folders} folders"
    return Output(found, f"removed for {found.owners} dead owners: {counts}")

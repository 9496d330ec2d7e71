"""`assay sandbox ls`, `stats` and `sweep`: state of a data folder's running broker.

Invariants: nothing is started; a missing broker is reported (exit code 3). Every request has a timeout.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from appliance.cli.shell.broker_target import listening, no_broker
from appliance.cli.show.printing import age_text, show_fields, show_json, show_line, show_table
from runtime.broker import BrokerClient, connect
from runtime.errors import InfrastructureError, SandboxError
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
            raise InfrastructureError(
                f"the broker at {path} did not answer within {ANSWER_SECONDS:g} s", hint="See its log, and restart it."
            ) from error
    finally:
        reactor.stop()
    if isinstance(found, SandboxError):
        raise found
    return found


def show_listing(path: Path, *, as_json: bool) -> None:
    found = asked(path, BrokerClient.listing)
    if as_json:
        from appliance.cli.documents.sandboxes import SandboxesDocument

        show_json(SandboxesDocument(boxes=found.boxes, snapshots=found.snapshots, more=found.more))
        return
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
                snapshot_id.created,
                f"{snapshot_id.bytes / (1 << 20):.1f}",
                "yes" if snapshot_id.durable else "no",
                snapshot_id.references,
                snapshot_id.label or "-",
                snapshot_id.snapshot,
            )
            for snapshot_id in found.snapshots
        ],
        empty="no snapshot",
    )
    if found.more:
        show_line(f"and {found.more} more")


def show_stats(path: Path, *, as_json: bool) -> None:
    found = asked(path, BrokerClient.stats)
    if as_json:
        from appliance.cli.documents.sandboxes import FiguresDocument

        show_json(FiguresDocument(dict(sorted(found.values.items()))))
    else:
        show_fields((name, f"{value:g}") for name, value in sorted(found.values.items()))


def show_sweep(path: Path, *, as_json: bool) -> None:
    found = asked(path, BrokerClient.sweep)
    if as_json:
        from appliance.cli.documents.sandboxes import SweptDocument

        show_json(SweptDocument(**found.model_dump(exclude={"request", "kind"})))
    else:
        show_line(
            f"removed for {found.owners} dead owners: {found.processes} processes, {found.cgroups} control groups,"
            f" {found.folders} folders"
        )

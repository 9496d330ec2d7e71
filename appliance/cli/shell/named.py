"""Arguments that name something, with shell completion from names that the daemon or the code knows.

Invariants: completion changes nothing, prints nothing and offers at most some hundred names; none if the daemon does
not answer within a second, since a typing person wants no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from appliance.client import ApiClient

OFFERED = 200
SECONDS = 1.0
"""Timeout of the daemon's answer, in seconds."""
ALIASES = ("champion", "candidate", "previous", "canary")

Offer = Callable[[typer.Context, str], list[str]]


def _from_daemon(names: Callable[[ApiClient], Iterable[str]]) -> Offer:
    def offered(context: typer.Context, incomplete: str) -> list[str]:
        from appliance.cli.shell.options import api_client
        from common.errors import HintedError

        _set_data(context)
        try:
            found = list(names(api_client(timeout_seconds=SECONDS)))
        except (HintedError, OSError):
            return []
        return [name for name in found if name.startswith(incomplete)]

    return offered


@_from_daemon
def jobs(api: ApiClient) -> Iterable[str]:
    return (job.id for job in api.jobs(limit=OFFERED))


@_from_daemon
def cycles(api: ApiClient) -> Iterable[str]:
    return (cycle.id for cycle in api.cycles(limit=OFFERED))


@_from_daemon
def rollouts(api: ApiClient) -> Iterable[str]:
    return (rollout.id for rollout in api.rollouts(limit=OFFERED))


@_from_daemon
def models(api: ApiClient) -> Iterable[str]:
    return (*ALIASES, *(view.checkpoint.manifest[:12] for view in api.checkpoints(limit=OFFERED)))


def tasksets(context: typer.Context, incomplete: str) -> list[str]:
    from appliance.cli.shell.options import data_folder
    from appliance.curriculum.own_files import names_in
    from common.errors import HintedError
    from curriculum.names import taskset_names

    _set_data(context)
    try:
        names = [*taskset_names(), *names_in(data_folder())]
    except (HintedError, OSError):
        return []
    return [name for name in names if name.startswith(incomplete)]


def _set_data(context: typer.Context) -> None:
    """Makes the folder of `--data` as typed, before or after the command, the one that is read."""
    from appliance.cli.shell.options import DATA

    DATA.set(context.params.get("data") or context.find_root().params.get("data"))


JobId = Annotated[
    str, typer.Argument(help="Id, as listed by `jobs ls`, or its first digits (6 or more).", autocompletion=jobs)
]
RolloutId = Annotated[str, typer.Argument(help="Id, as listed by `rollouts ls`, or a prefix.", autocompletion=rollouts)]
TasksetName = Annotated[
    str, typer.Argument(metavar="NAME", help="Taskset, as listed by `assay curriculum ls`.", autocompletion=tasksets)
]
TasksetNames = Annotated[
    list[str],
    typer.Argument(metavar="NAME...", help="Tasksets, as listed by `assay curriculum ls`.", autocompletion=tasksets),
]
_A_CYCLE = "Id, as listed by `cycle ls`, or a prefix with its kind and 6 digits or more"
CycleId = Annotated[str, typer.Argument(metavar="CYCLE", help=f"{_A_CYCLE}.", autocompletion=cycles)]
CycleOrNewest = Annotated[
    str | None, typer.Argument(metavar="CYCLE", help=f"{_A_CYCLE} (default: the newest).", autocompletion=cycles)
]
Model = Annotated[
    str,
    typer.Argument(
        help="champion, candidate, previous, canary, or a digest's first digits (6 or more).", autocompletion=models
    ),
]

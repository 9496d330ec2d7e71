"""`assay bug-report`: one archive for people who investigate a fault. Works without the daemon."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from appliance.cli.shell.options import read_settings
from appliance.cli.show.printing import Output, prints, show_progress
from appliance.system.durable_file import expanded
from runtime.model import FrozenModel


class BugReportDocument(FrozenModel):
    file: str
    parts: tuple[str, ...]


@prints
def bug_report(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Target (default: assay-bug-report-TIME.tar.gz here).")
    ] = None,
    with_rollouts: Annotated[
        bool, typer.Option("--with-rollouts", help="Include the newest 20 rollouts: questions and model text.")
    ] = False,
    with_sandbox: Annotated[
        bool, typer.Option("--with-sandbox", help="Include the doctor's sandbox self-test; half a minute more.")
    ] = False,
) -> Output[BugReportDocument]:
    """Write an archive for people who investigate a fault, without secrets.

    It contains versions, the doctor's lines, configuration, last events and log lines, and the ledger's revision.
    Secrets are removed by value and by pattern; model text is included only with --with-rollouts. Nothing is sent
    anywhere.

    Example: assay bug-report --out report.tar.gz
    """
    from appliance.bug_report.collect import Redactor, known_secrets, parts, secrets_of_reports, status_of, write
    from appliance.cli.machine.doctor import examine
    from appliance.client.api_client import ApiClient
    from appliance.config.places import cluster_token
    from appliance.system.clock import file_stamp, now

    settings = read_settings()
    target = expanded(out or f"assay-bug-report-{file_stamp()}.tar.gz").absolute()
    if not target.parent.is_dir():
        raise typer.BadParameter(f"no such folder: {target.parent}", param_hint="--out")

    def checks() -> object:
        found = []
        for check in examine(settings, selftest=with_sandbox):
            show_progress(f"doctor: {check.name}")
            found.append(check.model_dump(mode="json"))
        return found

    addresses, files = secrets_of_reports(settings.report, os.environ)
    secrets = addresses | known_secrets(settings.data, os.environ, (cluster_token(settings, settings.data), *files))
    redactor = Redactor(secrets, str(Path("~").expanduser()))
    asked = parts(settings, checks, lambda: status_of(ApiClient(settings.socket_path).status()), rollouts=with_rollouts)
    names = write(target, asked, redactor, now().timestamp())
    show_progress("")
    lines = [f"{target}: {', '.join(names)}", "read it before sending it; nothing was sent"]
    return Output(BugReportDocument(file=str(target), parts=tuple(names)), lines)

"""The screen Validation: jobs whose check no person has validated yet, with an explanation of each check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from appliance.client import ApiClient, Job, Status, explain_check
from tui.screens.jobs import JobRecord
from tui.screens.jobs import detail as job_detail
from tui.widgets.signs import JOB_STATES, signed
from tui.widgets.table_pane import TablePane
from tui.widgets.text import DIM, STRONG, Row, Table, plain

MOST = 200


def row(job: Job) -> Row:
    return Row(
        job.id,
        (
            plain(job.id.removeprefix("job-")[:8]),
            plain(job.kind, DIM),
            signed(JOB_STATES[job.state]),
            plain(job.question, limit=60),
        ),
    )


def detail(job: Job, status: Status | None = None) -> Text:
    text = plain("Does this check mean what was asked?\n", STRONG, lines=True)
    text.append_text(plain(f"\n{job.question}\n\n", lines=True))
    for line in explain_check(job.spec):
        text.append_text(plain(f"  {line}\n", lines=True))
    text.append(
        "\nA verdict shows that an answer passes the check; only a person can confirm that the check is right.\n", DIM
    )
    text.append("To sign it, with examples that it accepts and rejects:\n\n")
    text.append_text(plain(f"    assay jobs validate {job.id}\n", STRONG, lines=True))
    text.append_text(plain(f"    assay jobs validate {job.id} --not-meant\n\n", STRONG, lines=True))
    text.append_text(job_detail(JobRecord(job)))
    return text


class ValidationPane(TablePane):
    TABLE = Table(
        name="validations",
        columns=(("job", 8), ("kind", 8), ("state", 10), ("question", 44)),
        empty="No check waits for validation. That of a submitted job does until a person signs it: s submits a job.",
        row=row,
        detail=detail,
    )
    PAGED = False
    KEYS = TablePane.KEYS[:3]

    def page(self, client: ApiClient, status: Status, before: str | None) -> Sequence[Any]:
        return client.open_validations(limit=MOST)

    def line(self, status: Status) -> Text:
        return plain("checks that wait for a person's validation, newest first", DIM)

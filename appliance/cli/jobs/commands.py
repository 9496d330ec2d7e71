"""The command group `assay jobs`: one row per command. Commands that only look load none of those that sign."""

from __future__ import annotations

from appliance.cli.shell.lazy_group import CommandRow, lazy_group

COMMANDS = {
    "validate": CommandRow("jobs.validate:validate", "Sign whether a job's check means what was asked."),
    "ls": CommandRow("jobs.look:ls", "The jobs, newest first."),
    "show": CommandRow("jobs.look:show", "One job: its state, its answer and its bundle, or what was tried."),
    "watch": CommandRow(
        "jobs.look:watch", "Follow a job to its end: 0 solved, 1 not solved or cancelled, 5 failed or set aside."
    ),
    "cancel": CommandRow(
        "jobs.look:cancel", "Call a job off, also one that is being worked on. 4 when it has ended already."
    ),
    "resume": CommandRow(
        "jobs.look:resume",
        "Have a job tried again that was set aside because its worker died three times in a row. 4 for any other.",
    ),
    "retry": CommandRow(
        "jobs.look:retry", "Ask the same again, with the next seed, as a new job. 4 while the job has not ended."
    ),
}

app = lazy_group(COMMANDS, help="List the jobs, show, watch, cancel or resume one, try it again.")

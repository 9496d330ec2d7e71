"""`assay jobs`: each command has a row here. Those that look load nothing of the one that signs."""

from __future__ import annotations

from appliance.cli.lazy_group import CommandRow, lazy_group

COMMANDS = {
    "validate": CommandRow("validate:validate", "Sign whether a job's check means what was asked."),
    "ls": CommandRow("jobs:ls", "The jobs, newest first."),
    "show": CommandRow("jobs:show", "One job: its state, its answer and its bundle, or what was tried."),
    "watch": CommandRow(
        "jobs:watch", "Follow a job to its end: 0 solved, 1 not solved or cancelled, 5 failed or set aside."
    ),
    "cancel": CommandRow(
        "jobs:cancel", "Call a job off, also one that is being worked on. 4 when it has ended already."
    ),
    "resume": CommandRow(
        "jobs:resume",
        "Have a job tried again that was set aside because its worker died three times in a row. 4 for any other.",
    ),
    "retry": CommandRow(
        "jobs:retry", "Ask the same again, with the next seed, as a new job. 4 while the job has not ended."
    ),
}

app = lazy_group(COMMANDS, help="List the jobs, show, watch, cancel or resume one, try it again.")

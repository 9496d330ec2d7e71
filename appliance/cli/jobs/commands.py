"""The command group `assay jobs`: one row per command. Commands that only look load none of those that sign."""

from __future__ import annotations

from appliance.cli.shell.lazy_group import CommandRow, lazy_group

COMMANDS = {
    "validate": CommandRow("jobs.validate:validate", "Sign whether a job's check means what was asked."),
    "ls": CommandRow("jobs.look:ls", "List the jobs, newest first."),
    "show": CommandRow("jobs.look:show", "Show one job: state, answer and bundle, or the failed attempts."),
    "watch": CommandRow("jobs.look:watch", "Follow a job to its end."),
    "cancel": CommandRow("jobs.look:cancel", "Cancel a job, even while it is worked on."),
    "resume": CommandRow(
        "jobs.look:resume", "Resume a job that was set aside because its worker died three times in a row."
    ),
    "retry": CommandRow("jobs.look:retry", "Submit the same question again with the next seed, as a new job."),
}

app = lazy_group(COMMANDS, help="List, show, watch, cancel, resume and retry jobs.")

"""`assay curriculum`: the questions for the model. Each command has a row here and a module of its own."""

from __future__ import annotations

from appliance.cli.shell.lazy_group import CommandRow, lazy_group

COMMANDS = {
    "ls": CommandRow("curriculum.ls:ls", "List the tasksets: subject, check, and whether answers can be checked here."),
    "show": CommandRow(
        "curriculum.show:show", "Show one taskset: topics, levels, tools, budget, and a task of each level."
    ),
    "sample": CommandRow(
        "curriculum.sample:sample",
        "Show tasks as the model sees them: questions, files, and with --answers the answers.",
    ),
    "try": CommandRow(
        "curriculum.try_task:try_",
        "Work on a task yourself: Python in a sandbox, the task's tools, an answer, the verdict with its evidence.",
    ),
    "stats": CommandRow(
        "curriculum.stats:stats", "Show how often the model passes, by taskset and level, night by night."
    ),
    "add": CommandRow(
        "curriculum.add:add", "Add your own problems: each is checked, and the valid ones become the taskset own/NAME."
    ),
    "collect": CommandRow(
        "curriculum.collect:collect",
        "Make tasks from your verified jobs (if the policy allows it) and from sessions with a verdict.",
    ),
    "rm": CommandRow("curriculum.add:rm", "Remove a taskset of your own."),
    "certify": CommandRow(
        "curriculum.certify:certify", "Test a taskset's checks; only a certified taskset is trained on."
    ),
    "reverify": CommandRow(
        "curriculum.reverify:reverify", "Judge stored answers again if a verifier's version changed."
    ),
    "audit": CommandRow("curriculum.audit:audit", "Check training data for copies of sealed and held-out questions."),
    "adapter": CommandRow("curriculum.adapters:app", "Install packages that some worlds need, for sandboxes only."),
    "harbor": CommandRow(
        "curriculum.harbor:harbor", "Show what a Harbor task folder becomes here, or why it is unusable."
    ),
    "export": CommandRow(
        "curriculum.harbor:export", "Write a terminal task as a Harbor task folder, with its check and its solution."
    ),
}

app = lazy_group(COMMANDS, help="List, try, certify and add tasksets.")

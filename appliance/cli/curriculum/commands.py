"""`assay curriculum`: the questions for the model. Each command has a row here and a module of its own."""

from __future__ import annotations

from appliance.cli.shell.lazy_group import CommandRow, lazy_group

COMMANDS = {
    "ls": CommandRow(
        "curriculum.ls:ls", "List the tasksets: what each is about, how it is checked, and whether that works here."
    ),
    "show": CommandRow(
        "curriculum.show:show", "Show one taskset: topics, levels, tools, budget, and a task of each level."
    ),
    "sample": CommandRow(
        "curriculum.sample:sample",
        "Show tasks as the model is asked them: questions, files, and with --answers the answers.",
    ),
    "try": CommandRow(
        "curriculum.try_task:try_",
        "Work on a task yourself: Python in a sandbox, the task's tools, an answer, the verdict with its evidence.",
    ),
    "stats": CommandRow(
        "curriculum.stats:stats", "Show how often the model passes, by taskset and level, night by night."
    ),
    "add": CommandRow(
        "curriculum.add:add",
        "Add problems of your own: each is checked, and those that hold become the taskset own/NAME.",
    ),
    "collect": CommandRow(
        "curriculum.collect:collect",
        "Make tasks of your verified jobs (where the policy says so) and of sessions with a verdict.",
    ),
    "rm": CommandRow("curriculum.add:rm", "Remove a taskset of your own."),
    "certify": CommandRow(
        "curriculum.certify:certify", "Show that a taskset's checks hold; only then is it trained on."
    ),
    "reverify": CommandRow(
        "curriculum.reverify:reverify", "Judge stored answers anew where a verifier's version changed."
    ),
    "audit": CommandRow(
        "curriculum.audit:audit", "Show that nothing trained on is a copy of a sealed or held-out question."
    ),
    "adapter": CommandRow("curriculum.adapters:app", "Install packages that some worlds need, for sandboxes alone."),
    "harbor": CommandRow(
        "curriculum.harbor:harbor", "Say what a Harbor task folder becomes here, or why it cannot be worked on."
    ),
    "export": CommandRow(
        "curriculum.harbor:export", "Write a task of the terminal as a Harbor task folder, with its check and solution."
    ),
}

app = lazy_group(COMMANDS, help="What the model is asked: look at it, try it, add work of your own.")

"""`assay curriculum`: what the model is asked. Each command has a row here and a file of its own."""

from __future__ import annotations

from appliance.cli.lazy_group import CommandRow, lazy_group

COMMANDS = {
    "ls": CommandRow(
        "curriculum_ls:ls", "List the tasksets: what each is about, how it is checked, and whether that works here."
    ),
    "show": CommandRow(
        "curriculum_show:show", "Show one taskset: topics, levels, tools, budget, and a task of each level."
    ),
    "audit": CommandRow("curriculum_audit:audit", "Show that train, validation and sealed questions never met."),
    "certify": CommandRow(
        "curriculum_certify:certify", "Show that a taskset's checks hold; only then is it trained on."
    ),
    "reverify": CommandRow(
        "curriculum_reverify:reverify", "Judge stored answers anew where a verifier's version changed."
    ),
    "sample": CommandRow(
        "curriculum_sample:sample",
        "Show tasks as the model is asked them: questions, files, and with --answers the answers.",
    ),
    "stats": CommandRow(
        "curriculum_stats:stats", "Show how often the model passes, by taskset and level, night by night."
    ),
}

app = lazy_group(COMMANDS, help="What the model is asked: look at it, try it, add work of your own.")

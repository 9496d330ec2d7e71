"""The command group `assay policy`: one row per command. Commands that only look load none of those that sign."""

from __future__ import annotations

from appliance.cli.shell.lazy_group import CommandRow, lazy_group

COMMANDS = {
    "sign": CommandRow(
        "governance.policy_sign:sign",
        "Put an edited policy file into force with your signature, and others' where the policy asks for them.",
    ),
    "check": CommandRow(
        "governance.policy_check:check",
        "Read a policy file and say what it asks for, or what is wrong with it (exit code 2). Without the daemon.",
    ),
    "show": CommandRow(
        "governance.policy_check:show",
        "Print the policy file in force as it stands, to copy and to edit. Without the daemon.",
    ),
    "migrate": CommandRow(
        "governance.policy_check:migrate",
        "Show a policy file of an earlier version as one of this version, and what differs. Sign it then.",
    ),
    "explain": CommandRow(
        "governance.policy:explain", "Why the newest decision about a model, or the one of that id, came out as it did."
    ),
    "backtest": CommandRow(
        "governance.policy:backtest",
        "What a policy file, or the one in force, would have decided about every candidate so far. Changes nothing.",
    ),
    "budget": CommandRow(
        "governance.policy:budget",
        "What is left of the quarter's chance of a false promotion, each candidate's evidence, and the nights to go.",
    ),
    "simulate": CommandRow(
        "governance.policy_simulate:simulate",
        "How often a policy promotes what is no better, and finds what is better. Made-up nights, without the daemon.",
    ),
}

app = lazy_group(COMMANDS, help="Check, explain, try out and sign the written policy.")

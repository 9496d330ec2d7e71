"""The command group `assay policy`: one row per command. Commands that only look load none of those that sign."""

from __future__ import annotations

from appliance.cli.shell.lazy_group import CommandRow, lazy_group

COMMANDS = {
    "sign": CommandRow(
        "governance.policy_sign:sign",
        "Put an edited policy file into force with your signature, and others' if the policy requires them.",
    ),
    "check": CommandRow(
        "governance.policy_check:check",
        "Summarize a policy file, or report its fault (exit code 2). Without the daemon.",
    ),
    "show": CommandRow(
        "governance.policy_check:show",
        "Print the policy file in force, or write it to a file for editing. Without the daemon.",
    ),
    "explain": CommandRow(
        "governance.policy:explain", "Explain the newest decision about a model, or the decision of an id."
    ),
    "backtest": CommandRow(
        "governance.policy:backtest",
        "Show past decisions about every candidate under a policy file, or the one in force. Changes nothing.",
    ),
    "budget": CommandRow(
        "governance.policy:budget",
        "Show the rest of the quarter's chance of a false promotion, each candidate's evidence, and the nights to go.",
    ),
    "simulate": CommandRow(
        "governance.policy_simulate:simulate",
        "Estimate a policy's false promotions and its power, with simulated nights. Without the daemon.",
    ),
}

app = lazy_group(COMMANDS, help="Check, explain, test and sign the policy.")

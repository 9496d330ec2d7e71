"""The command group `assay model`: one row per command. Commands that only look load none of those that sign."""

from __future__ import annotations

from appliance.cli.shell.lazy_group import CommandRow, lazy_group

COMMANDS = {
    "provenance": CommandRow(
        "governance.provenance:provenance",
        "Check a model's attestation, and show its inputs (exit code 1 if it does not hold).",
    ),
    "import": CommandRow(
        "models.base_models:import_model", "Check a base model and store it in the data folder, with its licence text."
    ),
    "export": CommandRow(
        "models.base_models:export_model", "Write a model as a plain Hugging Face folder, with every byte checked."
    ),
    "history": CommandRow("models.history:history", "Show gains and losses of every promotion, by taskset."),
    "ls": CommandRow("models.look:ls", "List the checkpoints, newest first, with the decision about each."),
    "compare": CommandRow("models.look:compare", "Compare two models on the same sealed items."),
    "show": CommandRow(
        "models.look:show", "Show the newest decision about a model, gate by gate, with the digest for --decision."
    ),
    "approve": CommandRow(
        "models.judge:approve",
        "Put a candidate into service with your signature, if the policy then permits it (exit code 4 if not).",
    ),
    "reject": CommandRow(
        "models.judge:reject", "Record, with your signature, that a candidate must not go into service."
    ),
    "evaluate": CommandRow(
        "models.look:evaluate",
        "Compare a model with the champion again on fresh questions; the policy decides on the result.",
    ),
    "rollback": CommandRow(
        "models.judge:rollback",
        "Withdraw the canary; without one, put the previous champion back into service. Asks first.",
    ),
}

app = lazy_group(COMMANDS, help="Import, list, compare, approve, reject, roll back and export models.")

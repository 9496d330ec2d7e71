"""The command group `assay model`: one row per command. Commands that only look load none of those that sign."""

from __future__ import annotations

from appliance.cli.shell.lazy_group import CommandRow, lazy_group

COMMANDS = {
    "provenance": CommandRow(
        "governance.provenance:provenance",
        "Check a model's attestation, and show what went into it (exit code 1 if it does not hold).",
    ),
    "import": CommandRow(
        "models.base_models:import_model", "Check a base model and keep it in the data folder, with its licence text."
    ),
    "export": CommandRow(
        "models.base_models:export_model", "Write a model as a plain Hugging Face folder, every byte checked."
    ),
    "history": CommandRow("models.history:history", "What every promotion gained and what it forgot, by taskset."),
    "ls": CommandRow("models.look:ls", "The checkpoints, newest first, with the decision about each."),
    "compare": CommandRow("models.look:compare", "Two models on the same sealed items."),
    "show": CommandRow(
        "models.look:show", "The newest decision about a model, gate by gate, with the digest that --decision takes."
    ),
    "approve": CommandRow(
        "models.judge:approve",
        "Put a candidate into service with your signature, if the policy then admits it (exit code 4 if not).",
    ),
    "reject": CommandRow(
        "models.judge:reject", "Put on record, with your signature, that a candidate must not go into service."
    ),
    "evaluate": CommandRow(
        "models.look:evaluate",
        "Compare a model with the champion once more, on fresh questions; the policy decides on what comes out.",
    ),
    "rollback": CommandRow(
        "models.judge:rollback",
        "Take the canary out, or put the previous champion back into service where there is none. Asks first.",
    ),
}

app = lazy_group(COMMANDS, help="Import, list, compare, approve, reject, roll back and export models.")

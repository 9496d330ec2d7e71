"""`assay model`: each command has a row here. Those that look load nothing of those that sign."""

from __future__ import annotations

from appliance.cli.lazy_group import CommandRow, lazy_group

COMMANDS = {
    "provenance": CommandRow(
        "provenance:provenance",
        "Check a model's attestation, and show what went into it (exit code 1 if it does not hold).",
    ),
    "import": CommandRow(
        "base_models:import_model", "Check a base model and keep it in the data folder, with its licence text."
    ),
    "export": CommandRow(
        "base_models:export_model", "Write a model as a plain Hugging Face folder, every byte checked."
    ),
    "history": CommandRow("model_history:history", "What every promotion gained and what it forgot, by taskset."),
    "ls": CommandRow("models:ls", "The checkpoints, newest first, with the decision about each."),
    "compare": CommandRow("models:compare", "Two models on the same sealed items."),
    "show": CommandRow(
        "models:show", "The newest decision about a model, gate by gate, with the digest that --decision takes."
    ),
    "approve": CommandRow(
        "model_judge:approve",
        "Put a candidate into service with your signature, if the policy then admits it (exit code 4 if not).",
    ),
    "reject": CommandRow(
        "model_judge:reject", "Put on record, with your signature, that a candidate must not go into service."
    ),
    "evaluate": CommandRow(
        "models:evaluate",
        "Compare a model with the champion once more, on fresh questions; the policy decides on what comes out.",
    ),
    "rollback": CommandRow(
        "model_judge:rollback",
        "Take the canary out, or put the previous champion back into service where there is none. Asks first.",
    ),
}

app = lazy_group(COMMANDS, help="Import, list, compare, approve, reject, roll back and export models.")

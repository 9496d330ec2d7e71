"""The command group `assay key`: one row per command. Commands that only look load none of those that sign."""

from __future__ import annotations

from appliance.cli.shell.lazy_group import CommandRow, lazy_group

COMMANDS = {
    "new": CommandRow(
        "governance.key_sign:new",
        "Make a key of your own, encrypted, and have the daemon admit it if that is possible.",
    ),
    "ls": CommandRow("governance.keys:ls", "Whose keys are known to the daemon, and which are yours."),
    "show": CommandRow("governance.keys:show", "Show all that is known about a person's keys."),
    "admit": CommandRow(
        "governance.key_sign:admit", "Make a key known: your own, or another person's with your signature."
    ),
    "revoke": CommandRow("governance.key_sign:revoke", "Revoke a key for ever; any person with a valid key can."),
}

app = lazy_group(COMMANDS, help="Persons' keys: make, admit, revoke and list them.")

"""The command group `assay key`: one row per command. Commands that only look load none of those that sign."""

from __future__ import annotations

from appliance.cli.shell.lazy_group import CommandRow, lazy_group

COMMANDS = {
    "new": CommandRow("governance.key_sign:new", "Make your own key, encrypted, and ask the daemon to admit it."),
    "ls": CommandRow("governance.keys:ls", "List the keys known to the daemon, and which are yours."),
    "show": CommandRow("governance.keys:show", "Show all that is known about a person's keys."),
    "admit": CommandRow("governance.key_sign:admit", "Admit a key: your own, or another person's with your signature."),
    "revoke": CommandRow("governance.key_sign:revoke", "Revoke a key permanently; any person with a valid key can."),
}

app = lazy_group(COMMANDS, help="Make, admit, revoke and list persons' keys.")

"""The `assay` command: each command is one call of the control API, or of the module that does the work.

Open `main.py` first: its table maps commands to modules, which are imported when used. Each folder holds one subject:
`audit`, `check`, `curriculum`, `demo`, `governance` (keys, policy), `jobs`, `machine` (doctor, plan), `models`,
`sandbox`, `service` (daemon, backup, gateway), `training`. `shell` has shared options and signal handling, `show` the
output, `documents` the JSON models. `entry.py` is the installed script.

Nothing here decides about models or opens a ledger for writing, apart from `audit renew` and restored backups.
"""

"""The audit log on disk, its head outside the data folder, and the machine's own keys.

Open `log.py` first. `kept_heads.py` detects an exchanged or shortened log, `machine_keys.py` has the daemon's and the
trainer's keys and checks attestations of checkpoints, and `logged_aliases.py` follows the log from another process. The
format of entries and their verification are in `policies.audit`.
"""

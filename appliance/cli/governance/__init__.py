"""`assay key`, `assay policy` and `assay model provenance`: persons' keys, the written policy, and attestations.

Each command has a row in `appliance.cli.main`. Modules that only look (`keys.py`,
`policy.py`, `policy_check.py`) load none of those that sign (`key_sign.py`, `policy_sign.py`).
"""

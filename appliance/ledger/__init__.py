"""The store of records: each is on disk here before the next step acts on it.

`ledger.py` is the protocol and the file to open first. `sqlite.py` implements it (with `sqlite_jobs.py`, `rows.py`,
`tables.py`), `audited.py` adds the audit log, `remote.py` serves it to workers, and `grants.py` limits their calls.
`leases.py` fences late workers. `schema.py` and `migrations/` upgrade old files.

The shapes of records are in `appliance.records`; nothing here decides about a model.
"""

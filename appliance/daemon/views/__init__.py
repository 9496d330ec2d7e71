"""Read models of the ledger for the API, governance, nights and supervisor; nothing here changes anything.

`ledger_views.py` has most of them, `cycle_views.py` training figures and what the candidate waits for,
`machine_usage.py` the load of the machine.
"""

"""Read models of the ledger for the API, governance, nights and supervisor; nothing here changes anything.

`ledger_views.py` has most of them, `curves.py` training figures, `candidate_wait.py` what the candidate waits for.
"""

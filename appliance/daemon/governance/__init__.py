"""Signed actions: approvals, canaries, keys, policy edits and validations, each recorded in the audit log.

Open `approvals.py` (what an approval leads to) and `trust.py` (which signatures count) first. `canaries.py` tries
promoted models, `validations.py` has people's statements on jobs; `backtest.py` only reads. The rules themselves are in
`policies`.
"""

"""Signed actions: approvals, canaries, keys, policy edits and validations, each recorded in the audit log.

Open `approvals.py` (what an approval leads to) and `trust.py` (which signatures count) first. `canaries.py` tries
promoted models, `policy_store.py` has the policy in force, `validations.py` people's statements on jobs; `backtest.py`
and `promotions.py` only read. The rules themselves are in `policies`.
"""

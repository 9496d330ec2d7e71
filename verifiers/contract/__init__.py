"""Types that every verifier shares: spec, verdict, kind, solver, proposal, judge, statement.

Nothing here imports another package of `verifiers`, and nothing here decides anything. Start with `verdict.py`, then
`kinds.py`.
"""

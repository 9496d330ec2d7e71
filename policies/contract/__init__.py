"""Records shared by gates and decisions: evidence, findings, policy sections, keys and times.

No judgement lives here, only types and small derived values. Start with `evidence.py`, then `decision.py`.
"""

"""Statistics behind the gates: intervals, paired tests, bootstrap, and sequential odds over several nights. Pure.

Start with `intervals.py`; `sequential.py` explains the evidence that accumulates over nights.
"""

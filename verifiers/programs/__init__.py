"""Programs checked against tests, in a sandbox that contains no expected value.

`verifier.py` is the entry point, `spec.py` the spec, `plan.py` the list of tests. `functions.py` and `streams.py` run a
submission (one function, or a whole program); `guests.py` and `harness.py` talk to its sandbox; `judges.py` runs the
spec's own code, always in other sandboxes. `data/` reads, generates and compares values. `checking.py`, `mutation.py`
and `trivial.py` reject specs that accept too much. No candidate code runs in this process.
"""

"""Contracts of the curriculum: `Task`, the protocols `Taskset` and `Environment`, and the errors.

Open `task.py` first, then `taskset.py`; `topics.py` implements most tasksets as a table. Nothing here knows a specific
taskset or environment.
"""

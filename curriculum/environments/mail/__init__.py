"""Environment of a mailbox that can be searched and read, in the manner of ART-E (OpenPipe, 2025).

`threads.py` writes a task's messages and `environment.py` the others, both with `phrases.py`; `decisions.py` says what
holds at a date; `world.py` runs in the sandbox, and `oracle.py` answers by its tools.
"""

"""Environment of a mailbox that can be searched and read, in the manner of ART-E (OpenPipe, 2025).

`environment.py` makes the messages from `phrases.py`; `world.py` runs in the sandbox.
"""

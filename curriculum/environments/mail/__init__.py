"""Environment of a mailbox that can be searched and read, in the manner of ART-E (OpenPipe, 2025).

`mailbox.py` makes the messages from `phrases.py` and `names.py`; `world.py` runs in the sandbox.
"""

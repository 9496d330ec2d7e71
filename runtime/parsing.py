"""Lock around Python's own parser, for one text at a time.

CPython 3.11 counts parser depth per interpreter and miscounts when two threads parse concurrently: one gets SystemError
("recursion depth mismatch"). Every host process that parses therefore takes this lock.
"""

from __future__ import annotations

import threading

PARSING = threading.Lock()

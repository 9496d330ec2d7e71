"""Runs Python's own parser, one text at a time.

CPython 3.11 counts the depth of its parser for the whole interpreter and loses count when two threads parse at once:
one of them gets SystemError ("recursion depth mismatch"). So whoever parses in a process of ours holds this lock.
"""

from __future__ import annotations

import threading

PARSING = threading.Lock()

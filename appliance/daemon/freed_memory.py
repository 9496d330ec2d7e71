"""Gives back to the kernel what the C library keeps of freed memory.

glibc keeps what was freed between blocks that are still in use, and in a daemon that runs for weeks that grows: in
simulated days by some 2 MB a day, and what is in use by .3. A call takes milliseconds; it is made when work has ended.
"""

from __future__ import annotations

import ctypes


def give_back() -> bool:
    """Says whether anything went back; other C libraries than glibc have no such call (malloc_trim(3))."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim is not None and bool(trim(0))

"""Raises again what a signal raised and nobody heard.

What always holds: Ctrl-C ends a command also where it came in the middle of code that cannot raise (a finalizer, a
callback of a library in C): Python prints such an exception and forgets it, and the command would go on.
"""

from __future__ import annotations

import signal
import sys
import threading

AFTER_SECONDS = 0.05
"""By then that code has ended; where it has not, it is dropped once more, and raised once more."""


def hear_again() -> None:
    """From now on, in this process. It takes the alarm of a process for itself."""
    sys.unraisablehook = _dropped


def _dropped(what: sys.UnraisableHookArgs) -> None:
    error = what.exc_value
    in_main = threading.current_thread() is threading.main_thread()
    if not isinstance(error, (KeyboardInterrupt, SystemExit)) or not in_main:
        sys.__unraisablehook__(what)
        return

    def again(*_: object) -> None:
        raise error

    signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, AFTER_SECONDS)

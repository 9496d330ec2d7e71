"""Takes from the processes of a process tier what would be otherwise when their history is repeated: clocks, the
kernel's random numbers, and sets whose order depends on addresses.

Whoever asks for one makes a system call that the filter refuses, so the call is made again, from its first line, in a
sandbox of its own, whose history is never repeated. The kernel's random numbers are such a system call themselves.
Clocks are read without one, so what Python reads them with is replaced before user code runs. What lies at which
address cannot be watched: what a session keeps is looked through after each call, as far as `MOST` values go.
"""

from __future__ import annotations

import ctypes
import gc
import os
import time
from itertools import islice
from types import BuiltinFunctionType, MethodType, MethodWrapperType

TYPE_CHECKING = False  # what it guards is for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

CLOCKS = "time monotonic perf_counter process_time thread_time clock_gettime"
OF_NOW = {"localtime": 0, "gmtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}
"""Functions that take the time as an argument, and which; without it they read the clock."""
MOST, EACH = 1_000, 100
"""Values that are looked at after a call, and how many of one list."""


def elsewhere(*_: object, **__: object) -> None:
    """Asks for what no process of a process tier may have."""
    os.getppid()


def take_clocks() -> None:
    """Replaces all that reads a clock, in this process and those that it will fork."""
    for name in CLOCKS.split():
        setattr(time, name, elsewhere)
        setattr(time, f"{name}_ns", elsewhere)
    for name, place in OF_NOW.items():
        setattr(time, name, _told(getattr(time, name), place))
    from _datetime import datetime  # type: ignore[import-not-found]

    [own] = gc.get_referents(vars(datetime))  # `today` asks the module `time`; these two do not
    own.update(now=elsewhere, utcnow=elsewhere)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime))


def _told(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    def told(*given: Any) -> Any:
        if len(given) <= place or given[place] is None:
            elsewhere()
        return function(*given)

    return told


def keeps_addresses(names: dict[str, Any]) -> bool:
    """Says whether a set that is kept has an order that depends on where its values lie: of functions, classes, None,
    NaN or objects that are equal only to themselves. What cannot be looked at counts as one."""
    try:
        return _found(value for name, value in names.items() if not name.startswith("__"))
    except MemoryError:
        return False
    except BaseException:  # noqa: BLE001
        return True


def _found(values: Iterable[Any]) -> bool:
    waiting = list(values)
    looked = 0
    while waiting and looked < MOST:
        looked += 1
        found = waiting.pop()
        kind = type(found)
        if kind in (list, tuple):
            waiting += found[:EACH]
        elif kind is dict:
            waiting += islice(found.values(), EACH)
        elif kind in (set, frozenset):
            if len(found) > 1 and any(map(_by_address, islice(found, MOST))):
                return True
        elif kind.__module__ == "__main__":
            waiting.append(getattr(found, "__dict__", None))
    return False


def _by_address(value: Any) -> bool:
    kind = type(value)
    if kind in (float, complex):
        return bool(value != value)
    if kind in (tuple, frozenset):
        return any(map(_by_address, value))
    return kind in BY_ADDRESS or getattr(kind, "__hash__", None) is object.__hash__


BY_ADDRESS = (BuiltinFunctionType, MethodType, MethodWrapperType)
"""All else has its hash from `object`, or one of its own."""

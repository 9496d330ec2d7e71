"""Blocks clocks, kernel random numbers, addresses and address-dependent set order, so that replay is deterministic.

Using one makes a system call that the filter refuses, so the call is repeated from its first line in a separate
sandbox, whose history is never replayed. Kernel random numbers are themselves such a system call. Clocks are read
without one, so Python's clock functions are replaced before user code runs. So is everything that turns an address into
a hash or a text: CPython's types hold pointers to C functions, which are redirected to a system call. User classes
inherit them from `object`; classes of modules keep their hash, because modules hash their own objects. Hashes of
frequently hashed values (`object()`, functions, classes, None, NaN) cannot be intercepted, so a session's names are
inspected after each call, up to `MOST` values.
"""

from __future__ import annotations

import ctypes
import gc
import os
import time
from _weakref import ref
from itertools import islice
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CellType,
    CoroutineType,
    FrameType,
    GeneratorType,
    MethodType,
    MethodWrapperType,
)

TYPE_CHECKING = False  # guards imports for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

CLOCKS = "time monotonic perf_counter process_time thread_time clock_gettime"
OF_NOW = {"localtime": 0, "gmtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}
"""Functions with an optional time argument, and its position; without it they read the clock."""
WORD = ctypes.sizeof(ctypes.c_size_t)
REPR, HASH, WRAPPED = 11, 15, 6
"""Word offsets in a type object, and of the C function in a wrapped method, as in CPython 3.8 and later."""
MOST, EACH = 1_000, 100
"""Most values inspected after a call, and most per list."""


def elsewhere(*_: object, **__: object) -> None:
    """Makes a system call forbidden to compute-only processes, so that the host retries in a separate sandbox."""
    os.getppid()


def take_clocks() -> None:
    """Replaces every clock function by a forbidden call, in this process and its future children."""
    for name in CLOCKS.split():
        setattr(time, name, elsewhere)
        setattr(time, f"{name}_ns", elsewhere)
    for name, place in OF_NOW.items():
        setattr(time, name, _told(getattr(time, name), place))
    from _datetime import datetime  # type: ignore[import-not-found]

    [own] = gc.get_referents(vars(datetime))  # `today` uses the module `time`; these two do not
    own.update(now=elsewhere, utcnow=elsewhere)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime))


def _told(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    def told(*given: Any) -> Any:
        if len(given) <= place or given[place] is None:
            elsewhere()
        return function(*given)

    return told


class Addresses:
    """CPython's pointers to functions that hash or print an address, and the replacement call."""

    def __init__(self) -> None:
        """Locates CPython's pointers to the functions that hash or print an address. Raises ImportError if this
        Python's type layout is unknown."""
        known = getattr(ctypes.pythonapi, "PyObject_GenericHash", None) or ctypes.pythonapi._Py_HashPointer
        self._hashing = _word(
            vars(object)["__hash__"], WRAPPED
        )  # not the slot of `object` itself, which `lru_cache` uses
        self._texts = [_word(vars(object)["__repr__"], WRAPPED), *(_word(kind, REPR) for kind in WITH_ADDRESS)]
        self._own = _word(object, HASH).value, _word(object, REPR).value
        if self._own != (_address(known), self._texts[0].value) or self._hashing.value != self._own[0]:
            raise ImportError("unknown type layout of this Python")
        self._asking = _address(ctypes.CDLL(None).getppid)

    def watch(self) -> None:
        """Redirects CPython's hashing and printing of addresses to the forbidden call.

        Done before the fork, because every page a process writes to is another copy; until the filter is installed,
        nothing may use them.
        """
        texts = [_word(kind, REPR) for kind in _all_kinds()]
        saying_nothing_else = [word for word in texts if word.value == self._own[1]]
        for word in (self._hashing, *self._texts, *saying_nothing_else):
            word.value = self._asking

    def unwatched(self, run: Callable[..., Any], *given: Any) -> None:
        """Calls a function while new classes inherit `object`'s original hash."""
        before = self._hashing.value
        self._hashing.value = self._own[0]
        try:
            run(*given)
        finally:
            self._hashing.value = before


def keeps_addresses(names: dict[str, Any]) -> bool:
    """True if the order of any set in these variables depends on memory addresses of its values.

    Such values are functions, classes, None, NaN and objects compared by identity. Values that cannot be inspected
    count as such.
    """
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


def _word(found: object, number: int) -> ctypes.c_size_t:
    return ctypes.c_size_t.from_address(id(found) + number * WORD)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _all_kinds() -> list[type]:
    kinds: list[type] = [object]
    for kind in kinds:  # grows during the loop
        kinds += type.__subclasses__(kind)
    return kinds


BY_ADDRESS = (BuiltinFunctionType, MethodType, MethodWrapperType)
"""Types hashed by address; all others inherit the hash of `object`, or have their own."""
WITH_ADDRESS = (
    type(_word), type(_word.__code__), GeneratorType, BuiltinFunctionType, MethodWrapperType, FrameType,
    CoroutineType, AsyncGeneratorType, CellType, memoryview, ref,
)  # fmt: skip
"""Types whose repr contains an address."""

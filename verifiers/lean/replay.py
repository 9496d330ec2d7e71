"""A compiled file's declarations given to the kernel once more, in a process that never elaborated anything.

Lean's own `Lean.Kernel.Environment.replay` does it, the function behind its `leanchecker`; here it is called in the
shared library, since not every toolchain has the program. It takes the declarations of one file, in an environment that
holds the file's imports and nothing else, type checks each of them anew, and has inductive types, constructors and
recursors made again and compared. So it finds what was put into a file behind the kernel's back, with
`debug.skipKernelTC` or by writing the file.

What always holds: only the standard library is used; it runs in a process of its own, which a wrong guess about another
version's calling convention may end. So a server believes it only after two controls: a true file that it accepts and a
false one that it refuses (`server.prove_replay`).
Source: src/Lean/Replay.lean, src/Lean/Environment.lean, src/include/lean/lean.h; Lean 4.35.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

POINTER = 8
NOTHING, EMPTY_MAP = 1, 3
"""The boxed values 0 and 1: an empty list, an empty tree."""
ARRAY, ERROR = 246, 1
PRIVATE = 2
"""Import level: all of a module."""
IMPORTS, NAMES, CONSTANTS = 0, 1, 2

Address = ctypes.c_void_p


class ReplayRefused(Exception):
    """The kernel, or Lean's reader, said no; the message is Lean's."""


class Replay:
    """Once per process: what it reads stays where it is."""

    def __init__(self, library: ctypes.CDLL) -> None:
        """Raises AttributeError where this Lean has not what is needed."""
        self._library = library
        for name, arguments in (
            ("lean_mk_string", [ctypes.c_char_p]),
            ("l_Lean_readModuleData", [Address]),
            ("lean_elab_environment_to_kernel_env", [Address]),
            ("l_Lean_Kernel_Environment_replay", [Address, Address]),
            ("lean_init_search_path", []),
            ("lean_io_error_to_string", [Address]),
            (
                "l_Lean_importModules",
                [Address, Address, ctypes.c_uint32, Address, *[ctypes.c_uint8] * 2, ctypes.c_uint8, Address],
            ),
        ):
            function = getattr(library, name)
            function.restype, function.argtypes = Address, arguments
        self._options = Address.in_dll(library, "l_Lean_Options_empty")
        self._kept: list[ctypes.Array[ctypes.c_uint64]] = []

    def run(self, file: Path) -> None:
        """Raises ReplayRefused."""
        library = self._library
        self._done(library.lean_init_search_path())
        library.lean_io_mark_end_initialization()
        library.lean_init_task_manager_using(ctypes.c_uint(1))
        module = _field(self._done(library.l_Lean_readModuleData(library.lean_mk_string(str(file).encode()))), 0)
        environment = self._done(
            library.l_Lean_importModules(
                _field(module, IMPORTS), self._options, 0, self._object(ARRAY, [0, 0]), 0, 0, PRIVATE, EMPTY_MAP
            )
        )
        kernel = library.lean_elab_environment_to_kernel_env(environment)
        declared = self._map(_elements(_field(module, NAMES)), _elements(_field(module, CONSTANTS)))
        self._done(library.l_Lean_Kernel_Environment_replay(declared, kernel))

    def _map(self, keys: list[int], values: list[int]) -> int:
        """A hash map with one bucket, which no hash function is needed for."""
        chain = NOTHING
        for key, value in zip(keys, values, strict=True):
            chain = self._object(1, [key, value, chain], fields=3)
        buckets = self._object(ARRAY, [1, 1, chain])
        return self._object(0, [len(keys) << 1 | 1, buckets], fields=2)

    def _object(self, tag: int, words: list[int], fields: int = 0) -> int:
        """One of Lean's objects, in memory of ours: a reference count of 0 means that it is never freed."""
        memory = (ctypes.c_uint64 * (1 + len(words)))(tag << 56 | fields << 48 | 1 << 32, *words)
        self._kept.append(memory)
        return ctypes.addressof(memory)

    def _done(self, result: int) -> int:
        """The value of an action's result."""
        tag = ctypes.c_uint8.from_address(result + 7).value
        value = _field(result, 0)
        if tag == ERROR:
            text = self._library.lean_io_error_to_string(value)
            raise ReplayRefused(ctypes.string_at(text + 4 * POINTER).decode("utf-8", "replace"))
        return value


def _field(address: int, index: int) -> int:
    return ctypes.c_uint64.from_address(address + POINTER * (1 + index)).value


def _elements(array: int) -> list[int]:
    size = _field(array, 0)
    return list((ctypes.c_uint64 * size).from_address(array + 3 * POINTER)) if size else []

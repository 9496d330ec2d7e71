"""Lean's shared library called from Python: its objects made and read in the form that its own code has them.

What always holds: only the standard library is used; nothing is freed, since a process that calls this does one thing
and ends. A wrong guess about another version's calling convention may end the process, so that it is called in a fork,
and only after a true file was accepted and a false one refused (`controls`). Functions of input and output get one
argument more than they may have: older versions pass the world, and others do not look at it.
Source: src/include/lean/lean.h, src/Lean/Environment.lean, src/Lean/Setup.lean; Lean 4.35.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

POINTER = 8
NOTHING, EMPTY_MAP, WORLD = 1, 3, 1
"""The boxed values 0 and 1: an empty list or no value, an empty tree; and the world."""
ARRAY, STR, DONE, ERROR = 246, 1, 0, 1
BOOLEAN, NUMBER = 1, 3
"""Kinds of an option's value."""
PRIVATE = 2
"""Import level: all of a module."""
IMPORTS, NAMES, CONSTANTS = 0, 1, 2
BREAKING = "LEAN_ABORT_ON_PANIC"
"""Environment variable with which Lean ends where it would only complain."""

Address = ctypes.c_void_p
Byte = ctypes.c_uint8
FUNCTIONS: dict[str, Sequence[Any]] = {
    "lean_mk_string_from_bytes": [ctypes.c_char_p, ctypes.c_size_t],
    "lean_mark_persistent": [Address],
    "lean_io_error_to_string": [Address],
    "lean_init_search_path": [Address],
    "lean_enable_initializer_execution": [Address],
    "lean_name_mk_string": [Address, Address],
    "l_Lean_readModuleData": [Address, Address],
    "l_Lean_importModules": [Address, Address, ctypes.c_uint32, Address, Byte, Byte, Byte, Address, Address],
    "lean_elab_environment_to_kernel_env": [Address],
    "l_Lean_Environment_ofKernelEnv": [Address],
    "l_Lean_Kernel_Environment_replay": [Address, Address, Address],
    "lean_environment_find": [Address, Address],
    "l_Lean_Environment_setMainModule": [Address, Address],
    "l_Lean_Options_insert": [Address, Address, Address],
    "lean_initialize_thread": [],
    "l_Lean_Elab_process": [Address, Address, Address, Address, Address],
    "l_Lean_MessageLog_toArray": [Address],
    "l_Lean_Message_toJson": [Address, Address],
    "l_Lean_Json_compress": [Address],
    "l_Lean_writeModule": [Address, Address, Byte, Address],
}

REPLAYS = (
    "lean_mk_string_from_bytes",
    "lean_io_error_to_string",
    "lean_init_search_path",
    "l_Lean_readModuleData",
    "l_Lean_importModules",
    "lean_elab_environment_to_kernel_env",
    "l_Lean_Kernel_Environment_replay",
    "lean_environment_find",
)
"""Those that `replay` calls: there are versions that have no others."""


class LeanRefused(Exception):
    """One of Lean's actions ended in an error; the message is Lean's."""


class Native:
    def __init__(self, library: ctypes.CDLL, names: Iterable[str]) -> None:
        """Raises AttributeError where this Lean lacks one of the functions."""
        self._library = library
        self._functions: dict[str, Any] = {}
        for name in names:
            function = getattr(library, name)
            function.restype, function.argtypes = Address, FUNCTIONS[name]
            self._functions[name] = function
        self.options = Address.in_dll(library, "l_Lean_Options_empty")
        self._memory: list[ctypes.Array[ctypes.c_uint64]] = []

    def call(self, name: str, *arguments: Any) -> int:
        return int(self._functions[name](*arguments) or 0)

    def act(self, name: str, *arguments: Any) -> int:
        """The value of an action. Raises LeanRefused."""
        result = self.call(name, *arguments, WORLD)
        tag = ctypes.c_uint8.from_address(result + 7).value
        value = field(result, 0)
        if tag == ERROR:
            raise LeanRefused(text(self.call("lean_io_error_to_string", value)))
        return value

    def value(self, name: str, *arguments: Any) -> int:
        """The value of an action that cannot fail: itself, or in older versions the result that holds it."""
        found = self.call(name, *arguments, WORLD)
        return field(found, 0) if ctypes.c_uint8.from_address(found + 7).value == DONE else found

    def begin(self, *, initialisers: bool) -> None:
        """What Lean's command line does first. `initialisers` says whether the library's own are run on import."""
        self.act("lean_init_search_path")
        if initialisers:
            self.call("lean_enable_initializer_execution", WORLD)
        self._library.lean_io_mark_end_initialization()

    def begin_tasks(self) -> None:
        """Not before a fork, which would leave the threads behind."""
        self._library.lean_init_task_manager_using(ctypes.c_uint(1))

    def environment(self, imports: int, *, extensions: bool) -> int:
        """With everything that a list of imports brings. Raises LeanRefused."""
        flag, none = int(extensions), self.array([])
        return self.act("l_Lean_importModules", imports, self.options, 0, none, flag, flag, PRIVATE, EMPTY_MAP)

    def module(self, file: Path) -> int:
        """What a compiled file holds. Raises LeanRefused."""
        return field(self.act("l_Lean_readModuleData", self.string(str(file))), 0)

    def replay(self, module: int, kernel: int) -> int:
        """A kernel's environment with a module's declarations, each of which it has checked. Raises LeanRefused."""
        declared = self._map(elements(field(module, NAMES)), elements(field(module, CONSTANTS)))
        os.environ[BREAKING] = "1"  # what a replay does not expect, it would go on without
        try:
            return self.act("l_Lean_Kernel_Environment_replay", declared, kernel)
        finally:
            del os.environ[BREAKING]

    def declared_again(self, module: int, kernel: int) -> int:
        """The name of a module's first declaration that a kernel's environment has already; 0 where it has none."""
        names = elements(field(module, NAMES))
        owners = ctypes.c_int32.from_address(kernel)
        owners.value += len(names) * ((owners.value > 0) - (owners.value < 0))  # each question takes one
        found = [name for name in names if self.call("lean_environment_find", kernel, name) != NOTHING]
        return found[0] if found else 0

    def chosen(self, options: dict[str, int | bool]) -> int:
        """Options of the elaborator."""
        found = int(self.options.value or 0)
        for name, value in options.items():
            boolean = isinstance(value, bool)
            held = self.object(BOOLEAN, [value]) if boolean else self.object(NUMBER, [value << 1 | 1], fields=1)
            found = self.call("l_Lean_Options_insert", found, self.name(name), held)
        return found

    def string(self, value: str) -> int:
        data = value.encode()
        return self.call("lean_mk_string_from_bytes", data, len(data))

    def name(self, dotted: str) -> int:
        found = NOTHING
        for part in dotted.split("."):
            found = self.call("lean_name_mk_string", found, self.string(part))
        return found

    def imports(self, usual: int, modules: Iterable[str]) -> int:
        """Those of a file without any, and modules that are imported in the same way as the first of them."""
        first = elements(usual)
        flags = field(first[0], 1)
        return self.array([*first, *(self.object(0, [self.name(module), flags], fields=1) for module in modules)])

    def array(self, values: list[int]) -> int:
        return self.object(ARRAY, [len(values), len(values), *values])

    def object(self, tag: int, words: list[int], fields: int = 0) -> int:
        """One of Lean's objects, in memory of ours: a reference count of 0 means that it is never freed."""
        size = POINTER * (1 + len(words)) if tag != ARRAY else 1  # arrays say themselves how long they are
        memory = (ctypes.c_uint64 * (1 + len(words)))(tag << 56 | fields << 48 | size << 32, *words)
        self._memory.append(memory)
        return ctypes.addressof(memory)

    def _map(self, keys: list[int], values: list[int]) -> int:
        """A hash map with one bucket, which no hash function is needed for."""
        chain = NOTHING
        for key, value in zip(keys, values, strict=True):
            chain = self.object(1, [key, value, chain], fields=3)
        return self.object(0, [len(keys) << 1 | 1, self.array([chain])], fields=2)


def replay(library: ctypes.CDLL, file: Path) -> None:
    """Gives a compiled file's declarations to the kernel once more, in an environment that holds the file's imports and
    nothing else. Each is type checked anew; inductive types, constructors and recursors are made again and compared. So
    what was put into the file behind the kernel's back is found, by `debug.skipKernelTC` or by writing the file. None
    is there already: there are versions that pass over a theorem that is, while an import prefers the file's to it.

    Lean's own function behind its `leanchecker` does it, called here since not every toolchain has the program. Once
    per process: what it reads stays where it is. Raises LeanRefused with what the kernel or the reader says;
    AttributeError where this Lean has not what is needed. Source: src/Lean/Replay.lean.
    """
    native = Native(library, REPLAYS)
    native.begin(initialisers=False)
    native.begin_tasks()
    module = native.module(file)
    environment = native.environment(field(module, IMPORTS), extensions=False)
    kernel = native.call("lean_elab_environment_to_kernel_env", environment)
    if again := native.declared_again(module, kernel):
        named = ctypes.c_uint8.from_address(again + 7).value == STR
        raise LeanRefused(f"Declared again: {text(field(again, 1)) if named else 'a name that ends in a number'}")
    native.replay(module, kernel)


def field(address: int, index: int) -> int:
    return ctypes.c_uint64.from_address(address + POINTER * (1 + index)).value


def elements(array: int) -> list[int]:
    size = field(array, 0)
    return list((ctypes.c_uint64 * size).from_address(array + 3 * POINTER)) if size else []


def text(string: int) -> str:
    return ctypes.string_at(string + 4 * POINTER, field(string, 0) - 1).decode("utf-8", "replace")

"""Lean's shared library called from Python through ctypes, with objects in Lean's own memory layout.

Invariants: only the standard library; nothing is freed, since a process that uses this does one thing and ends. A wrong
guess about another version's calling convention may crash the process, so calls happen in a fork, and only after a true
file was accepted and a false one rejected (`controls`). IO functions get one extra argument: older versions pass the
world, newer ones ignore it. Source: src/include/lean/lean.h, src/Lean/Environment.lean, src/Lean/Setup.lean; Lean 4.35.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

POINTER = 8
NOTHING, EMPTY_MAP, WORLD = 1, 3, 1
"""Boxed 0 (empty list or no value), boxed 1 (empty tree), and the world token."""
ARRAY, STR, DONE, ERROR = 246, 1, 0, 1
BOOLEAN, NUMBER = 1, 3
"""Constructor tags of option values."""
PRIVATE = 2
"""Import level that loads all of a module."""
IMPORTS, NAMES, CONSTANTS = 0, 1, 2
BREAKING = "LEAN_ABORT_ON_PANIC"
"""Environment variable that makes Lean abort on a panic instead of printing it."""

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
"""Functions that `replay` calls; some versions have no others."""


class LeanRefused(Exception):
    """A Lean action ended in an error; the message is Lean's."""


class Native:
    def __init__(self, library: ctypes.CDLL, names: Iterable[str]) -> None:
        """Binds the functions of these names in Lean's library. Raises AttributeError if this Lean lacks one."""
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
        """Calls a Lean function with side effects and returns its value. Raises LeanRefused."""
        result = self.call(name, *arguments, WORLD)
        tag = ctypes.c_uint8.from_address(result + 7).value
        value = field(result, 0)
        if tag == ERROR:
            raise LeanRefused(text(self.call("lean_io_error_to_string", value)))
        return value

    def value(self, name: str, *arguments: Any) -> int:
        """Calls a Lean function that cannot fail and returns its value; older versions wrap it in a result."""
        found = self.call(name, *arguments, WORLD)
        return field(found, 0) if ctypes.c_uint8.from_address(found + 7).value == DONE else found

    def begin(self, *, initialisers: bool) -> None:
        """Initializes Lean as its command line does. `initialisers`: run the library's initialisers on import."""
        self.act("lean_init_search_path")
        if initialisers:
            self.call("lean_enable_initializer_execution", WORLD)
        self._library.lean_io_mark_end_initialization()

    def begin_tasks(self) -> None:
        """Starts Lean's task threads. Must not precede a fork, which would lose them."""
        self._library.lean_init_task_manager_using(ctypes.c_uint(1))

    def environment(self, imports: int, *, extensions: bool) -> int:
        """Imports modules into a new Lean environment and returns it. Raises LeanRefused."""
        flag, none = int(extensions), self.array([])
        return self.act("l_Lean_importModules", imports, self.options, 0, none, flag, flag, PRIVATE, EMPTY_MAP)

    def module(self, file: Path) -> int:
        """Loads the module data of a compiled Lean file. Raises LeanRefused."""
        return field(self.act("l_Lean_readModuleData", self.string(str(file))), 0)

    def replay(self, module: int, kernel: int) -> int:
        """Adds a compiled module's declarations to a kernel environment, checking each. Raises LeanRefused."""
        declared = self._map(elements(field(module, NAMES)), elements(field(module, CONSTANTS)))
        os.environ[BREAKING] = "1"  # else a replay skips what it does not expect
        try:
            return self.act("l_Lean_Kernel_Environment_replay", declared, kernel)
        finally:
            del os.environ[BREAKING]

    def declared_again(self, module: int, kernel: int) -> int:
        """Returns the name of a module's first declaration that a kernel environment already has; 0 if none."""
        names = elements(field(module, NAMES))
        owners = ctypes.c_int32.from_address(kernel)
        owners.value += len(names) * ((owners.value > 0) - (owners.value < 0))  # each lookup consumes one reference
        found = [name for name in names if self.call("lean_environment_find", kernel, name) != NOTHING]
        return found[0] if found else 0

    def chosen(self, options: dict[str, int | bool]) -> int:
        """Builds Lean's options object for the elaborator from names and values."""
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
        """Returns the imports of a file without any, plus `modules`, imported with the same flags as the first."""
        first = elements(usual)
        flags = field(first[0], 1)
        return self.array([*first, *(self.object(0, [self.name(module), flags], fields=1) for module in modules)])

    def array(self, values: list[int]) -> int:
        return self.object(ARRAY, [len(values), len(values), *values])

    def object(self, tag: int, words: list[int], fields: int = 0) -> int:
        """Allocates a Lean object in our memory: a reference count of 0 means that it is never freed."""
        size = POINTER * (1 + len(words)) if tag != ARRAY else 1  # arrays store their own length
        memory = (ctypes.c_uint64 * (1 + len(words)))(tag << 56 | fields << 48 | size << 32, *words)
        self._memory.append(memory)
        return ctypes.addressof(memory)

    def _map(self, keys: list[int], values: list[int]) -> int:
        """Builds a Lean hash map with one bucket, which needs no hash function."""
        chain = NOTHING
        for key, value in zip(keys, values, strict=True):
            chain = self.object(1, [key, value, chain], fields=3)
        return self.object(0, [len(keys) << 1 | 1, self.array([chain])], fields=2)


def replay(library: ctypes.CDLL, file: Path) -> None:
    """Checks a compiled file's declarations again with the kernel, in an environment with only the file's imports.

    Each is type checked anew; inductive types, constructors and recursors are rebuilt and compared. This detects what
    was put into the file behind the kernel's back, by `debug.skipKernelTC` or by writing the file. None may exist
    already: some versions skip an existing theorem, while an import prefers the file's version.

    Uses Lean's own function behind its `leanchecker`, since not every toolchain has the program. Once per process: its
    data is never freed. Raises LeanRefused with the message of the kernel or the reader; AttributeError if this Lean
    lacks a function. Source: src/Lean/Replay.lean.
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

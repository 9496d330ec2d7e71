"""A compiled file's declarations given to the kernel once more, in a process that never elaborated anything.

Lean's own `Lean.Kernel.Environment.replay` does it, the function behind its `leanchecker`; here it is called in the
shared library, since not every toolchain has the program. It takes the declarations of one file, in an environment that
holds the file's imports and nothing else, type checks each of them anew, and has inductive types, constructors and
recursors made again and compared. So it finds what was put into a file behind the kernel's back, with
`debug.skipKernelTC` or by writing the file.

What always holds: it runs in a process of its own, which a wrong guess about another version's calling convention may
end. So a server believes it only after two controls: a true file that it accepts and a false one that it refuses
(`server.prove_replay`).
Source: src/Lean/Replay.lean; Lean 4.35.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

from verifiers.lean.native import IMPORTS, Native, field

FUNCTIONS = (
    "lean_mk_string_from_bytes",
    "lean_io_error_to_string",
    "lean_init_search_path",
    "l_Lean_readModuleData",
    "l_Lean_importModules",
    "lean_elab_environment_to_kernel_env",
    "l_Lean_Kernel_Environment_replay",
)


def replay(library: ctypes.CDLL, file: Path) -> None:
    """Once per process: what it reads stays where it is. Raises Refused with what the kernel, or Lean's reader, says;
    AttributeError where this Lean has not what is needed."""
    native = Native(library, FUNCTIONS)
    native.begin(initialisers=False)
    native.begin_tasks()
    module = native.module(file)
    environment = native.environment(field(module, IMPORTS), extensions=False)
    native.replay(module, native.call("lean_elab_environment_to_kernel_env", environment))

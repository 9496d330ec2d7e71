"""A header's environment, imported once and inherited by every fork of the process.

Lean's own `importModules` makes it, and its own `Elab.process` elaborates the source after the imports, as the command
line does without the header. A fork can first add compiled files through the kernel's replay, so that later elaboration
depends on nothing unchecked, and on none of their entries.

Invariants: the importing process runs nothing of a submission; what cannot be done warm raises NotWarm and must be done
cold. Nothing here decides what a submission proves: Lean's messages do, as ever. Source: src/Lean/Elab/Frontend.lean,
src/Lean/Elab/Import.lean; Lean 4.35.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from verifiers.lean.native import FUNCTIONS, IMPORTS, NOTHING, LeanRefused, Native, elements, field, text

OPTION = re.compile(r"-D(?P<name>[A-Za-z][A-Za-z0-9.]*)=(?P<value>\d+)\Z")
USUAL: dict[str, int | bool] = {"Elab.async": True, "internal.cmdlineSnapshots": True}
"""Options that the command line sets by itself; every version ignores unknown options."""
STACK = 1 << 30
"""Stack size in bytes, as Lean gives its own threads; allocated on use."""


class NotWarm(Exception):
    """The step cannot use preimported modules and must run without; the message says why."""


class Warm:
    """Lean environment with one header's modules imported, in this process."""

    def __init__(self, library: Any, modules: Sequence[str], plain: bytes) -> None:
        """Imports the modules. `plain` is a compiled file that imported nothing by name. Raises NotWarm."""
        try:
            native = self._native = Native(library, FUNCTIONS)
            native.begin(initialisers=True)
            with tempfile.NamedTemporaryFile(suffix=".olean") as file:
                file.write(plain)
                file.flush()
                usual = field(native.module(Path(file.name)), IMPORTS)
            self._environment = native.environment(native.imports(usual, modules), extensions=True)
        except (AttributeError, ValueError, LeanRefused) as error:
            raise NotWarm(f"the header cannot be preimported: {error}") from error

    def prepare(self, folder: Path, message: dict[str, Any]) -> dict[str, Any]:
        """Adds compiled files to the environment one by one, through the kernel; runs in a fork. Raises NotWarm, with
        the kernel's message."""
        self._native.begin_tasks()
        added = message.get("add", ())
        if not added:
            return {}
        kernel = self._native.call("lean_elab_environment_to_kernel_env", self._environment)
        try:
            for name in added:
                kernel = self._native.replay(self._native.module(folder / name), kernel)
        except LeanRefused as error:
            raise NotWarm(str(error)[:2000]) from error
        self._environment = self._native.call("l_Lean_Environment_ofKernelEnv", kernel)
        return {"replayed": "yes"}

    def elaborate(self, folder: Path, message: dict[str, Any]) -> int:
        """Elaborates a Lean source without imports and writes messages as `lean --json` does; runs in a fork. Raises
        NotWarm."""
        found: list[int | Exception] = []

        def work() -> None:
            try:
                self._native.call("lean_initialize_thread")
                found.append(self._elaborate(folder, message))
            except Exception as error:  # noqa: BLE001 - goes on in the thread that waits
                found.append(error)

        threading.stack_size(STACK)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if isinstance(found[0], LeanRefused):
            raise NotWarm(str(found[0])[:2000])
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    def _elaborate(self, folder: Path, message: dict[str, Any]) -> int:
        native, module = self._native, message["module"]
        options = native.chosen(_options(message.get("options", ())))
        main = native.call("l_Lean_Environment_setMainModule", self._environment, native.name(module))
        pair = native.act("l_Lean_Elab_process", native.string(message["source"]), main, options, NOTHING)
        environment, log = field(pair, 0), field(pair, 1)
        native.call("lean_mark_persistent", log)
        code = self._tell(log)
        if code == 0 and message.get("keep"):
            native.act("l_Lean_writeModule", environment, native.string(str(folder / f"{module}.olean")), 1)
        return code

    def _tell(self, log: int) -> int:
        """Writes Lean's messages to standard output, as JSON lines. Returns 1 if one is an error, else 0."""
        code = 0
        for entry in elements(self._native.call("l_Lean_MessageLog_toArray", log)):
            line = text(self._native.call("l_Lean_Json_compress", self._native.value("l_Lean_Message_toJson", entry)))
            code |= json.loads(line)["severity"] == "error"
            rest = memoryview(f"{line}\n".encode())
            while rest:
                rest = rest[os.write(1, rest) :]
        return code


def _options(given: Sequence[str]) -> dict[str, int | bool]:
    found = [OPTION.match(option) for option in given]
    if None in found:
        raise NotWarm(f"options that need the command line: {given}")
    return USUAL | {one["name"]: int(one["value"]) for one in found if one}

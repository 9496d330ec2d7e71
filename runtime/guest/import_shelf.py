"""Importer that keeps compiled modules in memory, for processes that cannot open files.

A forked process copies all memory that it or its parent touches, in units of up to 2 MB under gVisor. Modules imported
before the fork are such memory; their compiled code in one long byte string is not.
"""

from __future__ import annotations

import marshal
import os
import sys

from runtime.guest.frames import write_all

TYPE_CHECKING = False  # guards imports for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    CodeRange = tuple[int, int, str, bool]
    """Start and end of its code, its source file, and True for a package."""

SIZE_BYTES = 8


class Shelf:
    """Finder and loader of the import system for modules whose compiled code is kept in memory."""

    def __init__(
        self, code: memoryview, ranges: dict[str, CodeRange], absent: frozenset[str], run: Callable[..., None]
    ) -> None:
        """Stores compiled modules for later imports. `absent`: modules known not to exist although some of these try to
        import them. `run`: calls a function with its arguments."""
        self._code, self._ranges, self._absent, self._run = code, ranges, absent, run
        self._spec_type = type(sys.__spec__)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        code_range = self._ranges.get(name)
        if code_range is None:
            if name in self._absent:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return None
        _, _, origin, package = code_range
        spec = self._spec_type(name, self, origin=origin, is_package=package)  # type: ignore[arg-type]
        if package and spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(os.path.dirname(origin))  # noqa: PTH120
        spec.has_location = True
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """Returns None, so that the import system creates the module itself."""

    def exec_module(self, module: ModuleType) -> None:
        start, end, _, _ = self._ranges[module.__name__]
        self._run(exec, marshal.loads(self._code[start:end]), vars(module))  # noqa: S302 - our own, see `shelve`


class MissingModules:
    """Last finder of the import system, which records names that no other finder found."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        self.names.append(name)


def shelve(names: list[str], run: Callable[..., None]) -> None:
    """Makes modules, and everything they import, importable without files: keeps their compiled code, and imports
    extension modules, which need a file.

    `run` calls a function, such as a module's code. A separate process imports all of them to inspect them, because
    here they would stay. Raises ImportError on failure.
    """
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _send_modules(into, names)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(into)
    size = int.from_bytes(_read(out, SIZE_BYTES), "big")
    libraries, ranges, absent = marshal.loads(_read(out, size))  # noqa: S302 - from our own process, before any user code
    code = _read(out, max((end for _, end, _, _ in ranges.values()), default=0))
    os.close(out)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise ImportError(f"modules could not be kept: {' '.join(names)}")
    sys.meta_path.insert(len(sys.meta_path) - 1, Shelf(code, ranges, frozenset(absent), run))
    for name in libraries:
        __import__(name)


def _send_modules(into: int, names: list[str]) -> None:
    """Imports these names and writes the compiled code of all newly loaded modules to a descriptor. Called in a
    separate process. An index comes first, after its length: modules without Python code, code ranges, and missing
    names."""
    before = set(sys.modules)
    missing = MissingModules()
    sys.meta_path.append(missing)
    for name in names:
        __import__(name)
    libraries: list[str] = []
    ranges: dict[str, CodeRange] = {}
    pieces: list[bytes] = []
    end = 0
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if name in before or spec is None or spec.name != name or not spec.has_location:
            continue
        get_code = getattr(spec.loader, "get_code", None)
        code = get_code(name) if get_code is not None else None
        if code is None:
            libraries.append(name)
            continue
        pieces.append(marshal.dumps(code))
        ranges[name] = (end, end + len(pieces[-1]), spec.origin, spec.submodule_search_locations is not None)
        end += len(pieces[-1])
    index = marshal.dumps((libraries, ranges, missing.names))
    for piece in (len(index).to_bytes(SIZE_BYTES, "big"), index, *pieces):
        write_all(into, piece)


def _read(descriptor: int, size: int) -> memoryview:
    """Reads exactly `size` bytes into separate memory. Raises ImportError if there are fewer."""
    data = memoryview(bytearray(size))
    have = 0
    while have < size:
        more = os.readv(descriptor, [data[have:]])
        if more == 0:
            raise ImportError("modules could not be kept: the inspecting process ended")
        have += more
    return data.toreadonly()

"""Imports modules of admitted distributions, whose bytes are hashed again when they are executed.

Invariants: a module of an admitted distribution comes from the file that its RECORD names, never from another folder of
the path, and from its source, never from bytecode that somebody may have left beside it; a module that the RECORD does
not name does not exist.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from types import CodeType, ModuleType

from common.plugins.installed import REINSTALL, PluginError, RecordedFile


def _require(data: bytes, file: RecordedFile) -> None:
    if hashlib.sha256(data).digest() != file.sha256:
        raise PluginError(f"{file.path}: differs from the RECORD of its distribution", hint=REINSTALL)


class SourceLoader(SourceFileLoader):
    """Compiles the recorded source of a module; ignores bytecode."""

    def __init__(self, name: str, file: RecordedFile) -> None:
        super().__init__(name, str(file.path))
        self._file = file

    def get_code(self, fullname: str) -> CodeType:
        data = self.get_data(self.path)
        _require(data, self._file)
        code: CodeType = self.source_to_code(data, self.path)
        return code


class RecordedModules(MetaPathFinder):
    """Finds modules of admitted distributions, before any other finder."""

    def __init__(self) -> None:
        self.files: Mapping[str, RecordedFile] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self.files.get(fullname)
        if file is None:
            if fullname.rpartition(".")[0] in self.files:
                why = "is not in the RECORD of its distribution, or lacks an __init__.py"
                raise ModuleNotFoundError(f"{fullname} {why}", name=fullname)
            return None
        if file.path.suffix != ".py":
            _require(file.path.read_bytes(), file)
            return spec_from_file_location(fullname, file.path, loader=ExtensionFileLoader(fullname, str(file.path)))
        is_package = file.path.name == "__init__.py"
        return spec_from_file_location(
            fullname,
            file.path,
            loader=SourceLoader(fullname, file),
            submodule_search_locations=[str(file.path.parent)] if is_package else None,
        )


_FINDER = RecordedModules()


def replace_modules(files: Mapping[str, RecordedFile]) -> None:
    """Makes these modules, and no others from before, importable from their recorded files alone."""
    _FINDER.files = files
    if files and _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)

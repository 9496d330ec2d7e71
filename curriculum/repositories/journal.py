"""Journal of finished runs, by which an interrupted run is resumed.

Invariants: each result is written once it is known; a line that was cut off is as if its run had not finished.
"""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any


class Journal:
    """Results of finished runs, by what ran: in memory, and in a file if one is given."""

    def __init__(self, found: MutableMapping[str, Any], file: Path | None = None) -> None:
        self._found, self._file = found, file

    @classmethod
    def in_file(cls, file: Path) -> Journal:
        """Opens a journal; a last line that was cut off is ignored. Raises OSError."""
        found: dict[str, Any] = {}
        file.parent.mkdir(parents=True, exist_ok=True)
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
            try:
                key, value = json.loads(line)
            except ValueError:
                continue
            found[key] = value
        return cls(found, file)

    def get(self, key: str) -> Any:
        """Returns the result of a finished run; None if it has not run."""
        return self._found.get(key)

    def add(self, key: str, value: Any) -> None:
        """Records the result of a run. Raises OSError."""
        self._found[key] = value
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as stream:
                stream.write(f"\n{json.dumps([key, value])}\n")

"""Format of a repair. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from verifiers.files.spec import FilesSpec, PlacedFile


@dataclass(frozen=True, kw_only=True)
class Repair:
    instruction: str
    files: Sequence[PlacedFile]
    solved: Sequence[PlacedFile]
    """Declared files after a solution."""
    spec: FilesSpec
    key: str = field(default="")


def placed(path: str, text: str, mode: str = "644") -> PlacedFile:
    return PlacedFile(path=path, text=text, mode=mode)


def submission_of(files: Sequence[PlacedFile]) -> str:
    """Returns the JSON that a terminal submits for these declared files: text and mode by path."""
    return json.dumps({file.path: {"text": file.text, "mode": file.mode} for file in files})


def commands_of(files: Sequence[PlacedFile]) -> str:
    """Returns shell commands that create these files."""
    lines = []
    for file in files:
        if "/" in file.path:
            lines.append(f"mkdir -p {file.path.rpartition('/')[0]}")
        body = file.text if file.text.endswith("\n") or not file.text else f"{file.text}\n"
        lines.append(f"cat > {file.path} <<'END_OF_FILE'\n{body}END_OF_FILE\nchmod {file.mode} {file.path}")
    return "\n".join(lines) + "\n"

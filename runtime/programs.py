"""Programs of our own that a broker runs in boxes beside the guests' Python: the verifiers' tools.

What always holds: a client names a program, and the broker's own settings say what that is; no client chooses a path of
the host. A program reads requests from its standard input and answers on its standard output, as guests do, in a
protocol of its own after one READY frame; it sees its folders read-only and nothing else of the host.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

ProgramName = Annotated[str, StringConstraints(pattern=r"\A[a-z][a-z0-9-]{0,39}\Z")]


class Program(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ProgramName
    argv: tuple[str, ...] = Field(min_length=1)
    """The first is an absolute path, inside `folders`."""
    folders: tuple[Path, ...] = ()
    """Of the host, seen read-only under the same path."""
    environment: dict[str, str] = {}
    address_space: bool = True
    """Whether a process is held to its profile's address space; Lean cannot work so, and its group holds it alone."""

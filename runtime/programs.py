"""Host programs that a broker runs in boxes beside the guests' Python: the verifiers' tools.

Invariants: a client names a program, and only the broker's settings define it; no client chooses a host path. A program
prints `READY` on standard output once warm, and nothing before; then it answers requests from standard input there, in
its own protocol. It sees its folders read-only and its own empty /tmp, and nothing else of the host.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from runtime.guest import wire
from runtime.model import FrozenModel

READY = wire.pack_reply(wire.NO_NONCE, wire.ReplyKind.READY)
"""First output of a guest, so that a broker handles guests and programs alike."""
ProgramName = Annotated[str, StringConstraints(pattern=r"\A[a-z][a-z0-9-]{0,39}\z")]


class Program(FrozenModel):
    name: ProgramName
    argv: tuple[str, ...] = Field(min_length=1)
    """Command line; the first element is an absolute path inside `folders`."""
    folders: tuple[Path, ...] = ()
    """Host folders, visible read-only under the same path, without mounts below them. List targets of links too."""
    environment: dict[str, str] = Field(default_factory=dict)
    address_space: bool = True
    """True if each process is limited to four times the box's memory of address space. Lean needs False and relies on
    its control group."""
    proc: bool = False
    """True if the program sees /proc with its own processes."""

    @model_validator(mode="after")
    def _is_absolute(self) -> Program:
        for path in (Path(self.argv[0]), *self.folders):
            if not path.is_absolute() or ".." in path.parts:
                raise ValueError(f"{path} is not an absolute path")
        return self

    @property
    def mounts(self) -> tuple[Path, ...]:
        """Folders that a host program's box mounts, without those nested in another one; parents before children."""
        named = sorted(set(self.folders), key=lambda path: len(path.parts))
        return tuple(path for path in named if not any(parent in named for parent in path.parents))

"""Describes programs of our own that a broker runs in boxes beside the guests' Python: the verifiers' tools.

What always holds: a client names a program, and the broker's own settings say what that is; no client chooses a path of
the host. A program says `READY` on its standard output once it is warm, and nothing before; then it answers there what
it is asked on its standard input, in a protocol of its own. It sees its folders read-only, an empty /tmp of its own,
and nothing else of the host.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from runtime.guest import wire
from runtime.model import FrozenModel

READY = wire.pack_reply(wire.NO_NONCE, wire.ReplyKind.READY)
"""What a guest says first, so that a broker greets both alike."""
ProgramName = Annotated[str, StringConstraints(pattern=r"\A[a-z][a-z0-9-]{0,39}\z")]


class Program(FrozenModel):
    name: ProgramName
    argv: tuple[str, ...] = Field(min_length=1)
    """The first is an absolute path, inside `folders`."""
    folders: tuple[Path, ...] = ()
    """Of the host, seen read-only under the same path; mounts below them are not. What a link in them points to has to
    be named too."""
    environment: dict[str, str] = Field(default_factory=dict)
    address_space: bool = True
    """Whether a process is held to four times its box's memory of address space; Lean cannot work so, and its group
    holds it alone."""
    proc: bool = False
    """Whether it sees /proc, with its own processes in it."""

    @model_validator(mode="after")
    def _is_absolute(self) -> Program:
        for path in (Path(self.argv[0]), *self.folders):
            if not path.is_absolute() or ".." in path.parts:
                raise ValueError(f"{path} is no absolute path")
        return self

    @property
    def mounts(self) -> tuple[Path, ...]:
        """Its folders, those left out that lie in another one; parents before children."""
        named = sorted(set(self.folders), key=lambda path: len(path.parts))
        return tuple(path for path in named if not any(parent in named for parent in path.parents))

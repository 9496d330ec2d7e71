"""What declared files have to hold and to do: pure data.

The submission is JSON, `{"path": {"text": "...", "mode": "644"}}`, for the declared files and no others; in the place
of a text there may be a `problem`, which is why it could not be read.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from verifiers.contract.spec_data import SpecData, SpecModel

FilePath = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*){0,5}$")
]
"""Below the working folder."""
Mode = Annotated[str, StringConstraints(pattern=r"^[0-7]{3}$")]
FILE_CHARS, MOST_FILES = 100_000, 50


class PlacedFile(SpecData):
    path: FilePath
    text: str = Field(max_length=FILE_CHARS)
    mode: Mode = "644"


class FileCondition(SpecData):
    """What one declared file has to be."""

    path: FilePath
    equals: str | None = Field(default=None, max_length=FILE_CHARS)
    """Its lines, apart from blanks at their ends and empty lines at the end of all."""
    mode: Mode | None = None


class CommandCondition(SpecData):
    """What has to come of a command beside the declared files, in a folder of its own. What is expected never enters
    the sandbox."""

    command: tuple[str, ...] = Field(min_length=1, max_length=50)
    files: tuple[PlacedFile, ...] = Field(default=(), max_length=MOST_FILES)
    """Put there first, over what was submitted by the same name."""
    stdin: str = Field(default="", max_length=FILE_CHARS)
    stdout: str | None = Field(default=None, max_length=FILE_CHARS)
    exit_code: int | None = 0
    leaves: tuple[PlacedFile, ...] = Field(default=(), max_length=MOST_FILES)
    """What is there afterwards; modes are not looked at."""


class ForeignTest(SpecData):
    """A test that somebody else wrote. It runs beside the submission: its score is a foreign reward and no verdict."""

    files: tuple[PlacedFile, ...] = Field(default=(), max_length=200)
    command: tuple[str, ...] = Field(default=(), max_length=20)
    """Nothing where the world itself scored what was done in it: the score is then among what was submitted."""
    rewards: tuple[str, ...] = Field(min_length=1, max_length=4)
    """Where it may write its score, below the working folder: a number, or JSON with one called `reward`."""
    seconds: float = Field(default=60.0, gt=0, le=600)


class FilesSpec(SpecModel):
    kind: Literal["files"] = "files"
    declared: tuple[FilePath, ...] = Field(min_length=1, max_length=MOST_FILES)
    """What is submitted; all of it has to be there."""
    files: tuple[FileCondition, ...] = Field(default=(), max_length=MOST_FILES)
    commands: tuple[CommandCondition, ...] = Field(default=(), max_length=MOST_FILES)
    foreign: ForeignTest | None = None
    seconds: float = Field(default=5.0, gt=0, le=60)
    """Of one command."""

    @property
    def only_foreign(self) -> bool:
        """Whether nothing of ours decides: such a spec passes nothing, and what it judges is never trained on."""
        return self.foreign is not None and not (self.files or self.commands)

    def summary(self) -> str:
        return f"{self.kind}: {', '.join(self.declared)}"

"""Spec of the kind `files`: required content and behaviour of declared files. Pure data.

The submission is JSON, `{"path": {"text": "...", "mode": "644"}}`, for exactly the declared files; instead of a text
there may be a `problem`, the reason why the file could not be read.

Parser of the submitted files: untrusted JSON. Pure.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, StringConstraints

from runtime.profile import SetDigest
from verifiers.contract.spec_data import SpecData, SpecModel

FilePath = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*){0,5}$")
]
"""Path relative to the working folder."""
PlacePath = Annotated[
    str, StringConstraints(pattern=r"^\.?[A-Za-z0-9_][A-Za-z0-9_.-]*(/\.?[A-Za-z0-9_][A-Za-z0-9_.-]*){0,11}$")
]
"""Path of a file that a task puts there; names may begin with a dot."""
Mode = Annotated[str, StringConstraints(pattern=r"^[0-7]{3}$")]
FILE_CHARS, MOST_FILES, MOST_GATHERED = 100_000, 50, 500
MOST_TREE, MOST_TESTS = 200, 1_000


class PlacedFile(SpecData):
    path: PlacePath
    text: str = Field(max_length=FILE_CHARS)
    mode: Mode = "644"


class FileCondition(SpecData):
    """Required content and mode of one declared file."""

    path: FilePath
    equals: str | None = Field(default=None, max_length=FILE_CHARS)
    """Expected lines; trailing blanks and trailing empty lines are ignored."""
    mode: Mode | None = None


class CommandCondition(SpecData):
    """Required result of a command run beside the declared files, in its own folder. They never enter the sandbox."""

    command: tuple[str, ...] = Field(min_length=1, max_length=50)
    files: tuple[PlacedFile, ...] = Field(default=(), max_length=MOST_FILES)
    """Files added first; they replace submitted files of the same name."""
    stdin: str = Field(default="", max_length=FILE_CHARS)
    stdout: str | None = Field(default=None, max_length=FILE_CHARS)
    exit_code: int | None = 0
    leaves: tuple[PlacedFile, ...] = Field(default=(), max_length=MOST_FILES)
    """Files that must exist afterwards; their modes are ignored."""


class ForeignTest(SpecData):
    """Third-party test that runs beside the submission: its score is a foreign reward, not a verdict."""

    files: tuple[PlacedFile, ...] = Field(default=(), max_length=200)
    """Files of the test, which replace submitted ones."""
    world: tuple[PlacedFile, ...] = Field(default=(), max_length=200)
    """Files that were there before the work, and still are unless the submission replaces or removes them."""
    folders: tuple[PlacePath, ...] = Field(default=(), max_length=200)
    gathers: bool = False
    """True if the submission has every file that is new, changed or removed, declared or not."""
    variables: tuple[tuple[str, str], ...] = Field(default=(), max_length=100)
    packages: SetDigest | None = None
    """Package set of the test's sandbox."""
    memory_mib: int = Field(default=512, ge=64, le=4_096)
    command: tuple[str, ...] = Field(default=(), max_length=20)
    """Empty if the world itself scored the work; the score is then part of the submission."""
    rewards: tuple[str, ...] = Field(min_length=1, max_length=4)
    """Paths where it may write its score, below the working folder: a number, or JSON with a number `reward`."""
    seconds: float = Field(default=60.0, gt=0, le=600)


class SuiteCondition(SpecData):
    """Tests of a repository that must pass with the submitted files in it, and observe the expected values."""

    tree: tuple[PlacedFile, ...] = Field(min_length=1, max_length=MOST_TREE)
    """Files of the repository, declared ones included; a submission has those that it changes."""
    tests: tuple[tuple[str, str], ...] = Field(min_length=1, max_length=MOST_TESTS)
    """Names of the tests, each with the digest of the values that it has to observe."""
    path: tuple[str, ...] = Field(min_length=1, max_length=8)
    """Folders of the repository that Python imports from."""
    allowed: tuple[str, ...] = Field(default=(), max_length=200)
    """Watched names that a submission may use, because the repository does."""
    packages: SetDigest
    memory_mib: int = Field(default=1_024, ge=64, le=4_096)


class FilesSpec(SpecModel):
    kind: Literal["files"] = "files"
    declared: tuple[FilePath, ...] = Field(min_length=1, max_length=MOST_FILES)
    """Files to submit; all must be present."""
    files: tuple[FileCondition, ...] = Field(default=(), max_length=MOST_FILES)
    commands: tuple[CommandCondition, ...] = Field(default=(), max_length=MOST_FILES)
    foreign: ForeignTest | None = None
    suite: SuiteCondition | None = Field(default=None, exclude_if=lambda suite: suite is None)
    seconds: float = Field(default=5.0, gt=0, le=60)
    """Time limit of one command, in seconds."""

    @property
    def only_foreign(self) -> bool:
        """True if only a foreign test decides: such a spec passes nothing, and its submissions are never trained on."""
        return self.foreign is not None and not (self.files or self.commands or self.suite)

    def summary(self) -> str:
        return f"{self.kind}: {', '.join(self.declared)}"


MAX_CHARACTERS = 1 << 18
MODE = re.compile(r"[0-7]{3}\Z")
PATH = re.compile(r"\.?[A-Za-z0-9_][A-Za-z0-9_.-]*(/\.?[A-Za-z0-9_][A-Za-z0-9_.-]*){0,11}\Z")


class SubmittedFile(NamedTuple):
    text: str
    mode: str


def read(spec: FilesSpec, submission: str) -> dict[str, SubmittedFile] | str:
    """Parses a submission into its files by path; returns a sentence that describes the problem if it is invalid."""
    if len(submission) > MAX_CHARACTERS:
        return f"longer than {MAX_CHARACTERS} characters"
    try:
        data = json.loads(submission)
    except (ValueError, RecursionError):
        return "not valid JSON"
    if isinstance(data, str):
        return f"no files were taken: {data[:200]!a}"
    if not isinstance(data, dict):
        return "not a JSON object of files"
    gathers = spec.foreign is not None and spec.foreign.gathers
    if gathers and (wrong := [path for path in data if not PATH.match(path)]):
        return f"{wrong[0][:60]!a} is not a path"
    if gathers and len(data) > MOST_GATHERED:
        return f"more than {MOST_GATHERED} files"
    if not gathers and (undeclared := sorted(set(data) - set(spec.declared))):
        return f"{undeclared[0][:60]!a} is not a declared file"
    found: dict[str, SubmittedFile] = {}
    for path in dict.fromkeys((*spec.declared, *(data if gathers else ()))):
        if path not in data and not (spec.files or spec.commands):
            continue  # a foreign test reports missing files itself; those of a suite are unchanged
        if path not in data:
            return f"{path} is missing"
        one = data[path]
        if isinstance(one, dict) and set(one) == {"problem"} and gathers:
            continue  # as if it were not there
        if isinstance(one, dict) and set(one) == {"problem"}:
            return f"{path} cannot be judged: {str(one['problem'])[:80]!a}"
        if not isinstance(one, dict) or set(one) != {"text", "mode"}:
            return f"{path} is not a file with a text and a mode"
        text, mode = one["text"], one["mode"]
        if not isinstance(text, str) or not isinstance(mode, str) or not MODE.match(mode):
            return f"{path} is not a file with a text and a mode"
        if len(text) > FILE_CHARS or not _is_text(text):
            return f"{path} is longer than {FILE_CHARS} characters, or not text"
        found[path] = SubmittedFile(text, mode)
    return found


def removed_in(submission: str) -> frozenset[str]:
    """Returns the paths that a readable submission names without a file: their files do not exist any more."""
    return frozenset(path for path, one in json.loads(submission).items() if set(one) == {"problem"})


def same_lines(one: str, other: str) -> bool:
    """True if two texts have the same lines, ignoring trailing blanks and trailing empty lines."""
    return _lines(one) == _lines(other)


def _lines(text: str) -> list[str]:
    return [line.rstrip(" \t\r") for line in text.rstrip().split("\n")]


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text

"""Files of a job: those that define its check, and those for the agent to work with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from appliance.errors import UsageError
from appliance.records.jobs import MAX_JOB_BYTES, MAX_JOB_FILE_BYTES, MAX_JOB_FILES, JobFile
from policies.toml_files import beginning
from verifiers.contract.errors import SpecError
from verifiers.contract.kinds import KindOption
from verifiers.contract.spec_data import SpecModel

MAX_SPEC_BYTES = 4 << 20


def fields_in(folder: Path, option: KindOption, value: str) -> dict[str, Any]:
    """Returns the spec fields that an option of a job sets. They are read from a file if the option names one. Raises
    UsageError, or SpecError that names the file."""
    if option.takes != "file":
        return {option.field: value}
    text = text_in(folder, value, option.flag)
    if option.read is None:
        return {option.field: text}
    try:
        spec: SpecModel = option.read.load()(text, (folder / value).parent)
    except SpecError as error:
        raise SpecError(f"{value}: {error}", hint=error.hint) from error
    return spec.model_dump(mode="json", exclude={"kind"})


def text_in(folder: Path, name: str, option: str) -> str:
    """Reads a text file that a job names. Raises UsageError, naming the option, if it is unreadable, not text, or too
    large."""
    content = _read(folder / name, option, MAX_SPEC_BYTES)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 at byte {error.start}", hint="save it as UTF-8") from error


class JobContents:
    """Files of a job for the agent to work with. Raises UsageError for too many, too large, or equally named files."""

    def __init__(self, folder: Path, names: Sequence[str], made: Mapping[str, str] | None = None) -> None:
        """Reads a job's files from the folder. `made` are texts that come with a task, by name."""
        if len(names) > MAX_JOB_FILES:
            raise UsageError(f"a job has at most {MAX_JOB_FILES} files", hint="put several into one archive")
        self.contents: dict[str, bytes] = {}
        """Contents by digest."""
        records = [self._take(folder / name) for name in names]
        records += [self._keep(name, text.encode()) for name, text in (made or {}).items()]
        twice = sorted({file.name for file in records if sum(other.name == file.name for other in records) > 1})
        if twice:
            raise UsageError(f"two files are called {twice[0]}", hint="rename one")
        if sum(file.bytes for file in records) > MAX_JOB_BYTES:
            raise UsageError("the files are too large", hint=f"send at most {MAX_JOB_BYTES >> 20} MiB together")
        self.records = tuple(records)

    def _take(self, path: Path) -> JobFile:
        return self._keep(path.name, _read(path, "--file", MAX_JOB_FILE_BYTES))

    def _keep(self, name: str, content: bytes) -> JobFile:
        digest = hashlib.sha256(content).hexdigest()
        try:
            file = JobFile(name=name, sha256=digest, bytes=len(content))
        except ValidationError as error:
            raise UsageError(
                f"invalid file name {name!r}",
                hint="use at most 100 letters, digits, dots, dashes and underscores, not beginning with a dot or dash",
            ) from error
        self.contents[digest] = content
        return file


def _read(path: Path, option: str, most: int) -> bytes:
    try:
        content = beginning(path, most)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "invalid file name"
        raise UsageError(f"{path}: {why}", hint=f"set {option} to a readable file") from error
    if len(content) > most:
        raise UsageError(f"{path} is larger than {most >> 20} MiB", hint="use a smaller file")
    return content

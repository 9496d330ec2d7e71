"""Converts flags or a TOML file to a job: the question, and the check of its answer.

  question = "find x with 7x+3=45"      question = "gcd of 12 and 18?"     question = "double x + 1"
  check = "7*x+3 == 45"                 expect = "6"                       [spec]
                                                                          kind = "answer"
                                                                          expected = "2*x + 2"
                                                                          variables = ["x"]

The keys of a file are the names of the flags; any other is an error. Exactly one key selects the check: `family`,
`spec`, or the first option of a kind of check (`check`, `expect`, `claim`, `statement`, `checklist`). Options for files
name one, as `file` does; `spec` is a table or names a file. Names are relative to the folder of the TOML file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError, create_model, field_validator

from appliance.cli.jobs.limits import budget_of, deadline_of
from appliance.cli.shell.model_options import parameter_name
from appliance.client.messages import SubmitJob
from appliance.errors import UsageError
from appliance.records.jobs import MAX_JOB_BYTES, MAX_JOB_FILE_BYTES, MAX_JOB_FILES, JobFile
from common.toml_files import TomlError, beginning, read_toml
from runtime.model import FrozenModel
from verifiers.contract.errors import SpecError
from verifiers.contract.kinds import Kind, KindOption
from verifiers.contract.spec_data import SpecModel
from verifiers.registry import KINDS, kind_named, kind_of
from verifiers.registry.spec import SPEC, Spec

if TYPE_CHECKING:
    from curriculum.catalog import Catalog
    from curriculum.contract.task import Task


MAX_FILE_BYTES = 1_000_000
PLAIN = {
    "extra_forbidden": "unknown key",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must not be blank",
    "tuple_type": 'must be a list, such as ["one", "two"]',
}
"""Replacements of pydantic's messages."""
SPEC_WAY = "spec"
_BUILT_IN = tuple(KINDS.data.values())
"""Kinds with options of their own; one from outside is asked for by `--spec`."""
WAYS: dict[str, Kind] = {parameter_name(kind.submit[0].flag): kind for kind in _BUILT_IN if kind.submit}
"""Keys that select how an answer is checked, with their kind of check."""
_MORE = {
    parameter_name(option.flag): [way for way, kind in WAYS.items() if option.flag in [one.flag for one in kind.submit]]
    for kind in WAYS.values()
    for option in kind.submit[1:]
}
"""Keys that add to a check, with the keys that they require."""
_REPEATED = {parameter_name(option.flag) for kind in WAYS.values() for option in kind.submit if option.takes == "texts"}
EXPECTED = [kind for kind in _BUILT_IN if "expected" in kind.spec.load().model_fields]
"""Kinds of checks that compare an expected answer."""


@dataclass(frozen=True)
class PreparedRequest:
    """A job ready to send to the daemon: file contents by digest, then the submission that names them."""

    submission: SubmitJob
    contents: Mapping[str, bytes] = field(default_factory=dict)


class JobFields(FrozenModel):
    """Fields of a job: flags of `assay submit`, or keys of its file, without those of the kinds of checks."""

    question: str | None = Field(None, min_length=1, max_length=20_000, pattern=r"\S", description="The question.")
    kind: str | None = Field(None, description="How --expect is compared: answer (mathematics) or exact (text).")
    family: str | None = Field(None, description="An item of a task family, with its own check.")
    level: int = Field(0, ge=0, description="Level of the family's item.")
    item: int = Field(0, ge=0, lt=2**60, description="Number of the family's item.")
    spec: dict[str, Any] | str | None = Field(
        None,
        description="A program's tests, as for `assay check code`; or any spec.",
        json_schema_extra={"metavar": "SPEC.toml"},
    )
    file: tuple[str, ...] = Field(
        (), description="Data file for the agent's folder (repeatable).", json_schema_extra={"metavar": "FILE"}
    )
    seed: int = Field(0, description="Seed of the attempts.")
    priority: int = Field(5, ge=0, le=9, description="Higher priorities go first (default: 5).")
    deadline: str | datetime | None = Field(None, description="Time to give up: 2h, 1d12h, or 2026-05-01T18:00.")
    budget: str | None = Field(
        None,
        coerce_numbers_to_str=True,
        max_length=100,
        description="Limits of the work: 600s, 20000 tokens, 8 attempts; several with commas.",
    )

    @field_validator("spec", mode="after")
    @classmethod
    def _is_known(cls, spec: dict[str, Any] | str | None) -> dict[str, Any] | str | None:
        """Validates a job's spec table early, where messages name its file. Programs are validated later, with their
        values."""
        if isinstance(spec, dict) and "kind" in spec and _kind_of_table(spec).spec_table is None:
            try:
                SPEC.validate_python(spec)
            except ValidationError as error:
                raise ValueError(first_fault(error)) from None
        return spec

    def prepared(self, folder: Path, now: datetime, catalog: Callable[[], Catalog] | None = None) -> PreparedRequest:
        """Builds the job to send, reading the files that it names from `folder`. `now` has a zone; `catalog` provides
        tasksets for a family (default: built-in). Raises UsageError, or SpecError, for contradicting flags or an
        unusable file. Without a check, the daemon gives advice."""
        ways = [name for name in ("family", *WAYS) if getattr(self, name) is not None]
        if len(ways) > 1:
            raise UsageError(f"{' and '.join(ways)} cannot be combined: each selects a check", hint="keep one of them")
        question, spec, made = self.question, None, {}
        if self.family is not None:
            task = self._family_item(self.family, catalog)
            question, spec, made = task.question, task.spec, dict(task.files)
        else:
            self._require_used(ways)
            if ways:
                spec = self._spec(ways[0], folder)
                kind = kind_of(spec)
                question = kind.question.load()(spec, question) if kind.question is not None else question
        if question is None:
            raise UsageError("question: missing", hint="add --question TEXT, or `question` to the file")
        files = JobContents(folder, self.file, made)
        given: dict[str, Any] = {name: getattr(self, name) for name in SubmitJob.model_fields if hasattr(self, name)}
        given |= {"question": question, "spec": spec, "files": files.records}
        given |= {"deadline": deadline_of(self.deadline, now)} | budget_of(self.budget)
        return PreparedRequest(SubmitJob(**given), files.contents)

    def _require_used(self, ways: list[str]) -> None:
        """Raises UsageError for an option of a kind of check that the job does not select."""
        used = {parameter_name(option.flag) for way in ways for option in WAYS[way].submit}
        for name, kinds in _MORE.items():
            if getattr(self, name) not in (None, ()) and name not in used:
                raise UsageError(f"{name} requires {' or '.join(kinds)}", hint=f"omit {name}")

    def _spec(self, way: str, folder: Path) -> Spec:
        try:
            if way == SPEC_WAY:
                return self._own_spec(folder)
            first, *more = WAYS[way].submit
            fields = fields_in(folder, first, getattr(self, way))
            for option in more:
                if (value := getattr(self, parameter_name(option.flag))) not in (None, ()):
                    fields[option.field] = value if option.takes == "texts" else self._single(option, value)
            kind = self._kind_name(way)
            if way == "expect" and kind == "answer" and self.kind is None:
                fields = _reading(fields["expected"]) | fields
            return SPEC.validate_python({**fields, "kind": kind})
        except ValidationError as error:
            raise UsageError(f"invalid check: {first_fault(error)}", hint="see docs/jobs.md") from error

    @staticmethod
    def _single(option: KindOption, value: str | tuple[str, ...]) -> str:
        if isinstance(value, str):
            return value
        if len(value) > 1:
            raise UsageError(f"{parameter_name(option.flag)}: given more than once", hint="keep one of them")
        return value[0]

    def _kind_name(self, way: str) -> str:
        """Returns the kind that compares an expected answer: `kind`; else by its form, mathematics or text."""
        if way != "expect":
            return WAYS[way].name
        if self.kind is None:
            from curriculum.own.columns import kind_of_answer

            in_variables = bool(getattr(self, "variable", ()))
            return "answer" if in_variables else kind_of_answer(str(getattr(self, way)).strip())
        if any(self.kind == kind.name for kind in EXPECTED):
            return self.kind
        known = " or ".join(kind.name for kind in EXPECTED)
        raise UsageError(f"--kind: invalid kind {self.kind!r}", hint=f"use {known}, or omit --kind")

    def _own_spec(self, folder: Path) -> Spec:
        if isinstance(self.spec, str):
            table = table_of(text_in(folder, self.spec, "--spec").encode(), self.spec)
        else:
            table = dict(self.spec or {})
        kind = _kind_of_table(table)
        made: Spec = kind.spec_table.load()(table) if kind.spec_table is not None else SPEC.validate_python(table)
        return made

    def _family_item(self, family: str, catalog: Callable[[], Catalog] | None) -> Task:
        from curriculum.contract.errors import CurriculumError
        from curriculum.contract.task import Split
        from curriculum.registry import BUILT_IN
        from curriculum.seeds import seeds

        if self.question is not None:
            raise UsageError("a family has its own question", hint="omit either --question or --family")
        try:
            known = BUILT_IN if catalog is None else catalog()
            return known.task(family, self.level, next(seeds(Split.JOB, self.item)), Split.JOB)
        except CurriculumError as error:
            raise UsageError(str(error), hint=error.hint) from error


def _reading(expected: str) -> dict[str, Any]:
    """Returns how an expected answer is compared without --kind: an integer by its digits, else an expression."""
    if re.fullmatch(r"-?\d{1,2000}", expected):
        return {"notation": "digits"}
    return {"notation": "plain", "domain": "complex", "variables": ()}


def _kind_of_table(table: Mapping[str, Any]) -> Kind:
    """Returns the kind of check that a spec table names; program if it names none, answer for an unknown name."""
    try:
        return kind_named(str(table.get("kind", WAYS[SPEC_WAY].name)))
    except KeyError:
        return kind_named("answer")  # which refuses any other name


def _fields_of_kinds() -> dict[str, Any]:
    """Builds a job's fields for the options of all kinds of checks; repeatable if any kind sharing one says so."""
    found: dict[str, Any] = {}
    for option in (option for kind in _BUILT_IN for option in kind.submit):
        name = parameter_name(option.flag)
        if name in JobFields.model_fields or name in found:
            continue
        repeated = name in _REPEATED
        extra: dict[str, Any] = {"metavar": option.metavar} if option.metavar else {}
        described = Field(() if repeated else None, description=option.help, json_schema_extra=extra)
        found[name] = (tuple[str, ...] if repeated else str | None, described)
    return found


JobRequest: type[JobFields] = create_model("JobRequest", __base__=JobFields, **_fields_of_kinds())


def read_request(content: bytes, name: str) -> JobFields:
    """Parses a job from TOML; `name` is the file's, for messages. Raises UsageError."""
    if len(content) > MAX_FILE_BYTES:
        raise UsageError(
            f"{name} is larger than {MAX_FILE_BYTES} bytes", hint="a job has only a question and a check; shorten it"
        )
    try:
        return JobRequest.model_validate(table_of(content, name))
    except ValidationError as error:
        raise UsageError(f"{name}: {first_fault(error)}", hint="see docs/jobs.md for the keys of a job") from error


def table_of(content: bytes, name: str) -> dict[str, Any]:
    """Parses the TOML content of a file; `name` is the file's, for messages. Raises UsageError if invalid."""
    try:
        return read_toml(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text: {error.reason}", hint="save it as UTF-8") from error
    except TomlError as error:
        raise UsageError(f"{name} is not TOML: {error}", hint='write lines like: question = "..."') from error


def first_fault(error: ValidationError) -> str:
    """Formats pydantic's first validation error as `where: what`, without the value."""
    fault = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in fault["loc"])
    what = PLAIN.get(fault["type"]) or str(fault["msg"])
    if fault["type"] == "extra_forbidden" and (near := get_close_matches(where, JobRequest.model_fields, 1)):
        what += f"; did you mean {near[0]}?"
    return f"{where}: {what}" if where else what


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

"""From flags or a TOML file to a job: the question, and what its answer is checked against.

    question = "find x with 7x+3=45"      question = "gcd of 12 and 18?"     question = "double x + 1"
    check = "7*x+3 == 45"                 expect = "6"                       [spec]
                                                                             kind = "expression"
                                                                             expected = "2*x + 2"
                                                                             variables = ["x"]

The keys of a file are the names of the flags; any other is an error. Exactly one of `check`, `expect`, `family`,
`spec`, `claim`, `statement` and `checklist` says how the answer is checked. The last three name files, as `file` does;
`spec` is a table, or names a file. Names are relative to the folder of the TOML file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from appliance.cli.job_words import question_for
from appliance.cli.request_errors import RequestError
from appliance.cli.request_files import JobContents, program_of, spec_in, text_in
from appliance.cli.request_times import deadline_of
from appliance.client import SPEC, ExactSpec, ExpressionSpec, IntegerSpec, PredicateSpec, Spec, SubmitJob
from policies.toml_files import TomlError, read_toml

MAX_FILE_BYTES = 1_000_000
WORDS = {
    "extra_forbidden": "there is no such key",
    "string_too_short": "it is empty",
    "tuple_type": 'this has to be a list, as in ["one", "two"]',
}
"""Instead of pydantic's own words."""
WAYS = ("check", "expect", "family", "spec", "claim", "statement", "checklist")

__all__ = ["MAX_FILE_BYTES", "JobRequest", "Prepared", "RequestError", "first_fault", "read_request"]


@dataclass(frozen=True)
class Prepared:
    """A job as it is sent: its files first, by digest, and then what names them."""

    submission: SubmitJob
    contents: Mapping[str, bytes] = field(default_factory=dict)


class JobRequest(BaseModel):
    """The flags of `assay submit`, or the keys of its file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str | None = Field(default=None, min_length=1, max_length=20_000)
    check: str | None = None
    """A predicate over the answer: no known answer is needed."""
    variable: tuple[str, ...] = ()
    domain: Literal["integer", "rational", "real", "complex"] = "real"
    expect: str | None = None
    """The expected answer; the agent never sees it."""
    kind: Literal["exact", "integer", "expression"] | None = None
    """How `expect` is compared; by default integers as integers and anything else as a mathematical expression."""
    family: str | None = None
    """The question and the check of a task family's item."""
    level: int = Field(default=0, ge=0)
    item: int = Field(default=0, ge=0, lt=2**60)
    """Which item of the family, counted over the seeds that belong to jobs."""
    spec: dict[str, Any] | str | None = None
    """A program's tests, as `assay check code --spec` reads them, or any other spec with its `kind`."""
    claim: str | None = None
    """A claim for the SMT solvers, as `assay check smt --claim` reads it."""
    statement: str | None = None
    """A statement in Lean that is to be proved."""
    checklist: str | None = None
    """What a text must have, as `assay check checklist --spec` reads it."""
    file: tuple[str, ...] = ()
    """Files that the agent finds in its folder."""
    attempts: int | None = Field(default=None, ge=1, le=1024)
    seed: int = 0
    priority: int = Field(default=5, ge=0, le=9)
    deadline: str | datetime | None = None
    """A time in ISO 8601, or a span from now: `2h`, `1d12h`."""
    budget: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Seconds of work, over all attempts."""

    @field_validator("spec", mode="after")
    @classmethod
    def _is_known(cls, spec: dict[str, Any] | str | None) -> dict[str, Any] | str | None:
        """What is wrong with a table is said where its file's name is said. Programs are read with their values."""
        if isinstance(spec, dict) and spec.get("kind", "program") != "program":
            try:
                SPEC.validate_python(spec)
            except ValidationError as error:
                raise ValueError(first_fault(error)) from None
        return spec

    def to_submission(self) -> SubmitJob:
        """Of a request that names no files. Raises what `prepared` raises."""
        return self.prepared(Path(), datetime.now().astimezone()).submission

    def prepared(self, folder: Path, now: datetime) -> Prepared:
        """Reads the files that are named, from `folder`; `now` has a zone. Raises RequestError, or SpecError, when the
        flags contradict each other or a file is none. Without any check, the daemon says what to add."""
        ways = [name for name in WAYS if getattr(self, name) is not None]
        if len(ways) > 1:
            raise RequestError(f"{' and '.join(ways)} both say how the answer is checked", hint="keep one of them")
        question, spec = self.question, None
        if self.family is not None:
            question, spec = self._family_item(self.family)
        elif ways:
            spec = self._spec(ways[0], folder)
            question = question_for(spec, question)
        if question is None:
            raise RequestError("there is no question", hint="add --question TEXT, or `question` to the file")
        files = JobContents(folder, self.file)
        submission = SubmitJob(
            question=question,
            spec=spec,
            files=files.records,
            attempts=self.attempts,
            seed=self.seed,
            priority=self.priority,
            deadline=deadline_of(self.deadline, now),
            budget_seconds=self.budget,
        )
        return Prepared(submission, files.contents)

    def _spec(self, way: str, folder: Path) -> Spec:
        given: dict[str, Callable[[], Spec]] = {
            "check": self._predicate,
            "expect": self._expected,
            "spec": lambda: self._own_spec(folder),
            "claim": lambda: spec_in("smt", folder, self.claim or "", "--claim"),
            "statement": lambda: spec_in("lean", folder, self.statement or "", "--statement"),
            "checklist": lambda: spec_in("checklist", folder, self.checklist or "", "--checklist"),
        }
        try:
            return given[way]()
        except ValidationError as error:
            raise RequestError(f"the check cannot be used: {first_fault(error)}", hint="see docs/jobs.md") from error

    def _predicate(self) -> Spec:
        if len(self.variable) > 1:
            raise RequestError("a check has one variable", hint="name the one that stands for the answer")
        variable = self.variable[0] if self.variable else "x"
        return PredicateSpec(predicate=self.check or "", variable=variable, domain=self.domain)

    def _expected(self) -> Spec:
        text = self.expect or ""
        kind = self.kind or ("integer" if re.fullmatch(r"-?\d{1,2000}", text) else "expression")
        if kind == "integer":
            return IntegerSpec(expected=text)
        if kind == "exact":
            return ExactSpec(expected=text)
        return ExpressionSpec(expected=text, variables=self.variable)

    def _own_spec(self, folder: Path) -> Spec:
        if isinstance(self.spec, str):
            table = table_of(text_in(folder, self.spec, "--spec").encode(), self.spec)
        else:
            table = dict(self.spec or {})
        if table.get("kind", "program") == "program":
            return program_of(table)
        return SPEC.validate_python(table)

    def _family_item(self, family: str) -> tuple[str, Spec]:
        from curriculum.errors import CurriculumError
        from curriculum.registry import make_task
        from curriculum.seeds import seeds
        from curriculum.task import Split

        if self.question is not None:
            raise RequestError("a family brings its own question", hint="leave out either --question or --family")
        try:
            task = make_task(family, self.level, next(seeds(Split.JOB, self.item)), Split.JOB)
        except CurriculumError as error:
            raise RequestError(str(error), hint=error.hint) from error
        return task.prompt, task.spec


def read_request(content: bytes, name: str) -> JobRequest:
    """A job from TOML. Raises RequestError; `name` is the file's, for the message."""
    if len(content) > MAX_FILE_BYTES:
        raise RequestError(f"{name} is larger than {MAX_FILE_BYTES} bytes", hint="a job is a question and a check")
    try:
        return JobRequest.model_validate(table_of(content, name))
    except ValidationError as error:
        raise RequestError(f"{name}: {first_fault(error)}", hint="see docs/jobs.md for the keys of a job") from error


def table_of(content: bytes, name: str) -> dict[str, Any]:
    """Raises RequestError for what is no TOML."""
    try:
        return read_toml(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RequestError(f"{name} is not UTF-8 text: {error.reason}", hint="save it as UTF-8") from error
    except TomlError as error:
        raise RequestError(f"{name} is not TOML: {error}", hint='write lines like: question = "..."') from error


def first_fault(error: ValidationError) -> str:
    """The first thing that pydantic found, as `where: what`, without the value itself."""
    fault = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in fault["loc"])
    what = WORDS.get(fault["type"]) or str(fault["msg"])
    if fault["type"] == "extra_forbidden" and (near := get_close_matches(where, JobRequest.model_fields, 1)):
        what += f"; did you mean {near[0]}?"
    return f"{where}: {what}" if where else what

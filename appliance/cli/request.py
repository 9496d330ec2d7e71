"""From flags or a TOML file to a job: the question, and what its answer is checked against.

    question = "find x with 7x+3=45"      question = "gcd of 12 and 18?"     question = "double x + 1"
    check = "7*x+3 == 45"                 expect = "6"                       [spec]
                                                                             kind = "expression"
                                                                             expected = "2*x + 2"
                                                                             variables = ["x"]

The keys of a file are the names of the flags; any other is an error. Exactly one of `check`, `expect`, `family` and
`spec` says how the answer is checked.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from appliance.client import ExactSpec, ExpressionSpec, IntegerSpec, PredicateSpec, Spec, SubmitJob

MAX_FILE_BYTES = 1_000_000


class RequestError(Exception):
    """What was asked for cannot be understood; `hint` says what to write instead."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


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
    spec: Spec | None = None
    attempts: int | None = Field(default=None, ge=1, le=1024)
    seed: int = 0

    def to_submission(self) -> SubmitJob:
        """Raises RequestError when the flags contradict each other. Without any check, the daemon says what to add."""
        question, spec = self.question, self.spec
        ways = [name for name in ("check", "expect", "family", "spec") if getattr(self, name) is not None]
        if len(ways) > 1:
            raise RequestError(f"{' and '.join(ways)} both say how the answer is checked", hint="keep one of them")
        if self.family is not None:
            question, spec = self._family_item(self.family)
        elif question is None:
            raise RequestError("there is no question", hint="add --question TEXT, or `question` to the file")
        else:
            spec = self._spec()
        return SubmitJob(question=question, spec=spec, attempts=self.attempts, seed=self.seed)

    def _spec(self) -> Spec | None:
        try:
            if self.check is not None:
                if len(self.variable) > 1:
                    raise RequestError("a check has one variable", hint="name the one that stands for the answer")
                variable = self.variable[0] if self.variable else "x"
                return PredicateSpec(predicate=self.check, variable=variable, domain=self.domain)
            if self.expect is not None:
                return self._expected(self.expect)
        except ValidationError as error:
            raise RequestError(f"the check cannot be used: {first_fault(error)}", hint="see docs/cli.md") from error
        return self.spec

    def _expected(self, text: str) -> Spec:
        kind = self.kind or ("integer" if re.fullmatch(r"-?\d{1,2000}", text) else "expression")
        if kind == "integer":
            return IntegerSpec(expected=text)
        if kind == "exact":
            return ExactSpec(expected=text)
        return ExpressionSpec(expected=text, variables=self.variable)

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
        table: dict[str, Any] = tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise RequestError(f"{name} is not UTF-8 text: {error.reason}", hint="save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise RequestError(f"{name} is not TOML: {error}", hint='write lines like: question = "..."') from error
    try:
        return JobRequest.model_validate(table)
    except ValidationError as error:
        raise RequestError(f"{name}: {first_fault(error)}", hint="see docs/cli.md for the keys of a job") from error


def first_fault(error: ValidationError) -> str:
    """The first thing that pydantic found, as `where: what`, without the value itself."""
    fault = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in fault["loc"])
    return f"{where}: {fault['msg']}" if where else str(fault["msg"])

"""A kind of check as one object: everything that anybody asks of it, in one place.

What always holds: making or importing a `Kind` imports nothing heavy, not even its spec. What is heavy is named as
`module:attribute` and is imported when it is first asked for (`Lazy`). Each kind is made in `verifiers/<kind>/kind.py`
and has one row in `verifiers.registry.KINDS`; nobody else has to know how many kinds there are.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from importlib import metadata
from pathlib import Path
from random import Random
from typing import Any, Generic, Literal, TypeVar, cast

T = TypeVar("T")


class AnswerForm(StrEnum):
    """How the final answer of a conversation is marked in its last turn."""

    BOXED = "boxed"
    r"""What stands in the one `\boxed{...}`."""
    BLOCK = "block"
    """The content of the one fenced code block, which is closed and not empty; what stands around it is not read."""
    WHOLE = "whole"
    """All of the last turn, but for blanks around it."""
    WORLD = "world"
    """What the world of the task's environment submits when the conversation has ended."""


@dataclass(frozen=True)
class Lazy(Generic[T]):
    """Names something as `module:attribute` and imports it when it is first asked for."""

    reference: str

    def load(self) -> T:
        """Raises ImportError or AttributeError where there is no such thing."""
        return cast(T, getattr(importlib.import_module(self.module), self.reference.partition(":")[2]))

    @property
    def module(self) -> str:
        return self.reference.partition(":")[0]


@dataclass(frozen=True, kw_only=True)
class KindOption:
    """One option of the command line for a kind."""

    flag: str
    """With its dashes: `--gold`."""
    help: str
    sets_field: str = ""
    """Where what it sets is not called like the flag; see `field`."""
    takes: Literal["text", "texts", "file", "folder", "nothing"] = "text"
    """`texts`: repeatable. `file`: the name of a file of text, `-` for standard input; the field is its content."""
    metavar: str = ""
    sets: str = ""
    """What the field is set to, for an option that takes nothing."""
    asked: Lazy[Callable[[str], Mapping[str, Any]]] | None = None
    """From the field's text in a line of pairs to what it says of its own spec. It may raise SpecError."""
    read: Lazy[Callable[[str, Path], Any]] | None = None
    """From a file's text, and the folder that it lies in, to the spec. It may raise SpecError."""

    @property
    def field(self) -> str:
        """Of the spec that it sets; of an option that is not about the spec, the keyword of `Checker`."""
        return self.sets_field or self.flag.removeprefix("--").replace("-", "_")


@dataclass(frozen=True, kw_only=True)
class SubmissionOption:
    """How `assay check` is given what is checked."""

    flag: str = "--submission"
    takes: Literal["text", "file"] = "file"
    metavar: str = "FILE"
    help: str = "What is checked, a file; `-` for standard input."
    key: str = "submission"
    """Its name in a line of a file of pairs."""
    default: Lazy[Callable[[Any], str | None]] | None = None
    """From a spec to what is submitted where nothing has to be given; None where something has."""


@dataclass(frozen=True)
class RetiredKind:
    """A kind of an earlier version, whose specs are read as those of another."""

    rewrite: Lazy[Callable[[dict[str, Any]], dict[str, Any]]]
    """From the data of such a spec to that of the kind which took its place."""
    fields: tuple[str, ...]
    """That such a spec had beside its kind: a signature over one is about these."""


def letters_and_a_number(rng: Random) -> str:
    letters = "".join(rng.choice("abcdefghijklmnopqrstuvwxyz ") for _ in range(24))
    return f"{letters} {rng.randrange(10**9)}"


def never(_spec: Any) -> bool:
    return False


def always(_spec: Any) -> bool:
    return True


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """Everything that anybody asks of one kind of check. Specs given to its functions are of its own class."""

    name: str
    """The `kind` of its specs."""
    about: str
    """One line for people: what `assay check` asks, and what its exit codes mean."""
    job: str = "question"
    """What people call a job with such a check: question, claim, theorem, program, text."""

    # the spec

    spec: Lazy[type[Any]]
    """Its class, a `verifiers.registry.spec.SpecModel`."""
    retired: Mapping[str, RetiredKind] = field(default_factory=dict)
    """Kinds of earlier versions that are read as this one, by name."""

    # deciding

    verifier: Lazy[type[Any]]
    revision: str
    """Of the verifier: changes whenever the same input might give another verdict."""
    tools: tuple[tuple[str, str], ...] = ()
    """Name and distribution of each tool that has a part in a verdict; their versions belong to the verifier's."""
    seconds: float = 5.0
    """Usual time of one check, of its own."""
    runs: bool = False
    """Whether submissions are executed, and so need a broker."""
    preload: str = ""
    """The package that a worker imports before it decides one; empty where it is light, or no worker decides."""
    light: Callable[[Any], bool] = never
    """Whether a spec needs nothing of that package."""
    conducted: Callable[[Any], bool] = never
    """Whether more is needed than a worker that reads the text: a sandbox, a toolchain, a model."""
    conductor: Lazy[Callable[[Any], Any]] | None = None
    """Makes the `verifiers.boxes.conductor.Conductor` of those from `ConductorParts`."""
    check: Lazy[Callable[[Any], None]] | None = None
    """Raises SpecError for a spec that cannot decide anything; the verifier's own `check` where it is None."""
    missing: Lazy[Callable[[], str]] | None = None
    """Says why none can be decided on this machine, in a sentence; empty where one can. None where one always can."""
    probe: str = ""
    """A submission that never passes, put to the verifier before a job's first attempt: for kinds whose specs can be
    found to be unusable only where submissions run."""

    # people

    explain: Lazy[Callable[[Any], Any]]
    """The spec in words, line by line; a line that begins with blanks belongs to the one before it."""
    parts: Lazy[Callable[[Any, Any], Any]]
    """From a spec and a verdict that passed to what the verdict carries, and what it says nothing about."""
    examples: Lazy[Callable[[Any, str | None, Any], Any]]
    """From a spec, an answer if there is one, and a way to ask the verifier to an `ExampleReport`."""
    examples_seconds: tuple[float, float] = (10.0, 5.0)
    """For all examples together, and for one."""
    examples_at_once: int = 8

    # the agent

    answer_form: Callable[[Any], AnswerForm] = lambda _spec: AnswerForm.BOXED
    asks_for: Callable[[Any], str] = lambda _spec: ""
    """The sentence that tells an agent how to mark its answer; empty where that is a box as always."""
    question: Lazy[Callable[[Any, str | None], str | None]] | None = None
    """From a spec and what a person asked to the question of a job; None where a person has to say it."""
    solvers: Lazy[Callable[[Any, str, bool], Any]] | None = None
    """From a spec, its question and whether files came with it to the cheap solvers that might answer it."""
    proposers: Mapping[str, Lazy[Callable[..., Any]]] = field(default_factory=dict)
    """Ways to propose answers in the worker that decides texts, those that tell most first."""

    # the self-test

    suffix: str = ""
    """Of the files with the submissions of its canaries."""
    random_answer: Callable[[Random], str] = letters_and_a_number
    """What an agent submits that does not know what is asked."""
    visible: Lazy[Callable[[Any], str]] | None = None
    """What whoever answers is shown of a spec, as far as the spec itself holds it."""

    # the command line

    assess: Lazy[Callable[..., Any]] | None = None
    """From `ConductorParts`, a spec, a right submission or nothing, and seconds to whether the spec tells right from
    wrong: `sound`, `reason` and `lines()`. None where nothing is there to assess."""
    example: str = ""
    """One command line that works, for its help."""
    command: str = ""
    """Of `assay check`; the kind's name where it is empty."""
    options: tuple[KindOption, ...] = ()
    """Of that command, for the spec."""
    checker_options: tuple[KindOption, ...] = ()
    """Of that command, for the checker: a toolchain, a judge."""
    submission: SubmissionOption = SubmissionOption()
    spec_file: Lazy[Callable[[str, Path], Any]] | None = None
    """From the text of a `--spec` file, and its folder, to a spec; TOML with the fields' own names where it is None."""
    spec_table: Lazy[Callable[[dict[str, Any]], Any]] | None = None
    """From a table of TOML to a spec, where such a table may hold more than the spec's own fields."""
    submit: tuple[KindOption, ...] = ()
    """Of `assay submit`: the first one says how the answer is checked."""
    batch: int = 1
    """Pairs of a file that are asked about together."""

    @property
    def package(self) -> str:
        """The folder that it lies in, as it is imported."""
        return self.spec.module.rpartition(".")[0]

    @cached_property
    def version(self) -> str:
        """Of the verifier, with those of its tools that are installed."""
        return "+".join([self.revision, *(f"{name}{found}" for name, found in self.tool_versions.items())])

    @cached_property
    def tool_versions(self) -> dict[str, str]:
        found = {}
        for name, distribution in self.tools:
            try:
                found[name] = metadata.version(distribution)
            except metadata.PackageNotFoundError:
                continue
        return found

"""`Kind` describes one kind of check: its spec, verifier, examples, command-line options and canaries.

Invariants: creating or importing a `Kind` imports nothing heavy, not even its spec. Heavy objects are named as
`module:attribute` and imported on first use (`Lazy`). Each kind is defined in `verifiers/<kind>/kind.py` and has one
row in `verifiers.registry.KINDS`; no other code enumerates the kinds.
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
IN_A_BOX = "End with the answer in one \\boxed{}."
"""Sentence that asks for the usual mark of an answer."""


class AnswerForm(StrEnum):
    """Markup of the final answer in the last turn of a conversation."""

    BOXED = "boxed"
    r"""Content of the single `\boxed{...}`."""
    BLOCK = "block"
    """Content of the single fenced code block, closed and not empty; text around it is ignored."""
    WHOLE = "whole"
    """The whole last turn, stripped of surrounding white space."""
    WORLD = "world"
    """Submission made by the task's environment at the end of the conversation."""


@dataclass(frozen=True)
class Lazy(Generic[T]):
    """Reference `module:attribute`, imported on first use."""

    reference: str

    def load(self) -> T:
        """Imports the object that the reference names. Raises ImportError or AttributeError if it does not exist."""
        return cast(T, getattr(importlib.import_module(self.module), self.reference.partition(":")[2]))

    @property
    def module(self) -> str:
        return self.reference.partition(":")[0]


@dataclass(frozen=True, kw_only=True)
class KindOption:
    """One command-line option that a kind of spec adds."""

    flag: str
    """Option name with dashes: `--gold`."""
    help: str
    sets_field: str = ""
    """Name of the field it sets, if it differs from the flag; see `field`."""
    takes: Literal["text", "texts", "file", "folder", "nothing"] = "text"
    """`texts`: repeatable. `file`: path of a text file, `-` for standard input; the field gets its content."""
    metavar: str = ""
    sets: str = ""
    """Value of the field, for an option that takes no argument."""
    asked: Lazy[Callable[[str], Mapping[str, Any]]] | None = None
    """Maps the field's text in a line of pairs to spec fields. May raise SpecError."""
    read: Lazy[Callable[[str, Path], Any]] | None = None
    """Maps a file's text and its folder to the spec. May raise SpecError."""

    @property
    def field(self) -> str:
        """Name of the spec field that the option sets; for a checker option, the keyword of `Checker`."""
        return self.sets_field or self.flag.removeprefix("--").replace("-", "_")


@dataclass(frozen=True, kw_only=True)
class SubmissionOption:
    """Command-line option of `assay check` for the submission."""

    flag: str = "--submission"
    takes: Literal["text", "file"] = "file"
    metavar: str = "FILE"
    help: str = "The submission, a file; `-` for standard input."
    key: str = "submission"
    """Name of the submission in a line of a file of pairs."""
    default: Lazy[Callable[[Any], str | None]] | None = None
    """Returns the default submission of a spec, or None if one must be given."""


def letters_and_a_number(rng: Random) -> str:
    letters = "".join(rng.choice("abcdefghijklmnopqrstuvwxyz ") for _ in range(24))
    return f"{letters} {rng.randrange(10**9)}"


def never(_spec: Any) -> bool:
    return False


def always(_spec: Any) -> bool:
    return True


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """One kind of check. The functions that take a spec expect this kind's own spec class."""

    name: str
    """Value of `kind` in its specs."""
    about: str
    """One line for people: the question that `assay check` answers, and its exit codes."""
    job: str = "question"
    """Noun for a job with such a check: question, claim, theorem, program, text."""

    # the spec

    spec: Lazy[type[Any]]
    """Spec class, a subclass of `SpecModel`."""

    # deciding

    verifier: Lazy[type[Any]]
    revision: str
    """Verifier revision: changes whenever the same input might get another verdict."""
    tools: tuple[tuple[str, str], ...] = ()
    """Name and distribution of each tool that affects a verdict; their versions are part of `version`."""
    seconds: float = 5.0
    """Usual time limit of one check, in seconds."""
    runs: bool = False
    """True if submissions are executed, which requires a broker."""
    tests_decide: bool = False
    """True if a pass rests on tests alone, never on a proof."""
    preload: str = ""
    """Package that a worker imports before its first check; empty if it is light, or if no worker decides."""
    light: Callable[[Any], bool] = never
    """True if a spec needs nothing of the `preload` package."""
    conducted: Callable[[Any], bool] = never
    """True if a spec needs more than a text worker: a sandbox, a toolchain, a model."""
    conductor: Lazy[Callable[[Any], Any]] | None = None
    """Builds the `verifiers.boxes.conductor.Conductor` for such specs from `ConductorParts`."""
    check: Lazy[Callable[[Any], None]] | None = None
    """Raises SpecError for a spec that cannot decide anything; None: the verifier's own `check`."""
    missing: Lazy[Callable[[], str]] | None = None
    """Returns the reason why this machine cannot check this kind, empty if it can; None if every machine can."""
    probe: str = ""
    """Submission that never passes, checked before a job's first attempt. For kinds whose specs can turn out unusable
    only when a submission runs."""

    # people

    explain: Lazy[Callable[[Any], Any]]
    """Describes the spec in words, line by line; an indented line continues the one before."""
    parts: Lazy[Callable[[Any, Any], Any]]
    """Maps a spec and a passing verdict to the parts of the statement it covers, and those it does not."""
    examples: Lazy[Callable[[Any, str | None, Any], Any]]
    """Maps a spec, an optional answer and a way to ask the verifier to an `ExampleReport`."""
    examples_seconds: float = 5.0
    """Time limit of one example, in seconds."""
    examples_tries: int = 300
    """Maximum number of examples that are tried."""
    examples_at_once: int = 8

    # the agent

    answer_form: Callable[[Any], AnswerForm] = lambda _spec: AnswerForm.BOXED
    asks_for: Callable[[Any], str] = lambda _spec: IN_A_BOX
    """Sentence that tells a model how to mark its answer; empty if the world submits it."""
    question: Lazy[Callable[[Any, str | None], str | None]] | None = None
    """Maps a spec and a person's request to the question of a job; None if a person must write the question."""
    solvers: Lazy[Callable[[Any, str, bool], Any]] | None = None
    """Maps a spec, its question and whether files came with it to applicable cheap solvers."""
    proposers: Mapping[str, Lazy[Callable[..., Any]]] = field(default_factory=dict)
    """Proposal methods that run in the text worker, most informative first."""

    # the self-test

    suffix: str = ""
    """File name suffix of its canary submissions."""
    random_answer: Callable[[Random], str] = letters_and_a_number
    """Random submission of an agent that does not know the question."""
    visible: Lazy[Callable[[Any], str]] | None = None
    """Returns the part of a spec that the answerer is shown."""

    # the command line

    assess: Lazy[Callable[..., Any]] | None = None
    """Checks that a spec accepts right and rejects wrong submissions: `sound`, `reason` and `lines()`. Takes
    `ConductorParts`, a spec, a right submission or an empty text, and seconds. None if the kind needs no assessment."""
    example: str = ""
    """Working command line, for its help."""
    command: str = ""
    """Subcommand of `assay check`; defaults to the kind's name."""
    options: tuple[KindOption, ...] = ()
    """Options of that subcommand that set spec fields."""
    checker_options: tuple[KindOption, ...] = ()
    """Options of that subcommand for the checker: a toolchain, a judge."""
    submission: SubmissionOption = SubmissionOption()
    spec_file: Lazy[Callable[[str, Path], Any]] | None = None
    """Parses the text of a `--spec` file, given its folder; None: TOML with the spec's own fields."""
    spec_table: Lazy[Callable[[dict[str, Any]], Any]] | None = None
    """Parses a TOML table into a spec, where the table may have more than the spec's own fields."""
    submit: tuple[KindOption, ...] = ()
    """Options of `assay submit`; the first one selects this kind."""
    batch: int = 1
    """Number of pairs of a file that are checked together."""

    @property
    def package(self) -> str:
        """Package of this kind of verifier, as a dotted module name."""
        return self.spec.module.rpartition(".")[0]

    @cached_property
    def version(self) -> str:
        """Verifier revision with the versions of its installed tools."""
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

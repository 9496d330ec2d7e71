"""Taskset of an owner's rows. It is data: a worker reads it and gets a catalog that contains it.

Invariants: the digest is that of the rows, in order, and a file with other rows is not used; a task of a split comes
from a row of that split.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from random import Random

from pydantic import Field

from common.bounded_models import InvalidInputError, read_model
from common.strict_json import Bounds, NotJsonError
from curriculum.catalog import Catalog
from curriculum.contract.environment import NeedsPackages
from curriculum.contract.errors import CurriculumError, ExhaustedError
from curriculum.contract.task import Split, asked
from curriculum.contract.taskset import TaskDraft, require_level
from curriculum.contract.topics import IMPOSSIBLE, never_met
from curriculum.environments import ENVIRONMENTS
from curriculum.environments.terminal.environment import CONTAINER
from curriculum.names import NAME, OWN
from curriculum.own.rows import LEVELS, OwnRow
from runtime.model import FrozenModel
from verifiers.contract.errors import SpecError
from verifiers.contract.kinds import AnswerForm
from verifiers.files.spec import FilesSpec
from verifiers.lean import toolchain
from verifiers.lean.spec import LeanSpec
from verifiers.programs.data.compare import CompareRule
from verifiers.programs.data.values import arguments_text, read_arguments
from verifiers.programs.plan import generated, stdin_of
from verifiers.programs.spec import LITERAL_CHARS, Example, ProgramSpec, Run
from verifiers.registry import check_spec, kind_of
from verifiers.registry.spec import Spec

MOST_TESTS = 50
GENERATED = 5
"""Inputs generated in place of those of a reference or properties, which are removed: they give away results."""


def contradicted(draft: TaskDraft, number: int) -> Spec:
    """Returns a spec that no honest answer passes: wrong test results, a false statement, or a twenty-digit number."""
    made: Spec
    if isinstance(draft.spec, ProgramSpec):
        made = _other_results(draft.spec, IMPOSSIBLE + number)
    elif isinstance(draft.spec, LeanSpec):
        wrong = IMPOSSIBLE + number
        made = draft.spec.model_copy(update={"statement": f"theorem target : {wrong} + 1 = {wrong} := sorry\n"})
    else:
        return never_met(draft, number)
    try:
        check_spec(made)
    except SpecError:
        return never_met(draft, number)
    return made


def _other_results(spec: ProgramSpec, first: int) -> ProgramSpec:
    """Returns a program's spec with the same calls or runs, each with a unique, unrelated result."""
    examples = [Example(arguments=one, expected=repr(first + at)) for at, one in enumerate(_calls(spec))]
    runs = [
        one.model_copy(update={"expected": str(first + at), "visible": False}) for at, one in enumerate(_runs(spec))
    ]
    nothing = {
        "reference": "",
        "generate": 0,
        "properties": (),
        "relations": (),
        "maker": "",
        "cases": (),
        "slack": 0.0,
    }
    compared = {"compare": CompareRule(), "output": "lines"}  # a tolerance may treat two results as equal
    return spec.model_copy(update={"examples": tuple(examples), "runs": tuple(runs), **nothing, **compared})


def _calls(spec: ProgramSpec) -> list[str]:
    """Returns the distinct arguments that a program is tested with: equal ones cannot have two results."""
    told = [read_arguments(one.arguments) for one in spec.examples]
    given = generated(spec, count=GENERATED) if spec.function and spec.generate else []
    found = dict.fromkeys(map(arguments_text, [*told[:MOST_TESTS], *given]))
    return [text for text in found if len(text) <= LITERAL_CHARS]


def _runs(spec: ProgramSpec) -> Iterator[Run]:
    yield from spec.runs[:MOST_TESTS]
    given = generated(spec, count=GENERATED) if spec.generate and not spec.function else []
    yield from (Run(stdin=text) for text in map(stdin_of, given) if len(text) <= LITERAL_CHARS)


MOST_ROWS = 100_000
MOST_BYTES = 64 << 20
"""Size limit of a stored taskset, in bytes."""
BOUNDS = Bounds(MOST_BYTES, values=20 * MOST_ROWS, containers=4 * MOST_ROWS)
FORM_ROWS = 5_000
"""Rows from which forms are detected: text that few of them share is not a form."""


class OwnContent(FrozenModel):
    """Stored form of an owner's taskset."""

    name: str = Field(pattern=rf"^{NAME}$")
    """Name without `own/`."""
    licence: str = Field(default="", max_length=500)
    source: str = Field(default="", max_length=2_000)
    added: str
    digest: str = ""
    """SHA-256 of the rows."""
    rows: tuple[OwnRow, ...] = Field(min_length=1, max_length=MOST_ROWS)

    def rows_digest(self) -> str:
        rows = [row.model_dump(mode="json") for row in self.rows]
        return hashlib.sha256(json.dumps(rows, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@dataclass(frozen=True)
class OwnTaskset:
    """Taskset of an owner's rows; implements `Taskset`, `Finite` and `Described`."""

    content: OwnContent

    @property
    def name(self) -> str:
        return f"{OWN}/{self.content.name}"

    @property
    def version(self) -> int:
        return int(self.content.digest[:8], 16)

    @property
    def level_count(self) -> int:
        return LEVELS

    @property
    def topics(self) -> Sequence[str]:
        return (self.name,)

    @property
    def null_answers(self) -> Sequence[str]:
        return ("0", "1", "I do not know.")

    @property
    def about(self) -> str:
        kinds = Counter(row.spec.kind for row in self.content.rows)
        splits = Counter(row.split.value for row in self.content.rows)
        listed = ", ".join(f"{count} {name}" for name, count in [*sorted(kinds.items()), *sorted(splits.items())])
        licence = self.content.licence or "no licence given"
        return f"The owner's problems: {listed}; from {self.content.source or 'a file'}; {licence}."

    @cached_property
    def _rows(self) -> dict[tuple[Split, int], list[OwnRow]]:
        found: dict[tuple[Split, int], list[OwnRow]] = {}
        for row in self.content.rows:
            found.setdefault((row.split, row.level), []).append(row)
        return found

    def draft(self, level: int, rng: Random) -> TaskDraft:
        """Draws one of the owner's training rows of that level. Raises LevelError, ExhaustedError."""
        return self.draft_of(Split.TRAIN, level, rng)

    def draft_of(self, split: Split, level: int, rng: Random) -> TaskDraft:
        """Draws an owner's row of that split and level; jobs get training rows. Raises LevelError, ExhaustedError."""
        require_level(self, level)
        rows = self._rows.get((Split.TRAIN if split is Split.JOB else split, level), [])
        if not rows:
            raise ExhaustedError(f"{self.name} has no {split.value} row of level {level}", hint="add more rows")
        return self._draft(rng.choice(rows))

    def keys(self, split: Split) -> AbstractSet[str]:
        return self._keys.get(split, frozenset())

    @cached_property
    def _keys(self) -> dict[Split, frozenset[str]]:
        return {split: frozenset(row.key for row in self.content.rows if row.split is split) for split in Split}

    def _draft(self, row: OwnRow) -> TaskDraft:
        sentence = kind_of(row.spec).asks_for(row.spec)
        needs = sentence and row.form is not AnswerForm.BOXED and sentence not in row.question
        return TaskDraft(
            topic=self.name,
            key=row.key,
            messages=asked(f"{row.question}\n{sentence}" if needs else row.question),
            spec=row.spec,
            answer=row.answer,
            form=row.form,
            files=row.files,
            environment=row.environment,
            world=row.world,
            tools=row.tools,
            turns=row.turns,
        )

    def forms(self) -> Iterator[str]:
        """Yields the texts of a fixed sample of the owner's rows, of all splits. Forms are detected from them
        (`curriculum.separation.rules`)."""
        for row in spread(self.content.rows):
            draft = self._draft(row)
            yield "\n".join([*(message.text for message in draft.messages), *draft.files.values()])

    @property
    def foreign(self) -> bool:
        """True if only a foreign program decides the answers of all rows."""
        specs = (row.spec for row in self.content.rows)
        return all(isinstance(spec, FilesSpec) and spec.only_foreign for spec in specs)

    def unsolvable(self, draft: TaskDraft, number: int) -> Spec:
        return contradicted(draft, number)

    def missing(self) -> str:
        if why := next(filter(None, map(_world_missing, self._worlds)), ""):
            return why
        lean = any(isinstance(row.spec, LeanSpec) for row in self.content.rows)
        return toolchain.missing() if lean else ""

    @property
    def packages(self) -> Sequence[str]:
        """Digests of the package sets that the taskset's worlds run: another set may make other worlds."""
        found: set[str] = set()
        for row in self._worlds:
            environment = ENVIRONMENTS.get(row.environment)
            installed = environment.packages(row.world) if isinstance(environment, NeedsPackages) else None
            found |= {installed.digest} if installed is not None else set()
        return sorted(found)

    @cached_property
    def _worlds(self) -> list[OwnRow]:
        """One row for each environment and package that the owner's rows use."""
        found: dict[tuple[str, str], OwnRow] = {}
        for row in self.content.rows:
            if row.environment != "python":
                named = str(row.world.get("package", row.world.get("packages", "")))
                found.setdefault((row.environment, named), row)
        return list(found.values())


def spread(rows: Sequence[OwnRow]) -> Sequence[OwnRow]:
    """Returns at most `FORM_ROWS` rows, evenly spaced."""
    return rows[:: -(-len(rows) // FORM_ROWS) or 1]


def forms_in(catalog: Catalog, names: Iterable[str]) -> Iterator[str]:
    """Yields sample texts (`OwnTaskset.forms`) of the owner's among the named tasksets. Raises UnknownTasksetError."""
    for one in map(catalog.named, names):
        if isinstance(one, OwnTaskset):
            yield from one.forms()


def _world_missing(row: OwnRow) -> str:
    environment = ENVIRONMENTS.get(row.environment)
    if environment is None:
        return f"unknown environment {row.environment[:40]!a}"
    if why := environment.missing():
        return why
    if isinstance(environment, NeedsPackages) and environment.packages(row.world) is None:
        again = "add its folders again" if row.environment == CONTAINER.name else "run `assay curriculum adapter ls`"
        return f"the packages of its {environment.name} world are not installed: {again}"
    return ""


def own_taskset(text: bytes, name: str) -> OwnTaskset:
    """Reads an owner's taskset from its stored file. Raises CurriculumError if it is invalid or was changed."""
    hint = f"remove it (`assay curriculum rm own/{name}`) and add its problems again"
    try:
        content = read_model(OwnContent, text, BOUNDS)
    except (NotJsonError, InvalidInputError) as error:
        raise CurriculumError(f"own/{name} cannot be read: {error}", hint=hint) from None
    if (content.name, content.digest) != (name, content.rows_digest()):
        raise CurriculumError(f"the rows of own/{name} were changed after they were added", hint=hint)
    return OwnTaskset(content)

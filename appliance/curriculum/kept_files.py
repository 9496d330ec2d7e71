"""Stores the held-out questions and demonstrations of each cycle, and collects them over cycles for filters and audits.

Invariants: a file is written once, atomically; sealed questions count only if their digest matches the ledger, so a
changed file proves nothing. Steps of training are in the ledger, and conversations have files of their own; these files
have what is drawn from a seed and would be lost after the night.

Questions in the cycles' own files are used as they are; for a cycle without a file the sealed set is regenerated from
its plan. A set that cannot be regenerated is left out, and an audit reports it.

The cycle's own training is included; it was drawn clear of the sealed questions, so the set is the same before and
after it. Later cycles are excluded, so a set can be regenerated. Tasks of steps are in the ledger, those of
demonstrations in files of their own, a teacher's in its conversation files. Recorded conversations are excluded: no
taskset generated them, and they have a filter of their own (`curriculum.separation.rules`).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from appliance.ledger.ledger import Ledger
from appliance.records.cycles import Cycle
from appliance.system.durable_file import sync_folder, write_new
from curriculum.catalog import Catalog
from curriculum.contract.errors import CurriculumError
from curriculum.contract.task import Split, Task
from curriculum.sealed import SealedSet, sealed_set
from curriculum.seeds import derive
from curriculum.separation.index import TrainedQuestions

_DIGEST = re.compile(r"[0-9a-f]{64}")
MOST_BYTES = 1 << 30
"""Maximum size of an unpacked file, in bytes."""


class KeptLesson(NamedTuple):
    """A demonstration as a model trained on it."""

    task: Task
    texts: tuple[str, ...]
    """Tool outputs."""


def keep_questions(data: Path, cycle: str, tasks: Iterable[Task]) -> None:
    """Writes the sealed and held-out questions of a cycle to its file, unless that exists."""
    _write(_file(data, cycle, "kept"), (task.model_dump_json() for task in tasks))


def kept_questions(data: Path, cycle: str) -> list[Task]:
    """Returns a cycle's stored sealed and held-out questions; empty if the file is missing or unreadable."""
    return [task for line in _lines(_file(data, cycle, "kept")) if (task := _task(line)) is not None]


def is_sealed_set(tasks: Sequence[Task], digest: str) -> bool:
    """True if the sealed questions among these tasks are the set that the ledger has under this digest."""
    return SealedSet(tuple(task for task in tasks if task.split is Split.SEALED), 0).digest == digest


def keep_lessons(data: Path, cycle: str, name: str, lessons: Iterable[KeptLesson]) -> None:
    """Writes the demonstrations that one part of a cycle trained on to a file, unless that exists."""
    lines = (json.dumps({"task": one.task.model_dump(mode="json"), "texts": one.texts}) for one in lessons)
    _write(_file(data, cycle, f"{name}.lessons"), lines)


def kept_lessons(data: Path, cycle: str) -> list[KeptLesson]:
    """Returns the demonstrations that a cycle trained on, from all its readable files."""
    return [one for lessons in lessons_by_part(data, cycle).values() for one in lessons or ()]


def lessons_by_part(data: Path, cycle: str) -> dict[str, list[KeptLesson] | None]:
    """Returns the demonstrations that each part of a cycle trained on, by the part's name; None for a file that is not
    fully readable."""
    end = ".lessons.jsonl.gz"
    files = sorted((data / FOLDER).glob(f"{cycle}.*{end}"))
    return {path.name.removeprefix(f"{cycle}.").removesuffix(end): _lessons(path) for path in files}


def _lessons(path: Path) -> list[KeptLesson] | None:
    lines = _read(path)
    if lines is None:
        return None
    try:
        values = [json.loads(line) for line in lines]
        return [KeptLesson(Task.model_validate(one["task"]), tuple(one["texts"])) for one in values]
    except (ValueError, TypeError, KeyError):
        return None


def conversation_tasks(data: Path, digest: str) -> list[Task]:
    """Returns the tasks from the file of verified conversations with this digest. Empty if the file is missing or does
    not match it."""
    if not _DIGEST.fullmatch(digest):
        return []
    try:
        content = (data / "traces" / digest).read_bytes()
    except OSError:
        return []
    if hashlib.sha256(content).hexdigest() != digest:
        return []
    return [Task.model_validate(json.loads(line)["task"]) for line in content.splitlines()]


FOLDER = "separation"
"""Folder below the data folder."""


def _file(data: Path, cycle: str, name: str) -> Path:
    return data / FOLDER / f"{cycle}.{name}.jsonl.gz"


def _write(path: Path, lines: Iterable[str]) -> None:
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    write_new(beside, gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))
    beside.replace(path)
    sync_folder(path.parent)


def _lines(path: Path) -> list[bytes]:
    return _read(path) or []


def _read(path: Path) -> list[bytes] | None:
    """Returns the lines of a compressed file; None for an unreadable or too large one, which proves nothing, as the
    audit then reports."""
    try:
        with gzip.open(path) as source:
            found = source.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        return None
    return found.splitlines() if len(found) <= MOST_BYTES else None


def _task(line: bytes) -> Task | None:
    try:
        return Task.model_validate_json(line)
    except ValueError:
        return None


NIGHTS = 30
"""Number of newest cycles whose questions new work must not copy."""


def recent_questions(data: Path, cycles: Iterable[Cycle], catalog: Catalog) -> list[Task]:
    """Returns the held-out questions of these cycles, each once, in the order of the cycles. A missing sealed set is
    regenerated if possible."""
    found: dict[str, Task] = {}
    for cycle in cycles:
        kept = kept_questions(data, cycle.id)
        if not any(task.split is Split.SEALED for task in kept):
            kept += _made_again(cycle, catalog)
        for task in kept:
            found.setdefault(task.id, task)
    return list(found.values())


def _made_again(cycle: Cycle, catalog: Catalog) -> list[Task]:
    recipe, tasksets = cycle.plan.get("recipe", {}), cycle.plan.get("tasksets")
    items = recipe.get("evaluation", {}).get("sealed_items")
    if not tasksets or not items:
        return []
    try:
        return list(sealed_set(items, derive("sealed", cycle.seed), tasksets=tasksets, catalog=catalog).tasks)
    except CurriculumError:
        return []  # one of its tasksets is gone


MOST_CYCLES = 100_000
RECORDED = "traces"
"""Taskset name of recorded conversations."""


def trained_until(ledger: Ledger, data: Path, cycle: str) -> TrainedQuestions:
    """Returns the generated tasks that models trained on up to and in this cycle. For a cycle that is not on record,
    all cycles count. Raises LedgerError."""
    known = ledger.cycles(MOST_CYCLES)
    names = [one.id for one in known]
    until = known[names.index(cycle) :] if cycle in names else known
    return TrainedQuestions(chain.from_iterable(_tasks_of(ledger, data, one) for one in until))


def _tasks_of(ledger: Ledger, data: Path, cycle: Cycle) -> Iterator[Task]:
    yield from map(Task.model_validate, ledger.step_tasks(cycle.id))
    yield from (one.task for one in kept_lessons(data, cycle.id))
    stages = (stage for name, stage in cycle.plan.items() if name.startswith("stage_") and isinstance(stage, dict))
    for digest in filter(None, (stage.get("traces") for stage in stages)):
        yield from (task for task in conversation_tasks(data, str(digest)) if task.taskset != RECORDED)

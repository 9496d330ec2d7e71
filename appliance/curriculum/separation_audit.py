"""Audits from the records that nothing trained on is a copy of any held-out question.

Invariants: nothing is changed; every trained task, tool result, conversation and demonstration is compared with the
sealed and held-out questions of all cycles, by id, key, text and near-duplicate (`curriculum.separation`). Each copy is
reported with the decision it affects (`appliance.curriculum.copy_bearing`); copies that affect none are listed and
leave the audit clean. What cannot be compared (a sealed set that is in no file and cannot be regenerated, pruned tool
results) is listed, and the audit is then not clean. Steps are read one by one and held-out questions `CHUNK` at a time,
so that neither has to fit into memory.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from pydantic import ValidationError

from appliance.curriculum.copy_bearing import CopyBearing, CopyJudge
from appliance.curriculum.kept_files import is_sealed_set, kept_questions, lessons_by_part, trained_until
from appliance.ledger.ledger import Ledger
from appliance.records.cycles import SEPARATION, Cycle
from appliance.records.record import Record
from appliance.records.rollouts import Purpose, Rollout
from appliance.records.training import RolloutFilter, StepRecord
from common.counting import counted
from curriculum.contract.errors import CurriculumError
from curriculum.contract.task import Split, Task
from curriculum.names import OWN
from curriculum.proposing.calculations import is_phrased
from curriculum.registry import TASKSETS
from curriculum.sealed import is_written, sealed_set
from curriculum.seeds import derive
from curriculum.separation.index import SeparationIndex, text_of
from curriculum.separation.rules import Check, Door, Match

CHUNK = 20_000
MOST_CYCLES = 100_000
PAGE = 500
"""Events or rollouts per read."""
SHOWN = 200
"""Maximum number of copies listed; the others are counted."""


class Copy(Record):
    """A trained item and the held-out question it copies. The text of neither is shown."""

    cycle: str
    where: str
    door: Door
    check: Check
    share: float
    kept: str
    """Id of the held-out task."""
    task: str
    taskset: str
    level: int
    bearing: CopyBearing
    evaluation: str = ""
    """Evaluation of the affected decision; empty if none."""
    candidate: str = ""
    """Model of the affected decision."""


class SeparationReport(Record):
    """Result of an audit for copied questions: the amounts it read, and the copies it found."""

    cycles: int
    sealed: int
    """Distinct questions of sealed sets; `held_out` counts likewise."""
    held_out: int
    tasks: int
    """Tasks trained on."""
    results: int
    """Tool results in training data."""
    conversations: int
    demonstrations: int
    met: int
    """Copies that count: within one cycle, or affecting a decision."""
    noted: int
    """Copies that affect no decision."""
    copies: tuple[Copy, ...]
    """Copies found, those that count first."""
    thrown_out: dict[str, int]
    """Items filtered out before training, by `door/check`."""
    unproved: tuple[str, ...]
    seconds: float

    @property
    def clean(self) -> bool:
        return not self.met and not self.unproved


class Learned(Record):
    """An item that a model trained on: a task, or the text of a conversation about it."""

    cycle: str
    where: str
    door: Door
    task: Task
    texts: tuple[str, ...] = ()
    """Texts of the conversation beside the task."""


def audit_separation(
    ledger: Ledger,
    data: Path,
    conversations: Callable[[Path], Sequence[tuple[Task, tuple[str, ...]]]],
    *,
    beside: Iterable[str] = (),
    clock: Callable[[], float] = time.monotonic,
    say: Callable[[str], object] = lambda text: None,
) -> SeparationReport:
    """Compares everything that models trained on with all held-out questions, and returns the copies found.

    `conversations` reads a file of verified conversations; `beside` are rows of the owner's tasksets, which reveal
    shared wording (`curriculum.separation.rules`); `say` receives progress. Raises LedgerError.
    """
    started = clock()
    cycles = ledger.cycles(MOST_CYCLES)[::-1]
    unproved: list[str] = []
    kept: dict[str, Task] = {}
    kept_in: dict[str, tuple[str, ...]] = {}
    bare: dict[str, str] = {}
    for cycle in cycles:
        tasks, without, lost = _kept_of(cycle, ledger, data)
        unproved += [
            f"the sealed set {digest[:12]} of {cycle.id} is in no file and cannot be regenerated" for digest in lost
        ]
        kept |= {task.id: task for task in tasks}
        for name in dict.fromkeys([*(task.id for task in tasks), *without]):
            kept_in[name] = (*kept_in.get(name, ()), cycle.id)
        bare |= dict.fromkeys(without, cycle.id)
    bare = {name: cycle for name, cycle in bare.items() if name not in kept}
    for name, count in Counter(bare.values()).items():
        unproved.append(f"{counted(count, 'question')} of {name}: only the id is known and was compared")
    read: Counter[str] = Counter()
    met: dict[tuple[str, str, str], Copy] = {}
    every, judge = list(kept.values()), CopyJudge(ledger, kept_in)
    forms = [*beside, *(text_of(task) for task in every if task.taskset.startswith(f"{OWN}/"))]
    for start in range(0, max(1, len(every)), CHUNK):
        index, counts = SeparationIndex(every[start : start + CHUNK], forms), Counter[str]()
        for one in _learned(cycles, ledger, data, conversations, unproved if start == 0 else []):
            counts.update(_counted(one))
            for match in _matches(one, index, bare):
                bearing, evaluation = judge.bearing(match.kept, one.cycle, kept.get(match.kept))
                copy = Copy(
                    cycle=one.cycle,
                    where=one.where,
                    door=one.door,
                    check=match.check,
                    share=round(match.share, 3),
                    kept=match.kept,
                    task=one.task.id,
                    taskset=one.task.taskset,
                    level=one.task.level,
                    bearing=bearing,
                    evaluation="" if evaluation is None else evaluation.id,
                    candidate="" if evaluation is None else evaluation.candidate.weights,
                )
                _add(met, copy)
            if sum(counts.values()) % PAGE == 0:
                say(f"{counts['tasks']} tasks, {counts['results']} results")
        read = counts
    copies = sorted(met.values(), key=lambda copy: not copy.bearing.counts)
    counting = sum(copy.bearing.counts for copy in copies)
    return SeparationReport(
        cycles=len(cycles),
        sealed=sum(task.split is Split.SEALED for task in every),
        held_out=sum(task.split is Split.VALIDATION for task in every),
        tasks=read["tasks"],
        results=read["results"],
        conversations=read["conversations"],
        demonstrations=read["demonstrations"],
        met=counting,
        noted=len(copies) - counting,
        copies=tuple(copies[:SHOWN]),
        thrown_out=_thrown_out(ledger),
        unproved=tuple(unproved),
        seconds=round(clock() - started, 3),
    )


def _add(met: dict[tuple[str, str, str], Copy], copy: Copy) -> None:
    """Adds a found copy to `met`, which keeps one per cycle, task and check, preferably one that counts."""
    where = (copy.cycle, copy.task, copy.check.value)
    if where not in met or (copy.bearing.counts and not met[where].bearing.counts):
        met[where] = copy


def _kept_of(cycle: Cycle, ledger: Ledger, data: Path) -> tuple[list[Task], set[str], list[str]]:
    """Returns a cycle's held-out questions, the ids of questions known by id alone, and the digests of lost sealed
    sets."""
    tasks = kept_questions(data, cycle.id)
    seed = derive("sealed", cycle.seed)
    named = {digest: one for digest, one in ledger.sealed_sets().items() if one.get("seed") == seed}
    evaluation = ledger.evaluation(f"{cycle.id}.evaluation")
    if evaluation is not None:
        named = {evaluation.sealed_set: named.get(evaluation.sealed_set, {"items": 0})}
    lost: list[str] = []
    if not any(is_sealed_set(tasks, digest) for digest in named):
        tasks = [task for task in tasks if task.split is not Split.SEALED]
        for digest, description in named.items():
            made = _made_again(cycle, digest, description, ledger, data)
            tasks += made
            lost += [] if made else [digest]
    ids: set[str] = set()
    if evaluation is not None:
        ids |= {item.task for item in evaluation.candidate.items}
    if cycle.kind != "evaluation":
        ids |= _validation_ids(cycle, ledger)
    return tasks, ids - {task.id for task in tasks}, lost


def _made_again(
    cycle: Cycle, digest: str, description: dict[str, str | int | float], ledger: Ledger, data: Path
) -> Sequence[Task]:
    """Regenerates a cycle's sealed questions from their seed; empty if their digest differs."""
    tasksets = tuple(cycle.plan.get("tasksets", ()))
    items, without = int(description["items"]), description.get("without what was trained in")
    exclude = frozenset[str]()
    if without:
        asked = map(Task.model_validate, ledger.step_tasks(str(without)))
        exclude = frozenset(key for task in asked for key in (f"task {task.id}", task.key) if key)
    if items < 1 or not tasksets or any(name not in TASKSETS for name in tasksets):
        return ()
    for divided, apart in ((True, True), (True, False), (False, False)):  # newest sampling scheme first
        trained = trained_until(ledger, data, cycle.id) if apart else None
        try:
            made = sealed_set(
                items, int(description["seed"]), exclude=exclude, tasksets=tasksets, divided=divided, trained=trained
            )
        except CurriculumError:
            continue
        if made.digest == digest:
            return made.tasks
    return ()


def _validation_ids(cycle: Cycle, ledger: Ledger) -> set[str]:
    found: set[str] = set()
    before: str | None = None
    while True:
        where = RolloutFilter(cycle=cycle.id, purpose=Purpose.VALIDATION, before=before)
        page = ledger.rollouts(where, limit=PAGE)
        found |= {one.rollout.task for one in page}
        if len(page) < PAGE:
            return found
        before = page[-1].rollout.id


def _learned(
    cycles: Sequence[Cycle],
    ledger: Ledger,
    data: Path,
    conversations: Callable[[Path], Sequence[tuple[Task, tuple[str, ...]]]],
    unproved: list[str],
) -> Iterator[Learned]:
    """Yields every item that the cycles trained on, one at a time. Adds what cannot be read to `unproved`."""
    for cycle in cycles:
        pruned = 0
        for number in ledger.recorded_steps(cycle.id):
            record = ledger.step(cycle.id, number)
            if record is not None:
                pruned += sum(_lost_results(one) for one in _trained(record))
                yield from _of_step(record)
        if pruned:
            unproved.append(f"the results of tools in {pruned} rollouts of {cycle.id} were pruned")
        for name, stage in cycle.plan.items():
            if name.startswith("stage_") and isinstance(stage, dict) and stage.get("traces"):
                try:
                    found = conversations(data / "traces" / str(stage["traces"]))
                except (OSError, ValueError, ValidationError) as error:
                    unproved.append(f"the conversations of {cycle.id}, {name}, cannot be read: {error}")
                    continue
                for task, texts in found:
                    yield Learned(cycle=cycle.id, where=name, door=Door.CONVERSATIONS, task=task, texts=texts)
        parts = lessons_by_part(data, cycle.id)
        for one in chain.from_iterable(lessons or () for lessons in parts.values()):
            yield Learned(cycle=cycle.id, where="demonstration", door=Door.STREAM, task=one.task, texts=one.texts)
        for name in sorted(_parts_of_demonstrations(cycle, ledger) | parts.keys()):
            if parts.get(name) is None:
                why = "cannot be read" if name in parts else "are in no file"
                unproved.append(f"the demonstrations of {cycle.id}, {name}, {why}")


def _parts_of_demonstrations(cycle: Cycle, ledger: Ledger) -> set[str]:
    """Returns the names of the cycle's parts that trained on generated demonstrations."""
    stages = enumerate(cycle.plan.get("stages", ()), 1)
    found = {
        f"stage-{number}"
        for number, stage in stages
        if stage.get("kind") == "sft" and stage.get("data") == "demonstrations" and f"stage_{number}" in cycle.plan
    }
    warm = any(one.stage == "warm_start" for one in ledger.checkpoints(cycle=cycle.id))
    return found | {"warm_start"} if warm else found


def _trained(record: StepRecord) -> Iterator[Rollout]:
    """Returns the rollouts of a training step that were trained on."""
    trained = {group.rollouts[place] for group in record.groups for place in group.kept}
    return (one.rollout for one in record.judged if one.rollout.id in trained)


def _lost_results(rollout: Rollout) -> bool:
    return rollout.pruned and (bool(rollout.calls) or not rollout.nodes)


def _of_step(record: StepRecord) -> Iterator[Learned]:
    tasks = {task.id: task for task in map(Task.model_validate, record.tasks)}
    texts: dict[str, list[str]] = {name: [] for name in tasks}
    for one in _trained(record):
        texts[one.task] += [text for call in one.calls for text in (call.output, call.error) if text]
    for name, task in tasks.items():
        yield Learned(
            cycle=record.cycle,
            where=f"step {record.step}",
            door=Door.STREAM,
            task=task,
            texts=tuple(dict.fromkeys(texts[name])),
        )


def _counted(one: Learned) -> dict[str, int]:
    of = {"demonstration": "demonstrations"}.get(one.where, "tasks")
    of = "conversations" if one.door is Door.CONVERSATIONS else of
    return {of: 1, "results": len(one.texts)}


def _matches(one: Learned, index: SeparationIndex, bare: dict[str, str]) -> Iterator[Match]:
    """Yields the held-out questions that a trained task or its conversation copies; by id alone if nothing else is
    known."""
    if one.task.id in bare:
        yield Match(one.task.id, Check.EXACT)
    ours = one.task.taskset in TASKSETS and not is_written(one.task.taskset)
    written = not (ours or is_phrased(one.task))
    if (match := index.met_by(one.task, written=written)) is not None:
        yield match
    own = text_of(one.task)
    found = (index.met_by_result(text, own) for text in one.texts)
    yield from (match for match in found if match is not None)


def _thrown_out(ledger: Ledger) -> dict[str, int]:
    found: Counter[str] = Counter()
    after = 0
    while page := ledger.events(after=after, limit=PAGE):
        after = page[-1][0]
        for _, event in page:
            if event.kind == SEPARATION:
                found.update({name: int(count) for name, count in event.figures.items()})
    return dict(sorted(found.items()))

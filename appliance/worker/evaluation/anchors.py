"""Asks the anchors tonight's sealed questions of their tasksets, with the seeds of candidate and champion.

Invariants: a taskset whose anchor is champion or candidate costs nothing, since their answers are there; a further
model is asked only the tasksets of which it is the anchor, once. An anchor that cannot be loaded answers nothing, which
holds the candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from appliance.curriculum.own_files import names_in
from appliance.curriculum.own_tasksets import catalog_in, read_own
from appliance.learning.errors import LearningError
from appliance.ledger.ledger import Ledger
from appliance.records.evaluations import ANCHOR, ANCHOR_RUN, ModelResults
from appliance.worker.evaluation.evaluate import EvalRun, evaluate
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.cycle_setup import CycleSetup, unusable
from curriculum.catalog import Catalog
from curriculum.contract.errors import CurriculumError
from curriculum.contract.task import Split
from curriculum.names import OWN
from curriculum.seeds import derive
from policies.gates import retention


def with_anchor(ledger: Ledger, cycle: str) -> tuple[str, ...]:
    """Returns the tasksets that have an anchor when this cycle begins."""
    earlier = next((one for one in ledger.evaluations(limit=2) if one.cycle != cycle), None)
    known = {*earlier.anchored, *(item.family for item in earlier.champion.items)} if earlier is not None else set()
    return tuple(sorted(family for family in known if ledger.alias(f"{ANCHOR}{family}") is not None))


@dataclass(frozen=True)
class OtherTasksets:
    """Tasksets with an anchor that a cycle evaluates, and does not train on."""

    names: tuple[str, ...]
    catalog: Catalog
    """The cycle's catalog with these."""
    not_askable: Mapping[str, str]
    """Tasksets that this machine cannot ask, each with the reason."""


def others_with_anchor(
    names: Sequence[str], catalog: Catalog, data: Path, certified: Mapping[str, str], model: Path | None
) -> OtherTasksets:
    """Divides tasksets that are not trained on into those that can be asked and the others."""
    reasons: dict[str, str] = {}
    own = [name for name in names_in(data) if name in catalog.tasksets]
    for name in names:
        if name.startswith(f"{OWN}/"):
            try:
                read_own(data, name)
                own.append(name)
            except CurriculumError as error:
                reasons[name] = str(error)
        elif name not in catalog.tasksets:
            reasons[name] = "this version has no such taskset"
    catalog = catalog_in(data, own) if names else catalog
    for name in names:
        if name not in reasons and (reason := unusable(name, certified, model, catalog)):
            reasons[name] = reason
    return OtherTasksets(tuple(name for name in names if name not in reasons), catalog, reasons)


def anchored_in(ledger: Ledger, champion: str, families: frozenset[str]) -> dict[str, str]:
    """Returns the anchor of each taskset: its alias, or the champion for one that never had an anchor."""
    return {family: ledger.alias(f"{ANCHOR}{family}") or champion for family in sorted(families)}


def rows_of(setup: CycleSetup) -> dict[str, int]:
    """Returns the number of sealed questions in existence, for each asked taskset of given questions."""
    asked = sorted({task.taskset for task in setup.sealed.tasks})
    finite = {name: setup.catalog.finite(name) for name in asked}
    return {name: len(taskset.keys(Split.SEALED)) for name, taskset in finite.items() if taskset is not None}


def answers_of_anchors(
    anchored: Mapping[str, str],
    there: frozenset[str],
    setup: CycleSetup,
    context: WorkContext,
    tell: Callable[[str], None],
) -> tuple[ModelResults, ...]:
    """Evaluates every anchor that is not `there` already, each on its own tasksets' questions."""
    if context.policy.gates.get(retention.GATE) is None:
        return ()
    asked = {task.taskset for task in setup.sealed.tasks}
    models = sorted({anchored[name] for name in asked if name in anchored} - there)
    found: list[ModelResults] = []
    for number, digest in enumerate(models, ANCHOR_RUN):
        tasks = [task for task in setup.sealed.tasks if anchored.get(task.taskset) == digest]
        model = context.ledger.checkpoint(digest)
        if model is None:
            tell(f"the anchor {digest[:12]} is not on record")
            continue
        seed = derive("exam", setup.seed)
        run = EvalRun(setup.cycle, model, setup.recipe.evaluation.temperature, number, seed)
        try:
            context.load(model)
        except LearningError as error:
            tell(f"the anchor {digest[:12]} cannot be loaded, so the candidate is held: {error}")
            continue
        results = evaluate(run, tasks, context)[0]
        right = sum(item.passed is True for item in results.items)
        tell(f"the anchor {digest[:12]}, sampled: {right} of {len(results.items)} right")
        found.append(results)
    return tuple(found)

"""State shared by all phases of a cycle: seed, recipe, tasksets in use, sealed questions.

Invariants: it depends only on the cycle's plan, the policy and the records of earlier cycles, so a resumed cycle draws
the same tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Literal

from appliance.learning.recipes.recipe import Recipe
from appliance.learning.training.distillation import TeacherScore
from appliance.ledger.ledger import Ledger
from appliance.rendering.formats import FILES, load_renderer
from appliance.rendering.guarded import GuardedTokenizer
from appliance.rendering.markers import only_python
from appliance.rendering.tools import mark_in, offered
from curriculum.catalog import Catalog
from curriculum.certification.certificate import made_by, shipped
from curriculum.certification.certify import drafts_of
from curriculum.contract.environment import BringsTools
from curriculum.contract.errors import CurriculumError
from curriculum.contract.task import Split, Task
from curriculum.environments import ENVIRONMENTS
from curriculum.own.taskset import forms_in
from curriculum.registry import BUILT_IN, key_of
from curriculum.sealed import SealedSet, TaskStream, is_written
from curriculum.seeds import derive
from curriculum.separation.index import SeparationIndex
from curriculum.separation.rules import Match
from policies.permissions import WHOLE, shares_of
from policies.policy import Policy

BY_ID = "task "
"""Prefix of task-id keys; other keys identify the question, independent of its wording."""


@dataclass(frozen=True)
class CycleSetup:
    """Seed, recipe, tasksets and sealed questions of one cycle."""

    cycle: str
    seed: int
    recipe: Recipe
    tasksets: tuple[str, ...]
    """Tasksets in use, in registry order."""
    sealed: SealedSet
    catalog: Catalog = BUILT_IN
    """Built-in tasksets, and the owner's that the recipe names."""
    earlier: tuple[Task, ...] = ()
    """Held-out questions of recent cycles: a model is never trained on them."""
    not_askable: Mapping[str, str] = field(default_factory=dict)
    """Tasksets with an anchor that this machine cannot ask, each with the reason."""

    @cached_property
    def watched(self) -> list[Task]:
        """Validation tasks by which training progress is measured."""
        return self.held_out(derive("watch", self.seed), self.recipe.training.watch_items)

    @cached_property
    def warm_start_watched(self) -> list[Task]:
        """Validation tasks by which the warm start's progress is measured."""
        return self.held_out(derive("warm start", self.seed), self.recipe.warm_start.validation_items)

    @cached_property
    def kept(self) -> SeparationIndex:
        """Index of questions that no generated task may copy: this cycle's sealed questions and validation tasks."""
        kept = [*self.sealed.tasks, *self.watched, *self.warm_start_watched]
        return SeparationIndex(kept, forms_in(self.catalog, self.tasksets))

    @cached_property
    def kept_of_recent(self) -> SeparationIndex:
        """Index of questions that no human-written text or tool result may copy: this cycle's and recent cycles', which
        the audit reads too. Generated tasks avoid the recent ones by key."""
        if not self.earlier:
            return self.kept
        kept = [*self.sealed.tasks, *self.watched, *self.warm_start_watched, *self.earlier]
        return SeparationIndex(kept, forms_in(self.catalog, self.tasksets))

    def held_out(self, seed: int, items: int) -> list[Task]:
        """Draws validation tasks, excluding sealed questions."""
        exclude = self.sealed.questions
        stream = TaskStream(Split.VALIDATION, seed, exclude, tasksets=self.tasksets, catalog=self.catalog)
        return stream.tasks(0, items)

    def training_tasks(
        self,
        rules: TrainingRules,
        before: Sequence[Task] = (),
        thrown_out: Callable[[Match], object] = lambda match: None,
        exhausted: Callable[[str, AbstractSet[str]], object] = lambda name, exclude: None,
    ) -> TaskStream:
        """Returns the cycle's stream of training tasks: nothing sealed, within the rules, `before` first. `exhausted`
        is called with a taskset that ran out of new questions, and the excluded keys."""
        exclude = self.sealed.questions | rules.met
        written = any(is_written(name, self.catalog) for name in self.tasksets)
        return TaskStream(
            Split.TRAIN,
            self.seed,
            exclude,
            rules.shares,
            self.tasksets,
            before,
            self.catalog,
            kept=self.kept_of_recent if written else self.kept,
            thrown_out=thrown_out,
            exhausted=lambda name: exhausted(name, exclude),
        )


@dataclass(frozen=True)
class TrainingResult:
    """Result of one training phase."""

    folder: Path
    """Checkpoint that becomes the first policy model, or the candidate."""
    step: int
    metrics: dict[str, float]
    ended: Literal["steps", "success", "watch", "collapse"] = "steps"
    reason: str = ""
    """Reason for ending before the last step."""
    next_step: int = 0
    """First unrecorded step, where a next stage begins."""


@dataclass(frozen=True)
class TrainingPart:
    """Part of a cycle that one learner trains; by default all of it."""

    name: str = ""
    """Name for its rollouts and folder; empty for a cycle without stages."""
    first_step: int = 0
    advance_at: float | None = None
    """Held-out success at which the part ends early."""
    moments: Path | None = None
    """Checkpoint whose optimizer state is continued."""
    unsolved: Sequence[Task] = ()
    """Tasks of earlier parts, placed before fresh ones."""
    teacher: TeacherScore | None = None
    """Teacher whose log-probabilities are the signal; None learns from rewards."""

    def folder(self, cycle: Path) -> Path:
        return cycle / self.name if self.name else cycle

    def label(self, purpose: str) -> str:
        return f"{purpose}.{self.name}" if self.name else purpose


@dataclass(frozen=True)
class TrainingRules:
    """The policy's [data] section, in the form that task streams take."""

    shares: Mapping[str, float]
    """Maximum percent of a step per taskset; tasksets without an entry are not trained on."""
    met: AbstractSet[str]
    """Keys of questions that recent cycles trained on."""


def watched_in(setup: CycleSetup, stages: Sequence[Recipe]) -> list[Task]:
    """Collects the validation tasks of a cycle and of all its stages, without duplicates."""
    parts = [setup, *(replace(setup, recipe=recipe) for recipe in stages)]
    found = {task.id: task for part in parts for task in (*part.watched, *part.warm_start_watched)}
    return list(found.values())


def left_out(
    names: Sequence[str], certified: Mapping[str, str], model: Path | None = None, catalog: Catalog = BUILT_IN
) -> dict[str, str]:
    """Returns the unusable tasksets, each with its reason in a sentence: unverifiable here, not certified in this
    version, or with tools that the model's format cannot call (None: the seedling's). `certified` lists tasksets that
    an owner certified here, by version and digest. Raises UnknownTasksetError, and CurriculumError if none is usable.
    """
    found = {name: unusable(name, certified, model, catalog) for name in names}
    reasons = {name: reason for name, reason in found.items() if reason}
    if reasons.keys() >= set(names):
        listed = "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or "the recipe names none"
        raise CurriculumError(f"no usable taskset: {listed}", hint="name others in recipe.tasksets")
    return reasons


def unusable(name: str, certified: Mapping[str, str], model: Path | None, catalog: Catalog) -> str:
    """Returns why a taskset cannot be asked here, as in `left_out`; empty if it can. Raises UnknownTasksetError."""
    return catalog.named(name).missing() or _lacks(name, certified, catalog) or _uncallable(name, model, catalog)


def _lacks(name: str, certified: Mapping[str, str], catalog: Catalog) -> str:
    """Returns the reason that a taskset is not certified for training; empty if it is."""
    made = made_by(catalog, name)
    if made in (shipped().get(name), certified.get(name)):
        return ""
    return f"not certified in version {made}: run `assay curriculum certify {name}`"


def _uncallable(name: str, model: Path | None, catalog: Catalog) -> str:
    """Returns the reason that the model's format cannot call a taskset's tools; empty if it can."""
    levels = range(catalog.named(name).level_count)
    drafts = (draft for level in levels for draft in drafts_of(catalog, name, level, len(Split)))
    draft = next(drafts, None)
    if draft is None:
        return "it has no task"
    tools = offered(draft.environment, draft.tools, draft.world)
    if not only_python(tools):
        return ""
    if model is None:
        return only_python(tools)
    files = {file: (model / file).read_bytes() for file in FILES if (model / file).is_file()}
    if (why := load_renderer(files).refuses(tools)) or not isinstance(ENVIRONMENTS.get(draft.environment), BringsTools):
        return why
    brought = chain(tools, *(offered(other.environment, other.tools, other.world) for other in drafts))
    told = tuple({tool.model_dump_json(): tool for tool in brought}.values())
    return mark_in(told, tuple(GuardedTokenizer(files).marks.values()))


def training_rules(policy: Policy, ledger: Ledger, cycle: str, tasksets: Sequence[str]) -> TrainingRules:
    """Returns the policy's rules on training data for that cycle. Raises CurriculumError if they cannot fill a step."""
    nights = policy.data.fresh_nights
    shares = shares_of(policy.data, tasksets)
    if sum(shares.values()) < WHOLE:
        listed = ", ".join(f"{name} {share:g} %" for name, share in shares.items()) or "none"
        raise CurriculumError(
            f"the policy's [data] lets this recipe's tasksets fill only {sum(shares.values()):g} % of a step: {listed}",
            hint="add tasksets to recipe.tasksets, or raise max_share in the policy's [data]",
        )
    return TrainingRules(shares=shares, met=_met(ledger, cycle, nights) if nights else frozenset())


def trained_questions(ledger: Ledger, cycle: str) -> frozenset[str]:
    """Collects each question a cycle trained on, by task id and by question key."""
    tasks = map(Task.model_validate, ledger.step_tasks(cycle))
    return frozenset(key for task in tasks for key in keys_of(task))


def keys_of(task: Task) -> tuple[str, str]:
    """Returns the two keys by which a task is recognised: its content, and its question regardless of wording."""
    return f"{BY_ID}{task.id}", key_of(task)


def _met(ledger: Ledger, cycle: str, nights: int) -> frozenset[str]:
    """Collects the keys of the questions trained on in the last `nights` cycles before this one that trained."""
    known = [one.id for one in ledger.cycles(limit=100_000)]
    before = known[known.index(cycle) + 1 :] if cycle in known else known
    trained = (trained_questions(ledger, name) for name in before)
    found: set[str] = set()
    for keys in trained:
        if keys:
            found.update(key for key in keys if not key.startswith(BY_ID))
            nights -= 1
        if nights == 0:
            break
    return frozenset(found)

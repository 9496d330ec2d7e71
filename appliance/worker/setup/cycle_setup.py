"""Holds what all phases of a cycle have in common: seed and recipe, the tasksets in use, the sealed questions.

What always holds: it depends on the cycle's plan, the policy and what earlier cycles have on record, so a cycle that is
resumed draws the same tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
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
from policies.data import WHOLE, shares_of
from policies.policy import Policy

BY_ID = "task "
"""How the keys of tasks begin; the others say what a question asks, whatever the words."""


@dataclass(frozen=True)
class CycleSetup:
    """Everything about a cycle that its phases have in common."""

    cycle: str
    seed: int
    recipe: Recipe
    tasksets: tuple[str, ...]
    """Those in use, in the order of the registry."""
    sealed: SealedSet
    catalog: Catalog = BUILT_IN
    """The tasksets of the code, and those of the owner that the recipe names."""
    earlier: tuple[Task, ...] = ()
    """What recent nights kept apart: a model is never trained on what an earlier one was judged by."""

    @cached_property
    def watched(self) -> list[Task]:
        """The validation tasks that say how training comes on."""
        return self.held_out(derive("watch", self.seed), self.recipe.training.watch_items)

    @cached_property
    def warm_start_watched(self) -> list[Task]:
        """Those that say how the warm start comes on."""
        return self.held_out(derive("warm start", self.seed), self.recipe.warm_start.validation_items)

    @cached_property
    def kept(self) -> SeparationIndex:
        """What no generated task may be a copy of: tonight's sealed questions and validation tasks."""
        kept = [*self.sealed.tasks, *self.watched, *self.warm_start_watched]
        return SeparationIndex(kept, forms_in(self.catalog, self.tasksets))

    @cached_property
    def kept_of_recent(self) -> SeparationIndex:
        """What no text that somebody wrote, and no result of a tool, may be a copy of: tonight's, and those of recent
        nights, which the audit reads too. Generated tasks are kept apart from these by their keys."""
        if not self.earlier:
            return self.kept
        kept = [*self.sealed.tasks, *self.watched, *self.warm_start_watched, *self.earlier]
        return SeparationIndex(kept, forms_in(self.catalog, self.tasksets))

    def held_out(self, seed: int, items: int) -> list[Task]:
        """Validation tasks, none of them sealed."""
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
        """Makes what is trained on: nothing sealed, and within the rules; those of `before` come first. `exhausted` is
        told of a taskset that has nothing new to ask, and what is not asked."""
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
    """Says what a phase of training ended with."""

    folder: Path
    """The checkpoint that becomes the first policy model, or the candidate."""
    step: int
    metrics: dict[str, float]
    ended: Literal["steps", "success", "watch", "collapse"] = "steps"
    reason: str = ""
    """What was seen, where it ended before its steps did."""
    next_step: int = 0
    """The first step that is not on record; that which a next stage begins with."""


@dataclass(frozen=True)
class TrainingPart:
    """Says which part of a cycle one learner takes; the default is all of it."""

    name: str = ""
    """Names its rollouts and its folder; empty for a cycle without stages."""
    first_step: int = 0
    advance_at: float | None = None
    """Held-out success at which it ends before its steps do."""
    moments: Path | None = None
    """The checkpoint whose optimizer it goes on with."""
    unsolved: Sequence[Task] = ()
    """Tasks of earlier parts that come before fresh ones."""
    teacher: TeacherScore | None = None
    """Whose log-probabilities it learns from; otherwise it learns from rewards."""

    def folder(self, cycle: Path) -> Path:
        return cycle / self.name if self.name else cycle

    def label(self, purpose: str) -> str:
        return f"{purpose}.{self.name}" if self.name else purpose


@dataclass(frozen=True)
class TrainingRules:
    """The policy's [data] section, as streams of tasks take it."""

    shares: Mapping[str, float]
    """Percent of a step that each taskset may be; the others are not trained on."""
    met: AbstractSet[str]
    """Keys of questions that recent nights trained on."""


def watched_in(setup: CycleSetup, stages: Sequence[Recipe]) -> list[Task]:
    """Collects the validation tasks of a cycle and of all its stages, each once."""
    parts = [setup, *(replace(setup, recipe=recipe) for recipe in stages)]
    found = {task.id: task for part in parts for task in (*part.watched, *part.warm_start_watched)}
    return list(found.values())


def left_out(
    names: Sequence[str], certified: Mapping[str, str], model: Path | None = None, catalog: Catalog = BUILT_IN
) -> dict[str, str]:
    """Those of these tasksets whose answers this machine cannot check, that are not certified as they are, or whose
    tools cannot be called in the format of the model in that folder (None: the seedling's), each with the reason in a
    sentence. `certified` are those that an owner certified here, by version and digest.

    Raises UnknownTasksetError, and CurriculumError where no other is left.
    """
    found = {
        name: catalog.named(name).missing() or _lacks(name, certified, catalog) or _uncallable(name, model, catalog)
        for name in names
    }
    reasons = {name: reason for name, reason in found.items() if reason}
    if reasons.keys() >= set(names):
        listed = "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or "the recipe names none"
        raise CurriculumError(f"there is nothing to ask: {listed}", hint="name others in recipe.tasksets")
    return reasons


def _lacks(name: str, certified: Mapping[str, str], catalog: Catalog) -> str:
    """Why a taskset may not be trained on before it is certified; empty when it is."""
    made = made_by(catalog, name)
    if made in (shipped().get(name), certified.get(name)):
        return ""
    return f"it is not certified in its version {made}: `assay curriculum certify {name}`"


def _uncallable(name: str, model: Path | None, catalog: Catalog) -> str:
    """Why the tools that a taskset's tasks offer cannot be called in the model's format; empty when they can."""
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
    """The rules of this policy for that cycle. Raises CurriculumError where they leave a step unfilled."""
    nights = policy.data.fresh_nights
    shares = shares_of(policy.data, tasksets)
    if sum(shares.values()) < WHOLE:
        listed = ", ".join(f"{name} {share:g} %" for name, share in shares.items()) or "none"
        raise CurriculumError(
            f"the policy's [data] lets this recipe's tasksets fill only {sum(shares.values()):g} % of a step: {listed}",
            hint="raise max_share in [data], name more families there, or more tasksets in the recipe",
        )
    return TrainingRules(shares=shares, met=_met(ledger, cycle, nights) if nights else frozenset())


def trained_questions(ledger: Ledger, cycle: str) -> frozenset[str]:
    """Collects what that cycle trained on: each question by its id and by what it asks, whatever the words."""
    tasks = map(Task.model_validate, ledger.step_tasks(cycle))
    return frozenset(key for task in tasks for key in keys_of(task))


def keys_of(task: Task) -> tuple[str, str]:
    """Names it by its content, and by what it asks."""
    return f"{BY_ID}{task.id}", key_of(task)


def _met(ledger: Ledger, cycle: str, nights: int) -> frozenset[str]:
    """Collects what the last so many cycles before this one that trained at all trained on."""
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

"""Tasksets by name, and the one way to make a task from them.

A catalog is a value: whoever works with tasks is handed one, and nobody adds to it. `registry.BUILT_IN` has the
tasksets of the code; `with_domain` makes one that has an owner's as well. Making a task is a pure function: the same
catalog, level and seed give the same question on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

from curriculum import seeds
from curriculum.contract.errors import UnknownTasksetError
from curriculum.contract.task import Split, Task
from curriculum.contract.taskset import Finite, TaskDraft, Taskset


class AllDomains(Mapping[str, Taskset]):
    """The tasksets of all domains by name: a view, which loads none that nobody asks for."""

    def __init__(self, domains: Mapping[str, Mapping[str, Taskset]]) -> None:
        self._domains = domains

    def __getitem__(self, name: str) -> Taskset:
        for rows in self._domains.values():
            if name in rows:
                return rows[name]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(name in rows for rows in self._domains.values())

    def __iter__(self) -> Iterator[str]:
        return (name for rows in self._domains.values() for name in rows)

    def __len__(self) -> int:
        return sum(map(len, self._domains.values()))


@dataclass(frozen=True)
class Catalog:
    """Tasksets by name, by what they are about."""

    domains: Mapping[str, Mapping[str, Taskset]]

    @property
    def tasksets(self) -> Mapping[str, Taskset]:
        """Lists them by name."""
        return AllDomains(self.domains)

    @cached_property
    def _finite(self) -> dict[str, Finite | None]:
        """Those that were asked for and whose items were given; the others as None. Asking a protocol costs more than
        making a small task."""
        return {}

    def with_domain(self, domain: str, tasksets: Sequence[Taskset]) -> Catalog:
        """Makes a catalog that has these as well, instead of what was in that domain."""
        return Catalog({**self.domains, domain: {taskset.name: taskset for taskset in tasksets}})

    def named(self, name: str) -> Taskset:
        """The taskset of that name. Raises UnknownTasksetError."""
        try:
            return self.tasksets[name]
        except KeyError:
            raise UnknownTasksetError(
                f"there is no taskset {name!r}", hint="`assay curriculum ls` lists them; a word after it looks for one"
            ) from None

    def domain_of(self, name: str) -> str:
        """What the taskset of that name is about. Raises UnknownTasksetError."""
        self.named(name)
        return next(domain for domain, rows in self.domains.items() if name in rows)

    def finite(self, name: str) -> Finite | None:
        """The taskset of that name, where its items were given. Raises UnknownTasksetError."""
        if name not in self._finite:
            found = self.named(name)
            self._finite[name] = found if isinstance(found, Finite) else None
        return self._finite[name]

    def draft(self, taskset: str, level: int, seed: int) -> TaskDraft:
        """The item behind (taskset, level, seed), with its answer: for demonstrations and tests, never for the agent.

        Raises UnknownTasksetError or LevelError, and ExhaustedError where a finite taskset has none of that split.
        """
        found, rng = self.named(taskset), stable_random("problem", taskset, level, seed)
        finite = self.finite(taskset)
        return found.draft(level, rng) if finite is None else finite.draft_of(seeds.split_of(seed), level, rng)

    def task(self, taskset: str, level: int, seed: int, split: Split) -> Task:
        """The task of (taskset, level, seed). Raises SeedError, and as `draft` does."""
        seeds.require(seed, split)
        return self.task_of(self.draft(taskset, level, seed), taskset, level, seed)

    def task_of(self, draft: TaskDraft, taskset: str, level: int, seed: int) -> Task:
        """The task that a draft made by `draft` with these arguments becomes."""
        return Task(
            taskset=taskset,
            level=level,
            seed=seed,
            split=seeds.split_of(seed),
            messages=draft.messages,
            spec=draft.spec,
            form=draft.form,
            tools=draft.tools,
            files=dict(draft.files),
            environment=draft.environment,
            world=dict(draft.world),
            turns=draft.turns,
            tokens=draft.tokens,
            key=draft.key,
            provenance=f"{taskset}@{self.named(taskset).version}",
        )

    def draft_of(self, task: Task) -> TaskDraft:
        """Reads what a generated task was made from. Raises as `draft` does, for example for a job's task."""
        return self.draft(task.taskset, task.level, task.seed)

    def key_of(self, task: Task) -> str:
        """Says what a generated task asks, whatever the words. Raises as `draft` does for one without a known key."""
        return task.key or self.draft_of(task).key


def stable_random(*parts: str | int) -> Random:
    """A generator that depends on these parts alone: no salt of the process, no clock."""
    return Random(int.from_bytes(seeds.digest_of(*parts)))

"""Tasksets by name, and the only way to make a task from them.

A catalog is an immutable value that is passed to code that works with tasks. `registry.BUILT_IN` has the built-in
tasksets; `with_domain` returns one that also has an owner's. Making a task is a pure function: the same catalog, level
and seed give the same question on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

from curriculum import seeds
from curriculum.contract.errors import UnknownTasksetError
from curriculum.contract.task import Split, Task
from curriculum.contract.taskset import DrawsTopic, Finite, TaskDraft, Taskset


class AllDomains(Mapping[str, Taskset]):
    """Read-only view of all domains' tasksets by name. Loads a taskset only when it is read."""

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
    """Tasksets by name, grouped into domains."""

    domains: Mapping[str, Mapping[str, Taskset]]

    @property
    def tasksets(self) -> Mapping[str, Taskset]:
        """Tasksets of all domains, by name."""
        return AllDomains(self.domains)

    @cached_property
    def _finite(self) -> dict[str, Finite | None]:
        """Cache of `finite` by taskset name: None for a taskset that generates its items. Protocol checks cost more
        than making a small task."""
        return {}

    @cached_property
    def _topics(self) -> dict[str, DrawsTopic | None]:
        """Cache of `topic`, as `_finite`."""
        return {}

    def with_domain(self, domain: str, tasksets: Sequence[Taskset]) -> Catalog:
        """Returns a copy of the catalog in which these tasksets replace the given domain."""
        return Catalog({**self.domains, domain: {taskset.name: taskset for taskset in tasksets}})

    def named(self, name: str) -> Taskset:
        """Returns the taskset of that name. Raises UnknownTasksetError."""
        try:
            return self.tasksets[name]
        except KeyError:
            raise UnknownTasksetError(
                f"unknown taskset {name!r}",
                hint="list them: `assay curriculum ls`, or `assay curriculum ls WORD` to search",
            ) from None

    def domain_of(self, name: str) -> str:
        """Returns the domain of a taskset. Raises UnknownTasksetError."""
        self.named(name)
        return next(domain for domain, rows in self.domains.items() if name in rows)

    def finite(self, name: str) -> Finite | None:
        """Returns the taskset if its items were given; None if it generates them. Raises UnknownTasksetError."""
        if name not in self._finite:
            found = self.named(name)
            self._finite[name] = found if isinstance(found, Finite) else None
        return self._finite[name]

    def draft(self, taskset: str, level: int, seed: int) -> TaskDraft:
        """Makes the item of (taskset, level, seed), with its answer: for demonstrations and tests, never for the agent.
        Raises UnknownTasksetError or LevelError, and ExhaustedError if a finite taskset has no item of that split."""
        found, rng = self.named(taskset), stable_random("problem", taskset, level, seed)
        finite = self.finite(taskset)
        return found.draft(level, rng) if finite is None else finite.draft_of(seeds.split_of(seed), level, rng)

    def topic(self, taskset: str, level: int, seed: int) -> str | None:
        """Returns the topic of the item of (taskset, level, seed), without making it; None if only the draft tells.
        Raises UnknownTasksetError."""
        if taskset not in self._topics:
            found = self.named(taskset)
            self._topics[taskset] = found if isinstance(found, DrawsTopic) and not isinstance(found, Finite) else None
        draws = self._topics[taskset]
        return None if draws is None else draws.topic_of(stable_random("problem", taskset, level, seed))

    def task(self, taskset: str, level: int, seed: int, split: Split) -> Task:
        """Makes the task of (taskset, level, seed). Raises SeedError if the seed is not of `split`; else as `draft`."""
        seeds.require(seed, split)
        return self.task_of(self.draft(taskset, level, seed), taskset, level, seed)

    def task_of(self, draft: TaskDraft, taskset: str, level: int, seed: int) -> Task:
        """Turns a draft into its task; the other arguments are those that `draft` got."""
        return Task(
            taskset=taskset,
            level=level,
            seed=seed,
            split=seeds.split_of(seed),
            topic=draft.topic,
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
        """Makes the draft of a generated task again. Raises as `draft` does, for example for a job's task."""
        return self.draft(task.taskset, task.level, task.seed)

    def key_of(self, task: Task) -> str:
        """Returns the key of a generated task's question, independent of its wording. Raises as `draft` does."""
        return task.key or self.draft_of(task).key


def stable_random(*parts: str | int) -> Random:
    """Returns a random generator seeded by these parts alone: no process salt, no clock."""
    return Random(int.from_bytes(seeds.digest_of(*parts)))

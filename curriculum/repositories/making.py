"""Makes terminal tasks of a repository: finds its stable tests, tries faults on them, and keeps those that they show.

    made = Making(repository, digest, pool, Journal({}), seed="1")
    rows = list(made.rows(most=40))

Invariants: tests and faults run in sandboxes without a network. A test counts if it passes in each of four runs,
observes the same values and reads no clock; a fault becomes a task if at least two of these fail with it and others do
not. Each finished
run is in the journal, so that an interrupted run is resumed with the same tasks.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import combinations, cycle, islice
from pathlib import Path
from typing import Any

from curriculum.contract.errors import CurriculumError
from curriculum.environments.terminal.environment import CONTAINER
from curriculum.environments.terminal.harbor.folder import DECLARED
from curriculum.own.rows import OwnRow
from curriculum.repositories import history
from curriculum.repositories.faults import RepositoryFault, bodies_in, combined, faults_in, reverted
from curriculum.repositories.journal import Journal
from curriculum.repositories.observing import Rewritten, functions_in, rewrite, without
from curriculum.repositories.reading import Repository
from curriculum.repositories.statement import Observed, Symptom, gives_away, statement, symptom
from runtime.errors import GuestLostError
from runtime.sandbox import CallStatus, Priority, Sandbox, SessionPool
from verifiers.files import suite
from verifiers.files.spec import MOST_FILES, MOST_TESTS, FilesSpec, PlacedFile, SuiteCondition
from verifiers.files.suite_guest import CLOCK, used

RUN_SECONDS, BATCH_SECONDS, VARIANT_SECONDS = 1_800.0, 7_000.0, 150.0
"""Wall-clock limits of all tests, of a batch of faults and of one: generous, because a busy machine is no fault."""
TEST_SECONDS, MOST_SUITE = 20.0, 150
"""Processor time of all stable tests, in seconds; slower ones are left out. A task runs at most so many of them."""
VERDICT_SECONDS = 60.0
MEMORY_MIB = 1_024
BATCH = 12
SCREEN_SECONDS, SCREEN_TESTS = 0.5, 150
"""Processor time and number of the tests that a fault is tried on first."""
MOST_SOURCE = 80_000
"""Characters of a source that may have a fault: its repair has to fit into a submission."""
LEAST_FAILING, MOST_FAILING = 2, 0.6
"""Tests that fail with a fault: at least two, and at most this share."""
PER_FUNCTION = 3
MOST_SITES = 100_000
"""Sites of one test module at most: the numbers of the next begin there."""
TRIES = 8
"""Faults tried for each task that is wanted."""
PATTERN = ("operator", "call", "body", "operator", "commit")
CALLER = "add"


class Making:
    def __init__(
        self,
        repository: Repository,
        packages: str,
        pool: SessionPool,
        journal: Journal,
        *,
        seed: str,
        place: Path | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Prepares tasks of a repository. `packages` is the digest of its package set; `place` is a git repository
        with its history, if it is one."""
        self._repository, self._packages, self._pool, self._journal = repository, packages, pool, journal
        self._seed, self._place, self._progress = seed, place, progress
        found = {
            path: rewrite(repository.files[path], path, MOST_SITES * at)
            for at, path in enumerate(repository.test_sources)
        }
        self._rewritten: dict[str, Rewritten] = {path: one for path, one in found.items() if one is not None}
        self._sites = {number: site for one in self._rewritten.values() for number, site in one.sites.items()}
        self._functions = {path: functions_in(repository.files[path]) for path in self._rewritten}
        self._sources = [path for path in repository.sources if len(repository.files[path]) <= MOST_SOURCE]
        rewritten = {path: one.kept for path, one in self._rewritten.items()}
        about = json.dumps([repository.files, rewritten, suite.program(), packages], sort_keys=True)
        self._digest = hashlib.sha256(about.encode()).hexdigest()[:16]
        self.counts: Counter[str] = Counter()
        """Numbers for a report: tests, stable, slow, failing, unstable, faults, hidden, unseen, crashed."""
        self.first_failure = ""
        self._stable: dict[str, list[Any]] = {}
        self._calls: dict[str, set[str]] = {}
        """Functions of the repository that each test calls; those that imports call, by the empty name."""

    # stable tests

    def stable(self) -> Mapping[str, list[Any]]:
        """Returns the stable tests by name, each as its run gave it. Raises CurriculumError without any."""
        if self._stable:
            return self._stable
        runs = self._journal.get(f"{self._digest} stable")
        if runs is None:
            runs = self._runs()
            self._journal.add(f"{self._digest} stable", runs)
        named = [{line[0]: line for line in lines} for lines in runs]
        original, first, second, blind = named
        self._calls = {name: set(line[7]) for name, line in second.items()}
        spent = 0.0
        for name, line in sorted(
            ((name, line) for name, line in first.items() if name), key=lambda one: float(one[1][6])
        ):
            outcomes = {one[name][1] if name in one else "missing" for one in (original, first, second, blind)}
            if outcomes != {"passed"}:
                passed = name in original and original[name][1] == "passed"
                self.counts["unstable" if passed else "failing"] += 1
                if not passed and not self.first_failure:
                    self.first_failure = f"{name}: {' '.join(str(original.get(name, line)[4]).split())[:200]}"
            elif len({one[name][2] for one in (first, second, blind)}) > 1 or CLOCK in self._calls[name]:
                self.counts["unstable"] += 1
            elif spent + float(line[6]) > TEST_SECONDS or len(self._stable) >= MOST_TESTS:
                self.counts["slow"] += 1
            else:
                spent += float(line[6])
                self._stable[name] = line
        self.counts["tests"], self.counts["stable"] = len(first), len(self._stable)
        if not self._stable:
            why = f"; the first: {self.first_failure}" if self.first_failure else ""
            reason = f"none of its {len(first)} tests passes here, without a network, each time{why}"
            raise CurriculumError(reason, hint="`python3 -m pytest` must pass without a network or data to download")
        return self._stable

    def _runs(self) -> list[list[Any]]:
        """Runs the tests four times: as they are, twice with their values noted, and blind."""
        found: list[list[Any]] = []
        for kind in ("original", "kept", "kept", "blind"):
            self._progress(f"running the tests of {self._repository.name}: {len(found) + 1} of 4 times")
            with closing(self._sandbox(kind)) as sandbox:
                files = sorted({*self._repository.tests})
                tells = "calls" if len(found) == 2 else "values"
                asked = {"what": "run", "path": self._repository.path, "tests": None, "files": files, "tells": tells}
                ran = suite.start(sandbox, asked, RUN_SECONDS)
                if ran.status is not CallStatus.OK:
                    reason = f"its tests end with {ran.status.value} after {ran.seconds:.0f} s"
                    raise CurriculumError(reason, hint="name a repository whose tests take less than half an hour")
                if ran.exit_code:
                    said = ran.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
                    raise CurriculumError(f"its tests cannot start: {said[-1][:200]}", hint="see what it requires")
                found.append([line for line in suite.lines_of(sandbox) if isinstance(line, list) and len(line) == 8])
        return found

    def _sandbox(self, kind: str) -> Sandbox:
        sandbox = suite.sandbox_for(self._pool, Priority.JOB, self._packages, MEMORY_MIB, CALLER)
        try:
            suite.place(sandbox, dict(self._repository.files) | self._tests(kind))
        except BaseException:
            sandbox.close()
            raise
        return sandbox

    def _tests(self, kind: str) -> dict[str, str]:
        return {} if kind == "original" else {path: getattr(one, kind) for path, one in self._rewritten.items()}

    # faults

    def rows(self, most: int) -> Iterator[OwnRow]:
        """Yields up to `most` tasks, in an order that the seed decides. Raises CurriculumError, SandboxError."""
        self.stable()
        singles: list[tuple[RepositoryFault, list[Any]]] = []
        per_function: Counter[str] = Counter()
        wanted = most - most // 8
        made = 0
        tested = (fault for fault in self._faults() if self._concerned(fault))
        for fault, lines in self._tried(islice(tested, TRIES * most)):
            if made >= wanted:
                break
            if per_function[fault.functions[0].name] < PER_FUNCTION and (row := self._row(fault, lines)) is not None:
                per_function[fault.functions[0].name] += 1
                made += 1
                singles.append((fault, lines))
                yield row
        small = [fault for fault, _ in singles if fault.kind != "body"]
        pairs = (combined(pair) for pair in combinations(small, 2) if set(pair[0].files).isdisjoint(pair[1].files))
        spread = sorted(pairs, key=lambda fault: _digest(self._seed, _key(fault)))
        for fault, lines in self._tried(iter(spread[: 2 * (most - wanted)])):
            if made >= most:
                return
            if (row := self._row(fault, lines)) is not None:
                made += 1
                yield row

    def _faults(self) -> Iterator[RepositoryFault]:
        """Yields faults of all kinds in turn, over all sources in turn."""
        files = self._repository.files
        each = {path: faults_in(path, files[path], self._seed) for path in self._sources}
        bodies = sorted(
            (fault for path in self._sources for fault in bodies_in(path, files[path])),
            key=lambda fault: _digest(self._seed, _key(fault)),
        )
        queues: dict[str, Iterator[RepositoryFault]] = {"body": iter(bodies), "commit": self._commits()}
        small = _in_turn(list(each.values()))
        waiting: dict[str, list[RepositoryFault]] = {"operator": [], "call": []}
        empty = 0
        for kind in cycle(PATTERN):
            fault = next(queues[kind], None) if kind in queues else _next_of(kind, small, waiting)
            empty = 0 if fault else empty + 1
            if fault is not None:
                yield fault
            if empty > len(PATTERN):
                return

    def _commits(self) -> Iterator[RepositoryFault]:
        if self._place is None or not history.is_git(self._place):
            return
        seen: set[str] = set()
        for change in history.changes(self._place, set(self._sources)):
            for path in change.after.keys() & change.before.keys():
                for fault in reverted(path, self._repository.files[path], change.before[path], change.after[path]):
                    if fault.files[path] not in seen:
                        seen.add(fault.files[path])
                        yield fault

    def _concerned(self, fault: RepositoryFault) -> list[str]:
        """Returns the stable tests that call a function that the fault changes."""
        changed = {one.place for one in fault.functions}
        if changed & self._calls.get("", set()):
            return list(self._stable)
        return [name for name in self._stable if changed & self._calls[name]]

    def _tried(self, faults: Iterator[RepositoryFault]) -> Iterator[tuple[RepositoryFault, list[Any]]]:
        """Yields faults with the lines of the tests that differ; leaves out those that crash or hang."""
        while some := list(islice(faults, BATCH)):
            keys = [f"{self._digest} {_key(fault)}" for fault in some]
            left = [at for at, key in enumerate(keys) if self._journal.get(key) is None]
            if left:
                for at, lines in zip(left, self._lines([some[at] for at in left]), strict=True):
                    self._journal.add(keys[at], {"lines": lines})
            for fault, key in zip(some, keys, strict=True):
                self.counts["faults"] += 1
                lines = self._journal.get(key)["lines"]
                if lines is None:
                    self.counts["crashed"] += 1
                elif lines:
                    yield fault, lines
                else:
                    self.counts["unseen"] += 1
                self._progress(f"tried {self.counts['faults']} faults of {self._repository.name}")

    def _lines(self, faults: Sequence[RepositoryFault]) -> list[Any]:
        """Runs the concerned tests on each fault that a few of them show, and returns the lines that differ; None for a
        fault that crashes or hangs, and nothing for one that those few do not show."""
        concerned = [self._concerned(fault) for fault in faults]
        few = [self._few(fault, tests) for fault, tests in zip(faults, concerned, strict=True)]
        found = self._batch(faults, few)
        shown = [at for at, lines in enumerate(found) if lines and len(few[at]) < len(concerned[at])]
        if shown:
            whole = self._batch([faults[at] for at in shown], [concerned[at] for at in shown])
            for at, lines in zip(shown, whole, strict=True):
                found[at] = lines
        return found

    def _few(self, fault: RepositoryFault, tests: Sequence[str]) -> list[str]:
        """Returns tests to try a fault on first, drawn by the seed: quick ones, but at least one."""
        key, spent = _key(fault), 0.0
        found: list[str] = []
        for name in sorted(tests, key=lambda name: _digest(self._seed, f"{key} {name}")):
            spent += float(self._stable[name][6])
            if found and (spent > SCREEN_SECONDS or len(found) >= SCREEN_TESTS):
                break
            found.append(name)
        return found

    def _batch(self, faults: Sequence[RepositoryFault], tests: Sequence[Sequence[str]]) -> list[Any]:
        stable = self.stable()
        cpu = sum(float(line[6]) for line in stable.values())
        asked = {
            "what": "batch",
            "path": self._repository.path,
            "tells": "values",
            "known": {name: line[1:3] for name, line in stable.items()},
            "variants": [[dict(fault.files), list(some)] for fault, some in zip(faults, tests, strict=True)],
            "cpu": int(20 + 10 * cpu),
            "seconds": VARIANT_SECONDS,
            "memory_mib": MEMORY_MIB // 2,
        }
        with closing(self._sandbox("kept")) as sandbox:
            try:
                suite.start(sandbox, asked, BATCH_SECONDS)
                found = suite.lines_of(sandbox)
            except GuestLostError:
                found = []
        return [*found, *([None] * len(faults))][: len(faults)]

    # tasks

    def _row(self, fault: RepositoryFault, lines: Sequence[Any]) -> OwnRow | None:
        """Returns the task of a fault; None, and the reason in `counts`, if the tests do not show it well."""
        stable = self.stable()
        failing = [line for line in lines if line[1] != "passed" and stable[line[0]][3]]
        silent = any(line[1] != "passed" and not stable[line[0]][3] for line in lines)
        if silent or not LEAST_FAILING <= len(failing) <= MOST_FAILING * len(stable):
            self.counts["few or many failing"] += 1
            return None
        shown = self._symptoms(failing, 2 if fault.kind == "combined" else 1)
        if not shown:
            self.counts["not shown"] += 1
            return None
        repository = self._repository
        faulty = dict(repository.files) | dict(fault.files)
        text = statement(repository.name, fault, shown, len(failing))
        if fault.kind != "body" and any(gives_away(text, faulty[path], repository.files[path]) for path in fault.files):
            self.counts["given away"] += 1
            return None
        hidden = self._hidden([line[0] for line in failing])
        if hidden is None:
            self.counts["cannot be hidden"] += 1
            return None
        visible = faulty | {path: without(repository.files[path], names) for path, names in hidden.items()}
        declared = [*fault.files, *(path for path in repository.sources if path not in fault.files)]
        declared = [path for path in declared if DECLARED.fullmatch(path)][:MOST_FILES]
        tests = [(name, stable[name][2]) for name in self._suite(fault, [line[0] for line in failing])]
        allowed = sorted({name for path in repository.sources for name in used(repository.files[path])})
        condition = SuiteCondition(
            tree=tuple(PlacedFile(path=path, text=one) for path, one in (faulty | self._tests("blind")).items()),
            tests=tuple(tests),
            path=repository.path,
            allowed=tuple(allowed),
            packages=self._packages,
            memory_mib=MEMORY_MIB,
        )
        self.counts[fault.kind] += 1
        return OwnRow(
            question=text,
            spec=FilesSpec(declared=tuple(declared), suite=condition, seconds=VERDICT_SECONDS),
            answer=json.dumps({path: {"text": repository.files[path], "mode": "644"} for path in fault.files}),
            origin=f"{repository.name} {fault.kind} {_key(fault)[:8]}",
            environment=CONTAINER.name,
            world={
                "files": [{"path": path, "text": one, "mode": "644"} for path, one in visible.items()],
                "declared": declared,
                "changed": True,
                "packages": self._packages,
                "memory_mib": MEMORY_MIB,
                "seconds": VERDICT_SECONDS,
                "variables": [["PYTHONHASHSEED", "0"], ["PYTHONPATH", ":".join(repository.path)]],
            },
            tools=("run_command",),
        )

    def _hidden(self, failing: Sequence[str]) -> dict[str, set[str]] | None:
        """Returns the functions of failing tests by file, inherited ones where they are. None if one is nowhere."""
        files = self._repository.files
        found: dict[str, set[str]] = {}
        for test in failing:
            path, _, name = test.partition("[")[0].partition("::")
            if name in self._functions.get(path, ()):
                found.setdefault(path, set()).add(name)
                continue
            inherited = f"::{name.rpartition('::')[2]}"
            above = [(file, one) for file in files for one in self._functions.get(file, ()) if one.endswith(inherited)]
            if not above or "::" not in name:
                return None
            for file, one in above:
                found.setdefault(file, set()).add(one)
        return found

    def _suite(self, fault: RepositoryFault, failing: Sequence[str]) -> list[str]:
        """Returns the tests of a task: those that fail, others that call what is changed, and others; not all."""
        near = set(self._concerned(fault))
        others = sorted(self._stable, key=lambda name: (name not in near, _digest(self._seed, name)))
        return sorted(list(dict.fromkeys((*failing, *others)))[: max(MOST_SUITE, len(failing) + MOST_SUITE // 3)])

    def _symptoms(self, failing: Sequence[Any], most: int) -> list[Symptom]:
        """Returns symptoms of different test functions, the shortest first; never of all failing tests."""
        found: dict[str, Symptom] = {}
        for name, _, _, values, why, params, _ in failing:
            right = Observed(name, self._stable[name][3])
            wrong = Observed(name, values, str(why), str(params))
            one = symptom(right, wrong, self._sites, self._repository.files)
            function = name.partition("[")[0]
            if one is not None and (function not in found or len(one.text()) < len(found[function].text())):
                found[function] = one
        return sorted(found.values(), key=lambda one: len(one.text()))[: min(most, len(failing) - 1)]


def _next_of(
    kind: str, small: Iterator[RepositoryFault], waiting: dict[str, list[RepositoryFault]]
) -> RepositoryFault | None:
    """Returns the next small fault of a kind; any kind if the next ten are of others."""
    for _ in range(10):
        if waiting[kind]:
            return waiting[kind].pop(0)
        fault = next(small, None)
        if fault is None:
            break
        waiting[fault.kind].append(fault)
    return next((queue.pop(0) for queue in waiting.values() if queue), None)


def _in_turn(queues: list[Iterator[RepositoryFault]]) -> Iterator[RepositoryFault]:
    while queues:
        for queue in list(queues):
            fault = next(queue, None)
            if fault is None:
                queues.remove(queue)
            else:
                yield fault


def _digest(seed: str, text: str) -> bytes:
    return hashlib.sha256(f"{seed} {text}".encode()).digest()


def _key(fault: RepositoryFault) -> str:
    return hashlib.sha256(json.dumps(dict(fault.files), sort_keys=True).encode()).hexdigest()[:16]

"""Long jobs in the terminal: their reference commands lead to files that pass, and half the work does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from curriculum.contract.topics import Item
from curriculum.environments.terminal import pipelines, reconstructions, recoveries
from curriculum.environments.terminal.environment import TERMINAL
from curriculum.environments.terminal.repairs import Repair, submission_of
from curriculum.tasksets.terminal_repairs import JOB_LEVELS, SMALL_LEVELS, TOPICS, item_of, repair_of
from curriculum.worlds.world import World
from runtime.sandbox import Limits, SessionPool
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.contract.verdict import Outcome
from verifiers.files.spec import FilesSpec, PlacedFile
from verifiers.files.verifier import FilesVerifier

SIZES = range(JOB_LEVELS)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory, full_roots: Path) -> Iterator[SessionPool]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=full_roots, ready=1)
    limits = Limits(call_seconds=40.0, memory_mib=192)
    with Sessions(RuntimeSettings(own=own, sandboxes=4, limits=limits)) as pool:
        yield pool


def job(topic: str, size: int, seed: int) -> Repair:
    return repair_of(topic, len(SMALL_LEVELS) + size, Random(f"{topic} {size} {seed}"))


def worked(pool: SessionPool, item: Item, steps: list[str]) -> str:
    """What is submitted after these commands."""
    with World.open(pool, TERMINAL, {**item.world, "seconds": 30.0}) as world:
        for step in steps:
            said = world.call("run_command", {"command": step}).text
            assert said.endswith(("[exit code 0]", "[exit code 1]", "[exit code 2]")), (step, said[-200:])
        return world.submission() or ""


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("size", [0, *(pytest.param(size, marks=pytest.mark.slow) for size in SIZES[1:])])
def test_the_reference_commands_of_a_job_pass_and_those_before_the_last_change_do_not(
    pool: SessionPool, topic: str, size: int
) -> None:
    made, verifier = job(topic, size, 1), FilesVerifier(pool)
    item = item_of(made)
    assert verifier.verify(made.spec, worked(pool, item, list(made.steps))).passed
    half = worked(pool, item, list(made.steps[: len(made.steps) // 2]))
    assert verifier.verify(made.spec, half).outcome is Outcome.FAIL


@pytest.mark.parametrize("topic", TOPICS)
def test_a_job_takes_ten_to_forty_commands_and_more_at_higher_levels(topic: str) -> None:
    counts = [[len(job(topic, size, seed).steps) for seed in range(8)] for size in SIZES]
    assert all(10 <= count <= 40 for some in counts for count in some)
    assert max(counts[0]) < min(counts[1]) <= max(counts[1]) < min(counts[2])
    longest = max(len(step) for size in SIZES for step in job(topic, size, 1).steps)
    assert longest < 8_000, "a command of the terminal has at most 8,000 characters"


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_pipeline_with_one_defect_left_fails(pool: SessionPool, size: int) -> None:
    made, verifier = job("scripts in a terminal", size, 2), FilesVerifier(pool)
    before = {file.path: file for file in made.files}
    for file in made.solved:
        if before[file.path].text != file.text:
            left: list[PlacedFile] = [before[file.path] if one is file else one for one in made.solved]
            assert verifier.verify(made.spec, submission_of(left)).outcome is Outcome.FAIL, file.path


def test_a_pipeline_has_as_many_defects_as_it_should() -> None:
    for size in SIZES:
        for seed in range(20):
            made = pipelines.mended_pipeline(size, Random(seed))
            before = {file.path: file.text for file in made.files}
            wrong = [file.path for file in made.solved if before[file.path] != file.text]
            assert len(wrong) == pipelines.SIZES[size][1] + (2 if size == 0 else 3)


def test_each_kept_report_has_one_rule() -> None:
    figures = [reconstructions.figures_of(reconstructions._rows(Random(seed), 45)) for seed in range(3)]
    rule = reconstructions.ReportRule("count>=30", "item", "value", "figure", 5)
    found = reconstructions.rules_that_give([reconstructions.report_of(rule, day) for day in figures], figures)
    assert found == [rule]
    every = reconstructions.rules_that_give(["", "", ""], figures)
    assert every == [], "each rule gives a line of these days"


@pytest.mark.parametrize("size", SIZES)
def test_a_tree_follows_from_its_snapshot_and_journals_alone(size: int) -> None:
    """Read back by the rules of RULES.md, without the simulation that wrote them."""
    for seed in range(60):
        made = recoveries.damaged_tree(size, Random(seed))
        texts = {file.path: file.text for file in made.files}
        rules = [
            rule for line in texts["RULES.md"].splitlines() for rule in recoveries.RULES if line.endswith(rule.text)
        ]
        assert len(rules) == recoveries.SIZES[size][2]
        tree = recoveries.migrated(recovered(texts), rules)
        lines = [
            line for name in sorted(tree) for line in (f"[{name}]", *sorted(f"{k}={v}" for k, v in tree[name].items()))
        ]
        assert isinstance(made.spec, FilesSpec)
        assert made.spec.files[0].equals == "\n".join(lines) + "\n", seed


def recovered(texts: dict[str, str]) -> recoveries.Tree:
    tree = {
        path.removeprefix("snapshot/"): dict(line.split("=", 1) for line in text.splitlines())
        for path, text in texts.items()
        if path.startswith("snapshot/") and path != "snapshot/SEQUENCE"
    }
    entries: dict[int, list[str]] = {}
    for path, text in texts.items():
        for line in text.splitlines() if path.startswith("journal/") else ():
            fields = line.split("|")
            if fields[-1].isdigit() and int(fields[-1]) == len(line) - len(fields[-1]) - 1:
                assert entries.setdefault(int(fields[0]), fields) == fields
    committed = {fields[1] for fields in entries.values() if fields[2] == "commit"}
    for number in sorted(entries):
        _, transaction, operation, *entry, _ = entries[number]
        if (
            number > int(texts["snapshot/SEQUENCE"])
            and transaction in committed
            and operation not in ("begin", "commit")
        ):
            recoveries.applied(tree, operation, *entry)
    return tree

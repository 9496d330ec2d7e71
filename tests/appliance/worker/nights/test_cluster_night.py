"""A night whose engines, learners and sandboxes are on hosts of a real Ray cluster is the night that it is here, and
goes on to the same end when one of them is killed.

What is drawn depends on weights, tokens and seed, so all nights here draw the same tokens in their first step and lose
the same, to the bit. Later weights differ in their last bits even between two nights on one machine (the order of tool
results decides which rows are computed together), so a token may fall otherwise once in some hundreds of nights; from
the step behind that on only tasks and rollouts are compared.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from ray_nodes import Nodes, standing
from short_nights import FIXTURE, SHORT, cycle_of

from appliance.cli.machine.doctor_checks import CheckGrade
from appliance.cli.machine.doctor_cluster import members
from appliance.config.configuration import Settings
from appliance.daemon.service.decision import decide_cycle, next_phase
from appliance.daemon.views.ledger_views import cycle_detail
from appliance.ledger.sqlite import SqliteLedger
from appliance.placement.engines import PlacedEngineProcess, PlacedLearners
from appliance.records.rollouts import RolloutEnd
from appliance.records.training import RolloutFilter, StepRecord
from appliance.reporting.as_page import as_page
from appliance.reporting.as_text import as_markdown, as_text
from appliance.reporting.night_report import NightReport, night_report
from appliance.settings.policy_files import load_policy
from appliance.worker.tasks import run_cycle
from runtime.cluster.folder import clear
from runtime.errors import InfrastructureError
from runtime.settings import RuntimeSettings

pytestmark = pytest.mark.timeout(1_200)

NIGHT = SHORT.model_copy(
    update={
        "training": SHORT.training.model_copy(update={"steps": 2}),
        "evaluation": SHORT.evaluation.model_copy(update={"sealed_items": 4, "unsolvable_items": 2}),
    }
)
STEPS = NIGHT.training.steps
COUNTS = {"train": STEPS * 4 * 8, "validation": STEPS * 4}
STARTS = 3
"""Of the worker, before the core sets a night aside."""


@pytest.fixture(scope="module")
def nodes(guest_roots: Path) -> Iterator[Nodes]:
    with standing(guest_roots) as made:
        yield made


@dataclass(frozen=True)
class Night:
    folder: Path
    ledger: SqliteLedger
    starts: int
    """Of the worker that trained."""

    def said(self, kind: str) -> list[str]:
        return [event.text for _, event in self.ledger.events(limit=1000) if event.kind == kind]

    def step(self, number: int) -> StepRecord:
        record = self.ledger.step("n", number)
        assert record is not None
        return record

    @property
    def losses(self) -> dict[int, float]:
        """By step, as it was learned last."""
        figures = [event.figures for _, event in self.ledger.events(limit=1000) if event.kind == "step"]
        return {int(one["step"]): one["learning_loss"] for one in figures}


def settings_of(folder: Path, runtime: RuntimeSettings, nodes: Nodes | None, engines: int) -> Settings:
    given: dict[str, Any] = {"data": str(folder), "model.path": str(FIXTURE), "sandbox.broker": str(runtime.broker)}
    given |= {"threads": 1, "model.engines": engines}
    if nodes is not None:
        driver = nodes.driver()
        given |= {"cluster.address": driver.address, "cluster.interface": driver.interface}
        given |= {"cluster.token": str(driver.token)}
        given |= {"placement.engines": "cluster", "placement.learners": "cluster"}
    return Settings.load(given, environ={}, etc_dir=folder).model_copy(update={"recipe": NIGHT})


def trained(folder: Path, runtime: RuntimeSettings, nodes: Nodes | None = None, engines: int = 1) -> Night:
    """A night up to its candidate; a worker that the infrastructure failed is started again, as the core does."""
    torch.set_num_threads(1)
    settings = settings_of(folder, runtime, nodes, engines)
    ledger = SqliteLedger(folder / "ledger.sqlite3")
    ledger.put_cycle(cycle_of("n", recipe=NIGHT))
    for start in range(1, STARTS + 1):
        try:
            run_cycle("train", "n", folder, settings, ledger, load_policy(folder))
        except InfrastructureError:
            if start == STARTS:
                raise
        else:
            break
    return Night(folder, ledger, start)


@pytest.fixture(scope="module")
def here(runtime: RuntimeSettings, tmp_path_factory: pytest.TempPathFactory) -> Night:
    return trained(tmp_path_factory.mktemp("here"), runtime)


def require_same(night: Night, other: Night, first: float = 0.0) -> None:
    """Asserts that both asked the same, each rollout once, and drew the same tokens. `first` is how far the first
    step's losses may be apart: a turn that another engine samples in place of a lost one begins with all its tokens at
    once, and a float32 is then another in its last bits."""
    assert night.ledger.rollout_counts("n") == COUNTS
    assert night.ledger.recorded_steps("n") == list(range(STEPS))
    apart = False
    for number in range(STEPS):
        one, two = night.step(number), other.step(number)
        assert [task["id"] for task in one.tasks] == [task["id"] for task in two.tasks]
        assert [judged.rollout.id for judged in one.judged] == [judged.rollout.id for judged in two.judged]
        assert len({judged.rollout.id for judged in one.judged}) == 32
        assert all(judged.rollout.ended is not RolloutEnd.INFRA_ERROR for judged in one.judged)
        if apart:
            continue
        tokens, others = ([[node.ids for node in each.rollout.nodes] for each in step.judged] for step in (one, two))
        apart = tokens != others
        assert sum(mine != theirs for mine, theirs in zip(tokens, others, strict=True)) <= (2 if number else 0)
        if not apart:
            assert night.losses[number] == pytest.approx(other.losses[number], rel=1e-4 if number else first)


def report_of(night: Night) -> NightReport:
    """As a person reads it in the morning."""
    known = night.ledger.cycle("n")
    assert known is not None
    events = [event for _, event in night.ledger.events(limit=1000)]
    return night_report(cycle_detail(night.ledger, known), night.ledger.step_metrics("n"), (), events)


def kill(nodes: Nodes, number: int) -> None:
    """Kills all that a host runs, as when its power fails."""
    lost = nodes.session(number)
    nodes.processes[number].kill()
    nodes.processes[number].communicate()
    lost.kill()
    clear(nodes.folder / f"n{number}")


def require_decided(night: Night, settings: Settings, folder: Path) -> None:
    """Evaluates and decides, and asserts that all that was run ran in a sandbox."""
    policy = load_policy(folder)
    run_cycle("evaluate", "n", folder, settings, night.ledger, policy)
    cycle = night.ledger.cycle("n")
    assert cycle is not None
    assert next_phase(cycle, night.ledger) == "decide"
    decision = decide_cycle(cycle, night.ledger, policy, folder)
    assert decision.candidate == night.ledger.alias("candidate") != decision.champion
    assert night.ledger.rollout_counts("n") == {**COUNTS, "evaluation": 4 * 4 + 2}
    every = night.ledger.rollouts(RolloutFilter(cycle="n"), limit=10_000)
    ran = {call.sandbox for judged in every for call in judged.rollout.calls if call.status.ran}
    assert ran
    assert "" not in ran


@pytest.mark.slow
def test_a_whole_night_on_two_hosts_asks_draws_and_learns_what_it_does_here(
    here: Night, nodes: Nodes, runtime: RuntimeSettings, tmp_path: Path
) -> None:
    there = trained(tmp_path, runtime, nodes)
    assert there.starts == 1
    placed = ["sandboxes are on host-0, host-1", "engine 1 of 1 samples on host-0", "the learners train on host-1"]
    assert there.said("placed") == placed
    require_same(there, here)
    require_decided(there, settings_of(tmp_path, runtime, nodes, 1), tmp_path)


@pytest.mark.slow  # in the suite: test_placed_engines.py, test_engines_apart.py and test_lost_hosts.py, without a night
def test_c10_a_host_that_is_killed_in_the_middle_of_rollouts_costs_no_rollout_and_no_token(
    here: Night, nodes: Nodes, runtime: RuntimeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one of two engines, and with half of the sandboxes. It is the short form of the night that loses none."""
    real, killed = PlacedEngineProcess.answer, threading.Event()

    def answer(self: PlacedEngineProcess) -> dict[str, Any]:
        found = real(self)
        in_training = self._kind == "step" and (tmp_path / "cycles" / "n" / "checkpoints").exists()
        if in_training and self.host == "host-1" and not killed.is_set():
            turns = [report for report in found["reports"] if report["ended"]]
            if turns:  # tools are called now, and the next turns are asked of it
                killed.set()
                kill(nodes, 1)
        return found

    monkeypatch.setattr(PlacedEngineProcess, "answer", answer)
    night = trained(tmp_path, runtime, nodes, engines=2)
    assert killed.is_set()
    assert night.starts == 1, "the worker went on"
    placed = night.said("placed")
    assert placed[:3] == [
        "sandboxes are on host-0, host-1",
        "engine 1 of 2 samples on host-0",
        "engine 2 of 2 samples on host-1",
    ]
    replaced = "engine 2 of 2 samples on host-0, replacing one on host-1"
    assert replaced in placed[3:]
    lost = [text for text in placed if text.startswith("host host-1 of the cluster and the sandboxes on it are lost")]
    assert len(lost) == 1
    for form in (as_text, as_markdown, as_page):
        written = form(report_of(night)).replace("\\", "")
        assert all(text in written for text in (placed[0], replaced, lost[0][:60]))
    require_same(night, here, first=1e-5)
    assert sum(metrics["engines_lost"] for metrics in night.ledger.step_metrics("n")) == 0
    found = members(nodes.driver(), "sandboxes")
    assert (found.grade, found.figure.partition(": ")[2]) == (CheckGrade.WARNING, "host-0; gone: host-1")
    require_decided(night, settings_of(tmp_path, runtime, nodes, 1), tmp_path)


@pytest.mark.slow
def test_a_host_that_is_killed_while_the_learners_on_it_take_a_step_is_done_without(
    here: Night, nodes: Nodes, runtime: RuntimeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if nodes.processes[1].poll() is not None:
        nodes.begin(1)
        nodes.wait(1)
    real, asked = PlacedLearners.ask, []

    def ask(self: PlacedLearners, what: str, **message: Any) -> dict[str, Any]:
        asked.append(what)
        if what == "step" and asked.count("step") == 2:
            for pid in self.pids:  # so that it is in the middle of the step for certain
                os.kill(pid, signal.SIGSTOP)
            threading.Timer(0.3, end, (self.pids,)).start()
        return real(self, what, **message)

    def end(pids: list[int]) -> None:
        kill(nodes, 1)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    monkeypatch.setattr(PlacedLearners, "ask", ask)
    night = trained(tmp_path, runtime, nodes)
    assert night.starts == 2, "it resumes from the last checkpoint"
    assert night.said("resume") == ["resumes from step 1"]
    placed = [text for text in night.said("placed") if not text.startswith(("sandboxes are", "host host-1"))]
    assert placed[:2] == ["engine 1 of 1 samples on host-0", "the learners train on host-1"]
    assert set(placed[2:]) == {"engine 1 of 1 samples on host-0", "the learners train on host-0"}
    require_same(night, here)

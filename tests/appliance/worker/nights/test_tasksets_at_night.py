"""A whole night on programs and theorems: real verdicts, the task's own form and budget, and a decision at the end."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import guest_roots as building
import pytest
from lean_stand_in import lean_toolchain
from scripted_engine import Ids, ScriptedEngine
from short_nights import FIXTURE, SHORT, cycle_of, run_night

from appliance.agent.answers import written
from appliance.agent.budget import AgentBudget
from appliance.config.configuration import Settings
from appliance.config.places import broker_socket, runtime_settings
from appliance.daemon.processes.broker_process import BrokerProcess, command
from appliance.inference.engine import GenerationRequest
from appliance.inference.engines import ENGINES
from appliance.inference.folder import read_model
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import CycleState
from appliance.records.rollouts import RolloutEnd
from appliance.records.training import RolloutFilter
from appliance.rendering.formats import load_renderer
from appliance.rendering.tools import tools_of
from appliance.settings.policy_files import parse_policy
from appliance.worker.cycle import CycleRun
from appliance.worker.evaluation.measurements import unsolvable
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.cycle_setup import CycleSetup, training_rules
from appliance.worker.setup.progress import CycleProgress
from curriculum.contract.errors import CurriculumError
from curriculum.contract.task import Task
from curriculum.registry import draft_of, taskset_named
from curriculum.sealed import sealed_set
from curriculum.seeds import derive
from policies.policy import Policy, read_content
from runtime.errors import InfrastructureError
from runtime.settings import RuntimeSettings
from verifiers.contract.verdict import Outcome

NAMES = ("programs", "theorems")
RECIPE = SHORT.model_copy(
    update={
        "tasksets": NAMES,
        "training": SHORT.training.model_copy(update={"steps": 2, "tasks_per_step": 4, "rollouts_per_task": 4}),
        "evaluation": SHORT.evaluation.model_copy(update={"sealed_items": 7, "unsolvable_items": 4}),
        "agent": AgentBudget(max_tokens=4_000, concurrent=48),
    }
)


@pytest.fixture(scope="module")
def runtime(guest_roots: Path) -> Iterator[RuntimeSettings]:
    """A broker that knows a Lean."""
    folder = Path(tempfile.mkdtemp(prefix="assay-l-"))
    building.lend(guest_roots, folder / "run")
    with lean_toolchain():
        settings = Settings.load(
            {"data": str(folder), "sandbox.ready": 1}, environ={"HOME": str(folder)}, etc_dir=folder
        )
        made, socket = runtime_settings(settings, folder), broker_socket(settings, folder)
        broker = BrokerProcess(made.own, socket, command(socket, 0))
        assert broker.start() == ""
        yield made.model_copy(update={"broker": socket})
        broker.close()
    shutil.rmtree(folder)


def policy(max_share: float = 60.0, shares: str = "") -> Policy:
    """The packaged one with room for two tasksets. Without the self-test of the verifiers, which takes minutes for
    these kinds and has tests of its own."""
    text = read_content()[0].decode()
    text = text.replace("max_share = 40.0", f"max_share = {max_share}")
    text = text.replace("[data.shares]", f"[data.shares]\n{shares}\n")
    found = parse_policy(text.encode(), "p")
    return found.model_copy(update={"gates": found.gates.model_copy(update={"selftest": None})})


@pytest.fixture
def night(tmp_path: Path, ledger: SqliteLedger, runtime: RuntimeSettings) -> Iterator[Callable[..., WorkContext]]:
    made: list[WorkContext] = []

    def context(engine: str = "torch", budget: AgentBudget = RECIPE.agent) -> WorkContext:
        made.append(WorkContext(tmp_path, ledger, runtime, budget, policy(), engine=engine))
        return made[-1]

    yield context
    for one in made:
        one.__exit__()


def asked_at_night(policy: Policy, seed: int) -> list[Task]:
    """Every task that a night of this recipe asks."""
    sealed = sealed_set(RECIPE.evaluation.sealed_items, derive("sealed", seed), tasksets=NAMES)
    setup = CycleSetup("n", seed, RECIPE, NAMES, sealed)
    rules = training_rules(policy, _NoCycles(), "n", NAMES)  # type: ignore[arg-type]
    training = [task for step in range(2) for task in setup.training_tasks(rules).tasks(step, 4)]
    held_out = setup.held_out(derive("watch", seed), RECIPE.training.watch_items)
    return [*sealed.tasks, *held_out, *unsolvable(4, seed, NAMES), *training]


class _NoCycles:
    def cycles(self, limit: int) -> list[Any]:
        return []


class Script:
    """What the engine says: the reference answer or nothing of worth, by the request's seed; the champion less often.
    Before an answer to a program it tries it out."""

    def __init__(self, policy: Policy, seed: int = 0) -> None:
        self.renderer = load_renderer(read_model(FIXTURE))
        tasks = asked_at_night(policy, seed)
        self.tasks = {self.renderer.prompt(task.messages, tools_of(task)): task for task in tasks}
        self.engine = ScriptedEngine(self, slots=RECIPE.agent.max_tokens, version="")

    def __call__(self, request: GenerationRequest, known: Ids) -> Ids:
        task = self.tasks[request.prompt]
        if task.taskset == "programs" and len(known) == len(request.prompt):
            return self.renderer.call("print(solve([]))" if request.seed % 3 else "print(len([]))")
        right = request.seed % 2 == 0
        answer = draft_of(task).answer if right else taskset_named(task.taskset).null_answers[0]
        return self.renderer.answer("Thus:\n" + written(answer.rstrip("\n"), task.form))


def test_a_night_on_programs_and_theorems_learns_from_what_was_proved(
    night: Callable[..., WorkContext], ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an engine by another name in the place of torch."""
    script = Script(policy())
    monkeypatch.setitem(ENGINES, "scripted", lambda rows, slots, threads: script.engine)
    decision = run_night(night("scripted"), "n", recipe=RECIPE)
    cycle = ledger.cycle("n")
    assert cycle is not None
    assert cycle.state is CycleState.DONE
    assert cycle.plan["tasksets"] == list(NAMES)
    rollouts = ledger.rollouts(RolloutFilter(cycle="n"), limit=10_000)
    judged = {one.rollout.id: one.verdict for one in rollouts}
    answered = {one.verdict.verifier for one in rollouts if one.rollout.ended is RolloutEnd.ANSWERED}
    assert answered == {"program", "lean"}, "a long proof may have no room in this tokenizer"
    assert Counter(verdict.outcome for verdict in judged.values()).keys() == {Outcome.PASS, Outcome.FAIL}
    groups = [group for step in range(2) for group in _step(ledger, step).groups]
    mixed = [group for group in groups if len(set(group.rewards)) == 2]
    assert mixed
    assert all(bool(group.kept) == (group in mixed) for group in groups)
    assert {"n@0", "n@1", decision.candidate, decision.champion} <= set(script.engine.pushed)
    assert decision.candidate != decision.champion
    (evaluation,) = ledger.evaluations()
    assert {item.family for item in evaluation.candidate.items} == set(NAMES)
    assert any(item.passed for item in evaluation.candidate.items)
    assert evaluation.measurements.hacks is not None
    assert (evaluation.measurements.hacks.impossible, evaluation.measurements.hacks.passed) == (4, 0)
    assert evaluation.measurements.contamination is not None
    assert evaluation.measurements.contamination.found == 0


def _step(ledger: SqliteLedger, step: int) -> Any:
    record = ledger.step("n", step)
    assert record is not None
    return record


def test_what_the_smallest_model_cannot_read_it_fails_and_nothing_is_learned(
    night: Callable[..., WorkContext], ledger: SqliteLedger
) -> None:
    decision = run_night(night(budget=SHORT.agent), "n", recipe=RECIPE.model_copy(update={"agent": SHORT.agent}))
    assert decision.candidate == decision.champion
    every = ledger.rollouts(RolloutFilter(cycle="n"), limit=10_000)
    trained = [one for one in every if one.family in NAMES]
    assert {one.rollout.ended for one in trained} == {RolloutEnd.TOKENS}, "there is no room for the question"
    assert {one.verdict.outcome for one in trained} == {Outcome.FAIL}
    assert not any(group.kept for step in range(2) for group in _step(ledger, step).groups)
    warnings = [event.text for _, event in ledger.events(limit=1000) if event.kind == "warning"]
    assert any("nothing was learned" in text for text in warnings)
    (evaluation,) = ledger.evaluations()
    assert evaluation.candidate == evaluation.champion, "equal weights are asked once"
    assert ledger.rollout_counts("n")["evaluation"] == 2 * 7 + 4


def test_without_a_lean_a_night_leaves_theorems_out_and_says_so(
    night: Callable[..., WorkContext], ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAN_TOOLCHAIN", "/nothing")
    recipe = RECIPE.model_copy(update={"agent": SHORT.agent, "tasksets": ("theorems", "digits", "linear")})
    run_night(night(budget=SHORT.agent), "n", recipe=recipe)
    cycle = ledger.cycle("n")
    assert cycle is not None
    assert cycle.plan["tasksets"] == ["digits", "linear"]
    assert {task["taskset"] for task in ledger.step_tasks("n")} == {"digits", "linear"}
    warnings = [event.text for _, event in ledger.events(limit=1000) if event.kind == "warning"]
    assert any("taskset theorems is skipped: no Lean is installed" in text for text in warnings)


def test_a_night_with_nothing_left_to_ask_is_refused_with_the_reasons(
    night: Callable[..., WorkContext], ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAN_TOOLCHAIN", "/nothing")
    with pytest.raises(CurriculumError, match="no usable taskset: theorems: no Lean"):
        run_night(night(), "n", recipe=RECIPE.model_copy(update={"tasksets": ("theorems",)}))
    assert ledger.evaluations() == []
    alone = RECIPE.model_copy(update={"tasksets": ("programs",), "agent": SHORT.agent})
    ledger.put_cycle(cycle_of("m", 0, alone))
    with pytest.raises(CurriculumError, match="only 60 % of a step: programs 60 %"):
        run_night(night(budget=SHORT.agent), "m", recipe=alone)


def test_a_lean_that_is_lost_on_the_way_is_no_reward_and_no_evaluation_is_made_without_it(
    night: Callable[..., WorkContext], ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = policy(100.0, "theorems = 25.0")
    seed = 3  # of which no more than half of the held-out tasks are theorems
    script = Script(few, seed)
    monkeypatch.setitem(ENGINES, "scripted", lambda rows, slots, threads: script.engine)
    context = night("scripted")
    context.policy = few
    cycle = cycle_of("n", seed, RECIPE)
    ledger.put_cycle(cycle)
    begun = ledger.cycle("n")
    assert begun is not None
    CycleRun(begun, context, CycleProgress(begun, ledger, lambda: 0.0), None).prepare()
    monkeypatch.setenv("LEAN_TOOLCHAIN", "/nothing")
    with pytest.raises(InfrastructureError, match="lost to infrastructure errors"):
        run_night(context, "n", recipe=RECIPE)
    assert ledger.evaluations() == []
    records = [_step(ledger, step) for step in ledger.recorded_steps("n")]
    assert len(records) == 2
    for record in records:
        lost = {one.rollout.id for one in record.judged if one.verdict.outcome is Outcome.INFRA_ERROR}
        assert lost == {one.rollout.id for one in record.judged if one.family == "theorems"}
        assert lost
        assert lost.isdisjoint(name for group in record.groups for name in group.rollouts)
        assert any(group.kept for group in record.groups)

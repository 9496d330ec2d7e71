"""A night on which the seedling proposes in its own format: what is proved becomes tasks, and a step trains on both."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scripted_engine import Ids, ScriptedEngine
from short_nights import FIXTURE, SHORT, train_night

from appliance.agent.budget import AgentBudget
from appliance.curriculum.kept_files import kept_questions
from appliance.inference.engine import GenerationRequest
from appliance.inference.engines import ENGINES
from appliance.inference.folder import read_model
from appliance.learning.batches import samples
from appliance.learning.recipes.recipe import ProposerRecipe, Recipe
from appliance.learning.training.trainer import Trainer
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import SEPARATION
from appliance.records.training import StepRecord
from appliance.rendering.formats import load_renderer
from appliance.settings.policy_files import load_policy
from appliance.worker.setup.context import WorkContext
from appliance.worker.training.proposer import Proposer, of_solvers
from curriculum.contract.task import Split, Task
from curriculum.proposing.calculations import is_phrased
from curriculum.proposing.kind import PROPOSER
from curriculum.proposing.labels import is_proposed
from curriculum.proposing.rewards import reward
from curriculum.seeds import split_of_question
from curriculum.separation.index import SeparationIndex
from curriculum.separation.rules import Check, Door
from runtime.settings import RuntimeSettings

NIGHT: Recipe = SHORT.model_copy(
    update={
        "training": SHORT.training.model_copy(
            update={"steps": 3, "tasks_per_step": 10, "rollouts_per_task": 6, "keep": 3, "difficulty": "adaptive"}
        ),
        "proposer": ProposerRecipe(proposals=4, reward="variance"),
    }
)


class KilledError(Exception):
    """Stands for a kill between a step's record and its learning."""


def goes_on(data: Path, runtime: RuntimeSettings) -> tuple[dict[str, bytes], list[StepRecord]]:
    """Trains to the end, and returns the weights of the last step with the records of all."""
    with (
        SqliteLedger(data / "ledger.sqlite3") as ledger,
        WorkContext(data, ledger, runtime, NIGHT.agent, load_policy(data)) as context,
    ):
        train_night(context, "n", recipe=NIGHT)
        records = [ledger.step("n", step) for step in ledger.recorded_steps("n")]
    last = sorted((data / "cycles" / "n" / "checkpoints").iterdir())[-1]
    return {path.name: path.read_bytes() for path in last.glob("*.safetensors")}, [one for one in records if one]


def asked(record: StepRecord) -> tuple[list[Task], list[str]]:
    """What was asked of solvers, and the keys of what was proposed."""
    tasks = [Task.model_validate(task) for task in record.tasks]
    return [one for one in tasks if one.taskset != PROPOSER], [one.key for one in tasks if is_proposed(one)]


def test_a_night_trains_on_what_the_seedling_proposed_and_goes_on_after_a_kill_to_the_same_bits(
    runtime: RuntimeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = Trainer.train_step

    def killed(self: Trainer, step: int, *material: Any) -> dict[str, float]:
        if step == 2:
            raise KilledError
        return learn(self, step, *material)

    data, other = tmp_path / "one", tmp_path / "other"
    data.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_step", killed)
        with pytest.raises(KilledError):
            goes_on(data, runtime)
    shutil.copytree(data, other, ignore=shutil.ignore_patterns("checkpoints", "run"))
    known: list[int] = []
    observe = Proposer.observe

    def watched(self: Proposer, *seen: Any) -> None:
        observe(self, *seen)
        known.append(len(self._memory))

    monkeypatch.setattr(Proposer, "observe", watched)
    weights, records = goes_on(data, runtime)
    again, recorded_again = goes_on(other, runtime)
    assert weights == again, "from a checkpoint, and from the records alone"
    assert [asked(one) for one in records] == [asked(one) for one in recorded_again]

    keys = [key for record in records for key in asked(record)[1]]
    assert len(keys) == len(set(keys)) >= 2
    assert len(known) == 1 + 3, "once after the checkpoint, and after each record"
    assert known[0] == known[-1] == len(keys)
    for record in records:
        tasks, proposed = asked(record)
        assert len(tasks) == len({task.id for task in tasks}) == 10
        ours = [one for one in record.judged if one.family == PROPOSER]
        assert len(ours) == 4
        assert record.metrics["proposals_accepted"] == len(proposed) == sum(one.verdict.passed for one in ours)
        for one in ours:
            made = next((task for task in tasks if task.id == one.verdict.evidence.get("task")), None)
            mine = [each for each in record.judged if made is not None and each.rollout.task == made.id]
            passed = sum(each.verdict.passed for each in mine)
            assert (made is not None) is one.verdict.passed
            assert one.verdict.score == (reward("variance", passed, len(mine)) if made is not None else 0.0)
            assert made is None or made.provenance == f"proposed:n@{record.step}"
        group = record.groups[-1]
        assert (group.task, len(group.rollouts)) == (PROPOSER, 4)
        assert sum(group.advantages) == pytest.approx(0.0, abs=1e-9)
        trained = {one.rollout for one in samples(record.judged, record.groups)}
        assert {one.rollout.id for one in ours} <= trained or not group.kept
        assert all(one.family != PROPOSER for one in of_solvers(record.judged))
    assert any(record.groups[-1].kept for record in records), "a step trained on its proposals"
    require_apart(data, records)

    monkeypatch.setattr(Proposer, "propose", stopped)
    with (
        SqliteLedger(data / "ledger.sqlite3") as ledger,
        WorkContext(data, ledger, runtime, NIGHT.agent, load_policy(data)) as context,
        pytest.raises(MemoryFoundError, match=f"^{len(keys)}$"),
    ):
        train_night(context, "the next", recipe=NIGHT)


def require_apart(data: Path, records: list[StepRecord]) -> None:
    """No task of a proposal is a copy of what the night kept, and each that was one is on record as thrown out."""
    kept = SeparationIndex(kept_questions(data, "n"))
    proposed = [task for record in records for task in map(Task.model_validate, record.tasks) if is_proposed(task)]
    assert [match for task in proposed if (match := kept.met_by(task, written=not is_phrased(task))) is not None] == []
    assert {split_of_question(task.key) for task in proposed if is_phrased(task)} == {Split.TRAIN}
    with SqliteLedger(data / "ledger.sqlite3") as ledger:
        events = [event for _, event in ledger.events(limit=10_000) if event.kind == SEPARATION]
    found = Counter[str]()
    for event in events:
        found.update({name: int(count) for name, count in event.figures.items() if name.startswith(Door.PROPOSER)})
    refused = sum(record.metrics.get("proposals_refused_sealed", 0.0) for record in records)
    assert sum(found.values()) == refused > 0
    assert found[f"{Door.PROPOSER}/{Check.KEY}"] > 0, "a question that is sealed in one night or another"


class MemoryFoundError(Exception):
    """Says how much a proposer knows."""


def stopped(self: Proposer, step: int) -> None:
    raise MemoryFoundError(str(len(self._memory)))


TALL: Recipe = SHORT.model_copy(
    update={
        "training": SHORT.training.model_copy(
            update={"steps": 2, "tasks_per_step": 8, "rollouts_per_task": 2, "keep": 2}
        ),
        "proposer": ProposerRecipe(proposals=4, kinds=("deduction", "puzzle")),
        "agent": AgentBudget(max_tokens=4_000, concurrent=48),
    }
)


class Script:
    """Proposes better from step to step: more of its proposals can be read, and programs grow by a line. As a solver it
    knows the answers of programs, and says them for every other seed."""

    def __init__(self) -> None:
        self.renderer = load_renderer(read_model(FIXTURE))
        self.engine = ScriptedEngine(self, slots=TALL.agent.max_tokens, version="")
        self.asked: list[str] = []

    def __call__(self, request: GenerationRequest, known: Ids) -> Ids:
        text, step = self.renderer.text(request.prompt), int(self.engine.version.partition("@")[2] or 0)
        number = request.seed % 89
        if "Invent a Python function" in text or "Invent a puzzle" in text:
            self.asked.append(text)
            good = len(self.asked) % 4 <= step
            if "puzzle" in text:
                lines = f"a, b in 1..99\na + b == {number + 40}\na - b == {number % 2}\na != {number + 41}"
                return self.renderer.answer(f"```puzzle\n{lines if good else 'a'}\n```")
            body = "\n".join(f"    x = x * {line + 2} + k % {number + 2}" for line in range(step + 1))
            source = f"def f(x, k):\n{body if good else ''}\n    return x"
            return self.renderer.answer(f"```python\n{source}\n```\n```input\n7, {number}\n```")
        if request.seed % 2:
            return self.renderer.answer("\\boxed{0}")
        if "```python" in text:
            source, call = (part.split("\n```")[0] for part in text.split("```python\n")[1].split("```input\n"))
            names: dict[str, Any] = {}
            exec(source, names)
            return self.renderer.answer(f"\\boxed{{{eval(call, names)}}}")
        return self.renderer.answer("```\n((a 1) (b 2))\n```")


def test_a_scripted_proposer_that_gets_better_has_more_tasks_from_step_to_step(
    runtime: RuntimeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script()
    monkeypatch.setitem(ENGINES, "scripted", lambda rows, slots, threads: script.engine)
    with (
        SqliteLedger(tmp_path / "ledger.sqlite3") as ledger,
        WorkContext(tmp_path, ledger, runtime, TALL.agent, load_policy(tmp_path), engine="scripted") as context,
    ):
        train_night(context, "n", recipe=TALL)
        records = [one for step in range(2) if (one := ledger.step("n", step)) is not None]
    accepted = [record.metrics["proposals_accepted"] for record in records]
    assert accepted == sorted(accepted)
    assert accepted[-1] > accepted[0]
    for record in records:
        ours = [one for one in record.judged if one.family == PROPOSER]
        refused = sum(value for name, value in record.metrics.items() if name.startswith("proposals_refused_"))
        assert refused + record.metrics["proposals_accepted"] == len(ours) == 4
        assert {one.verdict.score for one in ours if not one.verdict.passed} <= {0.0}
    assert any("You do not solve this task" in text or "You solve these two" in text for text in script.asked[4:])

"""Rollouts that a kill cut short go on from their tokens, where what their tools did can be done again."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from agent_tasks import task_of
from scripted_engine import Ids, ScriptedEngine

from appliance.agent.assignment import Assignment
from appliance.agent.budget import AgentBudget
from appliance.agent.loop import Agent
from appliance.inference.engine import Engine, GenerationRequest
from appliance.inference.folder import read_model
from appliance.inference.torch.engine import TorchEngine
from appliance.records.rollouts import PartialRollout, Purpose, Rollout, RolloutEnd
from appliance.rendering.formats import load_renderer
from appliance.rendering.renderer import Renderer
from appliance.worker.training import partial_rollouts
from appliance.worker.training.partial_rollouts import KeptRollouts, PartialRollouts
from runtime.sandbox import SessionPool

SEEDLING = Path(__file__).parents[2] / "fixtures" / "seedling"


class Killed(Exception):
    """Stands for the end of the process: nothing is written after it."""


Look = Callable[[int, Sequence[PartialRollout]], bool]
"""Says by the number of looks, and by what is under way, whether the process ends now."""


def behind_a_result(_: int, parts: Sequence[PartialRollout]) -> bool:
    return any(part.nodes[-1].call is not None or len(part.nodes) > 3 for part in parts)


class Digests(list[str]):
    """Stands where the cycle's plan does."""

    def read(self) -> list[str]:
        return self

    def write(self, digests: Sequence[str]) -> None:
        self[:] = digests


RECORD = Digests()


def keeper_of(path: Path, staleness: int = 0) -> PartialRollouts:
    return PartialRollouts(path, time.monotonic, RECORD, staleness)


class MortalKeeper(PartialRollouts):
    looks = 0
    ends: Look

    def look(self, under_way: Callable[[], Sequence[PartialRollout]]) -> None:
        super().look(under_way)
        self.looks += 1
        if self.ends(self.looks, under_way()):
            raise Killed


@pytest.fixture(autouse=True)
def _written_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_rollouts, "SECONDS", 0.0)


def assigned(number: int, prompt: str) -> Assignment:
    return Assignment(
        id=f"r{number}",
        task=task_of(prompt),
        cycle="c",
        step=3,
        sample=number,
        purpose=Purpose.TRAIN,
        temperature=1.0,
        seed=number,
    )


def rolled(
    engine: Engine,
    pool: SessionPool,
    renderer: Renderer,
    prompts: Sequence[str],
    keeper: PartialRollouts | None,
    budget: AgentBudget = AgentBudget(max_tokens=240, concurrent=8),  # noqa: B008 - frozen
) -> list[Rollout]:
    agent = Agent(engine, pool, renderer, budget, time.monotonic)
    agent.keeper = keeper
    return agent.roll([assigned(number, prompt) for number, prompt in enumerate(prompts)])


def until_killed(
    path: Path, ends: Look, engine: Engine, pool: SessionPool, renderer: Renderer, prompts: Sequence[str]
) -> None:
    keeper = MortalKeeper(path, time.monotonic, RECORD)
    keeper.ends = ends
    with pytest.raises(Killed):
        rolled(engine, pool, renderer, prompts, keeper)


def scripted(renderer: Renderer, first: str, second: str = "print(y + 1)") -> ScriptedEngine:
    """Calls twice, the second time with what the first has left, and answers."""

    def script(request: GenerationRequest, known: Ids) -> Ids:
        said = renderer.text(known)
        if "y + 1" in said:
            return renderer.answer("\\boxed{6}")
        return renderer.call(second) if "y = " in said else renderer.call(first)

    return ScriptedEngine(script, version="c@3")


def test_a_rollout_goes_on_behind_its_calls_which_are_made_once_more(
    renderer: Renderer, sessions: SessionPool, tmp_path: Path
) -> None:
    path, prompts = tmp_path / "rollouts.json", ["a", "b"]
    first = scripted(renderer, "y = 5\nprint(y)")
    until_killed(path, behind_a_result, first, sessions, renderer, prompts)
    again = scripted(renderer, "y = 5\nprint(y)")
    keeper = keeper_of(path)
    rollouts = rolled(again, sessions, renderer, prompts, keeper)
    alone = rolled(scripted(renderer, "y = 5\nprint(y)"), sessions, renderer, prompts, None)
    assert [[node.ids for node in one.nodes] for one in rollouts] == [[node.ids for node in one.nodes] for one in alone]
    assert [one.ended for one in rollouts] == [RolloutEnd.ANSWERED] * 2
    assert [call.output.strip() for call in rollouts[0].calls] == ["5", "6"]
    assert again.tokens_sampled < sum(one.sampled_tokens for one in alone)
    assert all(
        len(request.prompt) > len(one.nodes[0].ids) for request, one in zip(again.requests.values(), alone, strict=True)
    )
    assert keeper.committed(3).startswith("2 rollouts resumed from ")
    assert (path.exists(), keeper.committed(3)) == (False, "")


def test_one_whose_result_comes_out_otherwise_begins_anew_and_that_is_said(
    renderer: Renderer, sessions: SessionPool, tmp_path: Path
) -> None:
    path, chance = tmp_path / "rollouts.json", "import time\ny = time.time()\nprint(y)"
    until_killed(path, behind_a_result, scripted(renderer, chance), sessions, renderer, ["a"])
    keeper = keeper_of(path)
    again = scripted(renderer, chance)
    (rollout,) = rolled(again, sessions, renderer, ["a"], keeper)
    assert rollout.ended is RolloutEnd.ANSWERED
    assert len(again.requests[0].prompt) == len(rollout.nodes[0].ids)
    assert keeper.committed(3) == "0 rollouts resumed from 0 tokens, 1 restarted"


def test_a_turn_that_was_cut_in_its_middle_is_the_turn_that_it_would_have_been(
    sessions: SessionPool, tmp_path: Path
) -> None:
    files = read_model(SEEDLING)
    renderer, prompts = load_renderer(files), ["What is 3 plus 4?", "What is 12 times 5?", "What is 9 minus 2?"]

    def engine() -> TorchEngine:
        made = TorchEngine(8, 240)
        made.push(files, "c@3")
        return made

    alone = rolled(engine(), sessions, renderer, prompts, None)
    for looks in (3, 9, 30):
        path = tmp_path / f"{looks}.json"
        until_killed(path, lambda number, _, looks=looks: number == looks, engine(), sessions, renderer, prompts)
        keeper, again = keeper_of(path), engine()
        rollouts = rolled(again, sessions, renderer, prompts, keeper)
        assert [[node.ids for node in one.nodes] for one in rollouts] == [
            [node.ids for node in one.nodes] for one in alone
        ]
        for one, other in zip(rollouts, alone, strict=True):
            for node, same in zip(one.nodes, other.nodes, strict=True):
                assert node.logprobs == pytest.approx(same.logprobs, abs=1e-4)
                assert [span.version for span in node.weights] == ["c@3"] * node.sampled
        kept = sum(one.sampled_tokens for one in alone) - again.tokens_sampled
        assert kept >= looks
        assert f" resumed from {kept} tokens, 0 restarted" in keeper.committed(3)


def test_a_rollout_of_very_many_turns_goes_on_as_well(
    renderer: Renderer, sessions: SessionPool, tmp_path: Path
) -> None:
    path, budget = tmp_path / "rollouts.json", AgentBudget(max_tokens=1 << 20, max_calls=400)

    def engine() -> ScriptedEngine:
        return ScriptedEngine(lambda request, known: renderer.call(" "), version="c@3")

    (whole,) = rolled(engine(), sessions, renderer, ["a"], None, budget)
    assert len(whole.calls) == 400
    part = PartialRollout(id="r0", cycle="c", step=3, nodes=whole.nodes[:-1])
    data = KeptRollouts(parts=(part,)).model_dump_json()
    path.write_text(data)
    RECORD.write([hashlib.sha256(data.encode()).hexdigest()])
    again = engine()
    assert [one.nodes for one in rolled(again, sessions, renderer, ["a"], keeper_of(path), budget)] == [whole.nodes]
    assert again.steps == 1


def test_what_was_drawn_by_weights_that_are_too_old_or_cannot_be_read_is_begun_anew(
    renderer: Renderer, sessions: SessionPool, tmp_path: Path
) -> None:
    path = tmp_path / "rollouts.json"
    old = scripted(renderer, "y = 5\nprint(y)")
    old.version = "c@1"
    until_killed(path, behind_a_result, old, sessions, renderer, ["a"])
    assert keeper_of(path, staleness=2).part("r0") is not None
    keeper = keeper_of(path, staleness=1)
    assert keeper.part("r0") is None
    assert keeper.committed(3) == "0 rollouts resumed from 0 tokens, 1 restarted"
    path.write_bytes(b"{")
    broken = keeper_of(path)
    assert (broken.part("r0"), broken.whole("r0")) == (None, None)
    assert "do not match the recorded digest: all restarted" in broken.committed(3)
    path.write_bytes(b"{")
    RECORD.write([hashlib.sha256(b"{").hexdigest()])
    assert "cannot be read" in keeper_of(path).committed(3)


def answered_ones(path: Path, pool: SessionPool, renderer: Renderer) -> list[Rollout]:
    """Leaves a file in which both rollouts have ended."""

    def all_ended(_: int, parts: Sequence[PartialRollout]) -> bool:
        return path.exists() and len(KeptRollouts.model_validate_json(path.read_bytes()).whole) == 2

    until_killed(path, all_ended, answering(renderer), pool, renderer, ["a", "b"])
    return list(KeptRollouts.model_validate_json(path.read_bytes()).whole)


def answering(renderer: Renderer) -> ScriptedEngine:
    return ScriptedEngine(lambda request, known: renderer.answer("\\boxed{6}"), version="c@3")


def test_a_file_that_was_changed_on_disk_is_not_trained_on_and_that_is_said(
    renderer: Renderer, sessions: SessionPool, tmp_path: Path
) -> None:
    path = tmp_path / "rollouts.json"
    whole = answered_ones(path, sessions, renderer)
    kept = keeper_of(path)
    assert kept.whole("r0") == whole[0]
    node = whole[0].nodes[-1]
    nodes = (*whole[0].nodes[:-1], node.model_copy(update={"logprobs": tuple(-9.0 for _ in node.logprobs)}))
    changed = whole[0].model_copy(update={"nodes": nodes})
    path.write_text(KeptRollouts(whole=(changed, whole[1])).model_dump_json())
    keeper, again = keeper_of(path), answering(renderer)
    rollouts = rolled(again, sessions, renderer, ["a", "b"], keeper)
    assert [one.nodes[-1].logprobs for one in rollouts] == [one.nodes[-1].logprobs for one in whole]
    assert len(again.requests) == 2
    assert keeper.committed(3) == "saved rollouts do not match the recorded digest: all restarted"


def test_what_was_kept_and_not_asked_for_yet_outlives_a_second_kill(
    renderer: Renderer, sessions: SessionPool, tmp_path: Path
) -> None:
    path = tmp_path / "rollouts.json"
    whole = answered_ones(path, sessions, renderer)
    keeper = keeper_of(path)
    assert keeper.whole("r0") == whole[0]
    keeper.look(list)
    again = keeper_of(path)
    assert [again.whole("r0"), again.whole("r1")] == whole
    keeper.committed(3)
    assert not path.exists()
    keeper.look(list)
    assert not path.exists(), "there is nothing to keep"


@pytest.mark.parametrize("update", [{"answer": "7"}, {"answers": 2}, {"sample": 1}, {"task": "t"}, {"prompt": True}])
def test_a_rollout_that_ended_and_is_not_of_its_assignment_is_begun_anew(
    renderer: Renderer, sessions: SessionPool, tmp_path: Path, update: dict[str, object]
) -> None:
    path = tmp_path / "rollouts.json"
    whole = answered_ones(path, sessions, renderer)
    if "prompt" in update:
        update = {"nodes": (whole[0].nodes[0].model_copy(update={"ids": (1, 2)}), *whole[0].nodes[1:])}
    data = KeptRollouts(whole=(whole[0].model_copy(update=update), whole[1])).model_dump_json()
    path.write_text(data)
    RECORD.write([hashlib.sha256(data.encode()).hexdigest()])
    keeper, again = keeper_of(path), answering(renderer)
    rollouts = rolled(again, sessions, renderer, ["a", "b"], keeper)
    assert [one.answer for one in rollouts] == ["6", "6"]
    assert len(again.requests) == 1
    assert keeper.committed(3).endswith(" 1 restarted")


def test_steps_that_are_short_write_nothing_and_a_long_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partial_rollouts, "SECONDS", 20.0)
    now, path = [0.0], tmp_path / "rollouts.json"
    keeper = PartialRollouts(path, lambda: now[0], Digests())
    part = PartialRollout(id="r0", cycle="c", step=3, nodes=())
    for step in range(9):
        for _ in range(3):
            now[0] += 5.0
            keeper.look(lambda: [part])
        assert not path.exists()
        keeper.committed(step)
    for _ in range(4):
        now[0] += 5.0
        keeper.look(lambda: [part])
    assert path.exists()


def test_what_is_kept_of_a_step_that_is_under_way_stays_when_the_one_before_it_is_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partial_rollouts, "SECONDS", 20.0)
    now, path, record = [0.0], tmp_path / "rollouts.json", Digests()
    keeper = PartialRollouts(path, lambda: now[0], record, staleness=1)
    now[0] = 20.0
    keeper.look(lambda: [PartialRollout(id=f"r{step}", cycle="c", step=step, nodes=()) for step in (0, 1)])
    keeper.committed(0)
    assert PartialRollouts(path, lambda: now[0], record, staleness=1).part("r1") is not None
    for step in (1, 2):  # each shorter than the time between two writes
        keeper.committed(step)
        assert not path.exists()
        now[0] += 12.0
        keeper.look(lambda: [PartialRollout(id="r9", cycle="c", step=9, nodes=())])
    assert path.exists()

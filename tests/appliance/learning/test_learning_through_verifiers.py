"""An environment of the real package verifiers samples through our wire, and our learner takes a step from it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from chat_models import qwen3_folder
from learning_builders import verdict
from verifiers_environment import NoVerifiersError, verifiers_python

from appliance.inference.engine import GenerationRequest, Turn
from appliance.inference.folder import open_model, read_model
from appliance.inference.http.generate_server import GenerateServer
from appliance.inference.torch.engine import TorchEngine
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.signal.grouping import make_groups
from appliance.learning.training.trainer import Trainer
from appliance.records.rollouts import Message, Purpose, Role, Rollout, RolloutEnd, WeightSpan
from appliance.records.training import Judged
from verifiers.contract.verdict import Outcome

WIRE = Path(__file__).parents[2] / "fixtures" / "verifiers_wire"
KEY = "a key of some length"
TIMES = 6
RECIPE = TrainingRecipe(rollouts_per_task=TIMES, keep=4, selector="uniform", learning_rate=1e-2, minibatches=1)


class RecordingEngine(TorchEngine):
    """Remembers every prompt with what was drawn behind it."""

    def __init__(self) -> None:
        super().__init__(rows=8, slots=256)
        self.prompts: dict[int, tuple[int, ...]] = {}
        self.turns: list[tuple[tuple[int, ...], Turn]] = []

    def submit(self, request: GenerationRequest) -> None:
        super().submit(request)
        self.prompts[request.id] = request.prompt

    def step(self) -> list[Turn]:
        turns = super().step()
        self.turns += [(self.prompts[turn.request], turn) for turn in turns]
        return turns


def episodes(server: GenerateServer, folder: Path, home: Path) -> list[dict[str, Any]]:
    try:
        python = verifiers_python()
    except NoVerifiersError as error:
        pytest.skip(str(error))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(WIRE),
        "ASSAY_ENGINE_KEY": KEY,
        "HF_HUB_OFFLINE": "1",
    }
    command = [str(python), str(WIRE / "play.py"), server.address, "policy", str(folder), str(TIMES)]
    ran = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=280, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return [json.loads(line) for line in ran.stdout.splitlines()]


def branches(trace: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The paths from a first message to one that nothing follows, if something was sampled at the end of it."""
    nodes = trace["nodes"]
    parents = {node["parent"] for node in nodes}
    found = []
    for leaf in range(len(nodes)):
        if leaf not in parents and nodes[leaf]["sampled"]:
            path: list[dict[str, Any]] = []
            at: int | None = leaf
            while at is not None:
                path.insert(0, nodes[at])
                at = nodes[at]["parent"]
            found.append(path)
    return found


def rollout_of(episode: dict[str, Any], number: int, version: str) -> Judged:
    """What our learner makes of an episode: a training sample for each branch, tokens and log-probabilities as sent."""
    (trace,) = episode["traces"]
    made: list[Message] = []
    for path in branches(trace):
        begins = True
        for node in path:
            own = [bool(mark) for mark in node["mask"]]
            cut = own.index(True) if any(own) else len(own)
            assert own == [False] * cut + [True] * (len(own) - cut)
            for ids, sampled in ((node["token_ids"][:cut], False), (node["token_ids"][cut:], True)):
                if ids:
                    made.append(
                        Message(
                            parent=None if begins else len(made) - 1,
                            role=Role.ASSISTANT if sampled else Role.USER,
                            ids=tuple(ids),
                            sampled=sampled,
                            logprobs=tuple(node["logprobs"]) if sampled else (),
                            weights=(WeightSpan(version=version, start=0, end=len(ids)),) if sampled else (),
                        )
                    )
                    begins = False
    task, reward = trace["task"]["data"]["name"], trace["rewards"]["even"]["score"]
    return Judged(
        rollout=Rollout(
            id=f"c/train/0/{task}/{number}",
            cycle="c",
            step=0,
            task=task,
            sample=number,
            purpose=Purpose.TRAIN,
            temperature=1.0,
            nodes=tuple(made),
            ended=RolloutEnd.ANSWERED,
            answer=None,
            answers=1,
            seconds=0.0,
        ),
        verdict=verdict(Outcome.PASS if reward else Outcome.FAIL),
        family=task,
    )


def sampled_turns(paths: Sequence[Sequence[dict[str, Any]]]) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The prompt and the completion of each sampled message, as verifiers kept them."""
    found = set()
    for path in paths:
        before: tuple[int, ...] = ()
        for node in path:
            cut = node["mask"].index(True) if node["sampled"] else len(node["mask"])
            before += tuple(node["token_ids"][:cut])
            if node["sampled"]:
                found.add((before, tuple(node["token_ids"][cut:])))
            before += tuple(node["token_ids"][cut:])
    return found


def test_c17_a_verifiers_task_trains_a_step_with_ids_equal_on_both_sides(tmp_path: Path) -> None:
    folder = qwen3_folder(tmp_path / "model")
    model = open_model(read_model(folder))
    engine = RecordingEngine()
    engine.push(model, "before")
    with GenerateServer(engine, model="policy", most_tokens=256, key=KEY) as server:
        played = episodes(server, folder, tmp_path)
        assert [(one["ok"], one["errors"]) for one in played] == [(True, [])] * (3 * TIMES)
        theirs = sampled_turns([path for one in played for path in branches(one["traces"][0])])
        assert theirs == {(prompt, turn.ids) for prompt, turn in engine.turns}
        assert len(engine.turns) == 2 * 3 * TIMES
        ours = {(prompt, turn.ids): turn.logprobs for prompt, turn in engine.turns}
        for one in played:
            for path in branches(one["traces"][0]):
                last = path[-1]
                before = tuple(token for node in path for token in node["token_ids"])[: -len(last["logprobs"])]
                kept = ours[before, tuple(last["token_ids"][-len(last["logprobs"]) :])]
                assert last["logprobs"] == pytest.approx(kept, abs=1e-4)

        judged = [rollout_of(one, number % TIMES, "before") for number, one in enumerate(played)]
        weights = model.lm_head.weight.clone()
        trainer = Trainer(model, RECIPE, seed=1, max_tokens=256)
        groups = make_groups(judged, RECIPE, seed=9)
        figures = trainer.train_step(0, judged, groups)
        kept_ids = {group.rollouts[place] for group in groups for place in group.kept}
        trained = [one for one in judged if one.rollout.id in kept_ids]
        assert figures["tokens"] == sum(len(node.logprobs) for one in trained for node in one.rollout.nodes) > 0
        assert figures["mismatch_kl"] < 1e-4
        assert figures["ratio"] == pytest.approx(1.0, abs=1e-3)
        assert not torch.equal(weights, model.lm_head.weight)
        assert server.push(model, "after").version == "after"
        _, turn = server._loop.generate(GenerationRequest(0, engine.turns[0][0], -1, 200, 1.0, 1))
        assert [span.version for span in turn.result().weights] == ["after"]

"""Learners on another host of a Ray cluster learn what they learn here, and go on after they were killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from learning_builders import varied
from ray_nodes import Nodes
from test_learning_ranks import SMALL, files_of, furthest
from test_learning_trainer import records

from appliance.inference.engine import ModelError
from appliance.inference.folder import open_model
from appliance.learning.errors import CheckpointError, LearningError
from appliance.learning.training.ranked_trainer import RankedTrainer
from appliance.learning.training.trainer import Trainer
from appliance.placement.engines import PlacedLearners
from appliance.placement.settings import PlacementSettings
from runtime.errors import InfrastructureError
from runtime.settings import ClusterSettings

CLUSTER = PlacementSettings(learners="cluster")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterSettings]:
    made = Nodes(tmp_path_factory.mktemp("roots"))
    try:
        made.begin(0)
        made.wait(0)
        yield made.driver()
    finally:
        left = made.close()
    assert left == []


@pytest.mark.timeout(1_200)
def test_learners_on_another_host_learn_the_same_and_go_on_from_a_checkpoint_after_they_were_killed(
    cluster: ClusterSettings, tmp_path: Path
) -> None:
    files = files_of(varied(layers=2), tmp_path / "model")
    models = [open_model(files) for _ in range(3)]
    first = PlacedLearners(1, cluster=cluster, placement=CLUSTER, threads=1)
    there = RankedTrainer(first, models[0], SMALL, 1, max_tokens=64, companions=files)
    here = Trainer(models[1], SMALL, 1, max_tokens=64, companions=files)
    told = {}
    for step in range(2):
        told, expected = there.train_step(step, *records(step)), here.train_step(step, *records(step))
        assert told["loss"] == pytest.approx(expected["loss"], rel=1e-4, abs=1e-6)
        if step == 0:
            there.save(tmp_path / "there", {"by": "x"})
    assert furthest(models[0], models[1]) < 5e-6
    with pytest.raises(LearningError, match="step 7 does not follow"):
        there.train_step(7, *records(7))
    with pytest.raises(CheckpointError, match="nothing"):
        there.restore(tmp_path / "nothing")
    os.kill(first.pid, signal.SIGKILL)
    with pytest.raises(InfrastructureError, match="ended during step"):
        there.train_step(2, *records(2))
    first.close()
    second = PlacedLearners(1, cluster=cluster, placement=CLUSTER, threads=1)
    onward = RankedTrainer(second, models[2], SMALL, 1, max_tokens=64, companions=files)
    assert onward.restore(tmp_path / "there") == {"by": "x"}
    assert onward.train_step(1, *records(1))["loss"] == told["loss"]
    pairs = zip(models[2].parameters(), models[0].parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    second.close()


def test_learners_without_a_cluster_are_refused_with_what_to_do() -> None:
    with pytest.raises(ModelError, match="not in one") as caught:
        PlacedLearners(1, cluster=None, placement=CLUSTER)
    assert "cluster.address" in caught.value.hint


def test_more_learners_in_the_cluster_than_their_gpus_are_refused() -> None:
    placement = PlacementSettings(learners="cluster", learner_gpus=1)
    with pytest.raises(ModelError, match=r"2 learners need a GPU each, but placement.learner_gpus is 1") as caught:
        PlacedLearners(2, cluster=None, placement=placement)
    assert "placement.learner_gpus" in caught.value.hint

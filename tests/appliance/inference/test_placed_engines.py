"""An engine on another host of a Ray cluster is what an engine is here, and one that is lost costs no token."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from ray_nodes import Nodes, standing, until
from test_engine_conformance import (  # the same checks, of the engine below
    SLOTS,
    asked,
    test_a_closed_engine_holds_nothing,
    test_a_push_is_proved_by_the_digest_of_what_arrived,
    test_a_turn_that_stopped_waits_and_goes_on_behind_what_is_forced,
    test_an_engine_without_weights_serves_nobody,
    test_every_token_says_which_weights_drew_it,
    test_forced_tokens_that_leave_no_room_or_are_no_tokens_are_refused,
    test_new_weights_never_come_in_the_middle_of_a_conversation,
    test_scores_are_the_log_probabilities_that_were_sampled_under,
    test_what_is_taken_back_in_the_middle_goes_on_from_its_tokens,
    tiny,
)
from vllm_engines import KeptProcesses

from appliance.inference.engine import Engine, ModelError, Turn
from appliance.inference.torch.engine import TorchEngine
from appliance.inference.vllm.engine import VllmEngine
from appliance.inference.vllm.placement import VllmSettings
from appliance.inference.vllm.process import DivergedError
from appliance.inference.weights import push_model
from appliance.placement.engines import SERVANT, PlacedEngineProcess, make_placed_engines
from appliance.placement.settings import PlacementSettings
from appliance.scheduling.engine_pool import EnginePool
from runtime.cluster import PlacedChannel, PlacementRequest
from runtime.cluster.folder import clear
from runtime.cluster.placed_actor import PlacedActor
from runtime.errors import BadRequestError, InfrastructureError
from runtime.settings import ClusterSettings

__all__ = [
    "test_a_closed_engine_holds_nothing",
    "test_a_push_is_proved_by_the_digest_of_what_arrived",
    "test_a_turn_that_stopped_waits_and_goes_on_behind_what_is_forced",
    "test_an_engine_without_weights_serves_nobody",
    "test_every_token_says_which_weights_drew_it",
    "test_forced_tokens_that_leave_no_room_or_are_no_tokens_are_refused",
    "test_new_weights_never_come_in_the_middle_of_a_conversation",
    "test_scores_are_the_log_probabilities_that_were_sampled_under",
    "test_what_is_taken_back_in_the_middle_goes_on_from_its_tokens",
]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with standing(tmp_path_factory.mktemp("roots"), gpus=3) as made:
        yield made


@pytest.fixture(scope="module")
def cluster(nodes: Nodes) -> ClusterSettings:
    return nodes.driver()


@pytest.fixture(scope="module")
def kept(cluster: ClusterSettings) -> Iterator[KeptProcesses]:
    """Actors that a closed engine leaves to the next one."""
    kept = KeptProcesses(partial(PlacedEngineProcess, cluster, PlacementRequest(servant=SERVANT), "torch", 1))
    yield kept
    kept.end()


@pytest.fixture
def engine(kept: KeptProcesses) -> Iterator[Engine]:
    made = VllmEngine(2, SLOTS, start=kept.start)
    yield made
    made.close()


def placed(cluster: ClusterSettings | None, count: int = 1, **more: Any) -> list[Any]:
    given = {"engine": "torch", "placement": PlacementSettings(), **more}
    return make_placed_engines(given.pop("engine"), count, cluster=cluster, rows=2, slots=SLOTS, threads=1, **given)


def drawn_greedily(engine: Engine, turns: list[Turn]) -> list[tuple[int, tuple[int, ...]]]:
    while len(turns) < 2:
        turns += engine.step()
    return sorted((turn.request, turn.ids) for turn in turns)


def has_ended(pid: int) -> bool:
    """Also where nobody has asked yet how it ended."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_c10_an_engine_that_is_killed_in_a_rollout_is_replaced_and_the_rollout_goes_on_from_its_tokens(
    cluster: ClusterSettings, nodes: Nodes
) -> None:
    here, (there,) = TorchEngine(2, SLOTS), placed(cluster)
    for engine in (here, there):
        push_model(engine, tiny("qwen2"), "a")
        for number in range(2):
            engine.submit(asked(number, prompt=(1, 2, 3 + number), temperature=0.0))
    turns = list(there.step())
    process = there.supervisor._process
    assert process.host == "host-0"
    before = there.lengths()
    os.kill(process.pid, signal.SIGKILL)
    again = drawn_greedily(there, turns)
    assert again == drawn_greedily(here, [])
    assert any(length > 3 for length in before.values()) or turns
    assert "lost" in there.supervisor.quarantined[0]
    assert there.supervisor._process.host == "host-1"
    until(lambda: has_ended(process.engine_pid), 150, "what computed for it ended with it")
    for number in range(2):
        there.finish(number)
    there.close()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cluster": None}, "not in one"),
        ({"engine": "script"}, "runs only here"),
        ({"device": "cuda"}, "get no GPU"),
        ({"vllm": VllmSettings(gpus=(0,))}, "names GPUs of this machine"),
        ({"vllm": VllmSettings(tensor_parallel=2)}, "an engine gets 0 GPUs"),
    ],
)
def test_what_the_cluster_cannot_give_is_refused_before_anything_starts(wrong: dict[str, Any], message: str) -> None:
    asked_for = {"cluster": ClusterSettings(address="127.0.0.2:26379", token=Path("/nowhere")), **wrong}
    with pytest.raises(ModelError, match=message):
        placed(**asked_for)


def test_a_question_for_preemptions_is_answered_also_where_weights_have_diverged() -> None:
    class Diverged(PlacedEngineProcess):
        def __init__(self) -> None:
            self.preempted = 3

        def ask(self, kind: str, **_: Any) -> dict[str, Any]:
            raise DivergedError(kind)

    assert Diverged().count_preemptions() == 3


def test_nothing_but_what_this_product_serves_is_begun_on_a_host() -> None:
    with pytest.raises(BadRequestError, match="not a valid servant"):
        PlacedActor("os:system")


def test_one_engine_of_two_is_replaced_on_one_host_after_the_other(cluster: ClusterSettings) -> None:
    first, second = placed(cluster, 2)
    push_model(first, tiny("qwen2"), "a")
    was = [first.supervisor._process.host]
    for _ in range(2):
        os.kill(first.supervisor._process.pid, signal.SIGKILL)
        first.score([(1, 2, 3)])
        was.append(first.supervisor._process.host)
    assert was == ["host-0", "host-1", "host-0"]
    first.close()
    second.close()


def test_what_hangs_while_a_file_is_copied_to_it_is_lost_and_nobody_waits_for_it(
    cluster: ClusterSettings, tmp_path: Path
) -> None:
    (tmp_path / "weights").write_bytes(bytes(100))
    channel = PlacedChannel(cluster, PlacementRequest(servant=SERVANT, silent_seconds=4))
    os.kill(channel.pid, signal.SIGSTOP)
    try:
        with pytest.raises(InfrastructureError, match="is silent"):
            channel.put(tmp_path / "weights")
    finally:
        os.kill(channel.pid, signal.SIGKILL)
        channel.close()


def test_nothing_is_placed_on_a_host_with_another_version_of_the_program(cluster: ClusterSettings) -> None:
    with pytest.raises(InfrastructureError, match="another version of Assay") as refused:
        PlacedChannel(cluster, PlacementRequest(servant=SERVANT, program="0" * 64))
    assert "same version" in refused.value.hint


@pytest.mark.parametrize(
    ("gpus", "seconds", "said", "hint"),
    [
        (4, 3.0, "no host of the cluster had 4 GPUs free and started .* within 3 s", "placement.engine_gpus"),
        (0, 0.001, "did not start the actor within 0.001 s", "assay cluster status"),
    ],
)
def test_what_does_not_begin_in_time_says_for_want_of_what(
    gpus: int, seconds: float, said: str, hint: str, cluster: ClusterSettings
) -> None:
    with pytest.raises(InfrastructureError, match=said) as refused:
        PlacedChannel(cluster, PlacementRequest(servant=SERVANT, gpus=gpus, ready_seconds=seconds))
    assert hint in refused.value.hint


def test_where_a_host_with_free_gpus_takes_nothing_new_another_one_with_some_does(
    cluster: ClusterSettings, nodes: Nodes
) -> None:
    def begun() -> PlacedChannel:
        return PlacedChannel(cluster, PlacementRequest(servant=SERVANT, gpus=1))

    channels = [begun(), begun()]
    leaving = channels[0].host
    draining = nodes.folder / leaving.replace("host-", "n") / "draining"
    draining.touch()
    try:
        elsewhere = [begun(), begun()]
        channels += elsewhere
        assert leaving not in {channel.host for channel in elsewhere}
    finally:
        draining.unlink()
        for channel in channels:
            channel.close()


def test_one_of_three_hosts_that_dies_takes_its_own_engine_and_the_others_sample_on(
    cluster: ClusterSettings, nodes: Nodes
) -> None:
    nodes.begin(2)
    nodes.wait(2)
    engines = placed(cluster, 3)
    pool = EnginePool(engines, SLOTS)
    push_model(pool, tiny("qwen2"), "a")
    assert [one.supervisor._process.host for one in engines] == ["host-0", "host-1", "host-2"]
    for number in range(6):
        pool.submit(asked(number, prompt=(1, 2, 3 + number), temperature=0.0))
    turns = list(pool.step())
    lost = nodes.session(1)
    nodes.processes[1].kill()
    lost.kill()
    clear(nodes.folder / "n1")
    while len(turns) < 6:
        turns += pool.step()
    here = TorchEngine(6, SLOTS)
    push_model(here, tiny("qwen2"), "a")
    for number in range(6):
        here.submit(asked(number, prompt=(1, 2, 3 + number), temperature=0.0))
    expected: list[Turn] = []
    while len(expected) < 6:
        expected += here.step()
    assert {turn.request: turn.ids for turn in turns} == {turn.request: turn.ids for turn in expected}
    assert {one.supervisor._process.host for one in engines} == {"host-0", "host-2"}
    pool.close()

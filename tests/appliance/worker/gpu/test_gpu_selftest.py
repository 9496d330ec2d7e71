"""The self-test of GPUs on a machine without one: every probe runs on the processor, and nothing is claimed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from forked_commands import run_forked
from vllm_engines import Faults, needs_vllm

from appliance.gpu_selftest import probes, ranks
from appliance.gpu_selftest import ranks as gpu_ranks
from appliance.gpu_selftest.errors import ProbeNotRunError
from appliance.gpu_selftest.probe_models import SMALL
from appliance.gpu_selftest.run import GPU_ROWS, NO_GPU, NO_VLLM, run_selftest
from appliance.inference.torch.engine import TorchEngine
from appliance.inference.vllm.engine import VllmEngine
from appliance.inference.vllm.placement import VllmSettings, count_gpus
from appliance.inference.vllm.transfers import WAYS
from appliance.learning.errors import NotFiniteError
from appliance.learning.rank_processes import RankProcesses

CPU = torch.device("cpu")
ON_A_PROCESSOR = {
    "G3": (lambda: probes.graph_and_push(CPU, SMALL), "a CPU records none"),
    "G4": (lambda: probes.half_precision(CPU, SMALL), "with a float32 head"),
    "G6": (lambda: probes.step_time(CPU, SMALL, 1e12), "% of its data sheet, idle share not run; TRL: not run"),
    "G10": (lambda: probes.memory_ladder(CPU, SMALL), "no memory limit to test"),
}


@pytest.mark.parametrize("name", ON_A_PROCESSOR)
def test_a_probe_computes_on_a_processor_and_says_what_that_does_not_show(name: str) -> None:
    probe, said = ON_A_PROCESSOR[name]
    (result,) = run_selftest(1, vllm=True, only=name, probes={name: probe})
    assert (result.outcome, said in result.seen) == ("held", True), result.seen


def test_a_graph_that_kept_its_old_weights_fails_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(layer: torch.nn.Module, given: torch.Tensor) -> object:
        kept = layer(given)
        return (lambda: None), kept

    monkeypatch.setattr(probes, "_recorded", deaf)
    (result,) = run_selftest(1, vllm=True, only="G3", probes={"G3": ON_A_PROCESSOR["G3"][0]})
    assert (result.outcome, result.seen) == ("failed", "a recorded pass uses the weights from before the push")


def test_a_half_precision_that_is_far_off_fails_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "MAX_KL", 1e-9)
    (result,) = run_selftest(1, vllm=True, only="G4", probes={"G4": ON_A_PROCESSOR["G4"][0]})
    assert result.outcome == "failed"


def test_rollouts_beside_the_learner_are_measured_in_turn_with_those_that_wait_for_it() -> None:
    size = ranks.OverlapSize(SMALL, drawn=8, rounds=2)
    found = ranks.measure(TorchEngine(SMALL.rollouts, SMALL.tokens), CPU, size)
    assert min(found.push, found.sampling, found.learning, found.together, found.with_pushes) > 0
    assert found.spread[0] <= found.worth <= found.spread[1]
    assert f"{found.worth:.2f} times" in str(found)


@pytest.mark.parametrize(("worth", "outcome"), [(1.2, "failed"), (1.4, "held")])
def test_rollouts_beside_the_learner_that_are_worth_too_little_fail_their_row(
    worth: float, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = ranks.Overlap(1.0, 2.0, 2.0, 4.0 / worth, worth, (worth, worth))
    for name in ("TorchEngine", "VllmEngine"):
        monkeypatch.setattr(ranks, name, lambda *_, **__: None)
    monkeypatch.setattr(ranks, "measure", lambda *_: seen)
    size = ranks.OverlapSize(SMALL, drawn=8, rounds=1)
    probe = {"G8": lambda: ranks.rollouts_beside_learner(torch.device("cuda", 0), size)}
    (result,) = run_selftest(1, vllm=False, only="G8", probes=probe)
    assert (result.outcome, f"{worth:.2f} times" in result.seen) == (outcome, True)


@pytest.fixture(params=["kept", pytest.param("anew", marks=pytest.mark.slow)])
def learners(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The processes of the two learners: started once for all measurements, or anew for each, as on a machine."""
    if request.param == "anew":
        yield
        return
    with RankProcesses(("cpu", "cpu")) as kept:

        def lent(devices: Sequence[str], *, variables: Mapping[str, str]) -> AbstractContextManager[RankProcesses]:
            assert (devices, [*variables]) == (("cpu", "cpu"), ["NCCL_P2P_DISABLE"])
            return nullcontext(kept)

        monkeypatch.setattr(gpu_ranks, "RankProcesses", lent)
        yield


@pytest.mark.usefixtures("learners")
def test_two_learners_learn_what_one_does_with_and_without_direct_access_and_one_gpu_shows_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = gpu_ranks.sharded_learners(("cpu", "cpu"), SMALL)
    assert "FSDP2 on cpu, cpu: one learner " in seen
    assert "2 learners with NCCL_P2P_DISABLE=0 " in seen
    assert "2 learners with NCCL_P2P_DISABLE=1 " in seen
    with pytest.raises(ProbeNotRunError, match="it needs two GPUs"):
        gpu_ranks.sharded_learners(("cuda:0",), SMALL)
    monkeypatch.setattr(gpu_ranks, "APART", 1e-12)
    probe = {"G9": lambda: gpu_ranks.sharded_learners(("cpu", "cpu"), SMALL)}
    (result,) = run_selftest(2, vllm=True, only="G9", probes=probe)
    assert (result.outcome, "of their movement" in result.seen) == ("failed", True), result.seen


def test_a_row_of_whose_parts_none_was_run_is_not_run_and_one_that_was_is_enough() -> None:
    missing, moments = lambda: probes.adapter_on_vllm(SMALL, None), lambda: probes.moments_of_8_bits(CPU, SMALL)
    for parts, outcome in (((missing,), "not run"), ((missing, moments), "held")):
        probe = {"G9": lambda parts=parts: probes.in_parts(*parts)}
        (result,) = run_selftest(1, vllm=False, only="G9", probes=probe)
        assert result.outcome == outcome
        assert "kernels: not run, no environment" in result.seen
        assert ("a step with 8-bit moments" in result.seen) is (outcome == "held")


def test_state_in_main_memory_changes_no_weight() -> None:
    assert (
        probes.state_in_main_memory(CPU, SMALL)
        == "two steps with moments and inputs of layers in main memory, 0e+00 off"
    )


def test_moments_that_break_while_they_are_tried_fail_their_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise NotFiniteError("the gradient is not finite", hint="lower the learning rate")

    monkeypatch.setattr(probes, "make_trainer", lambda *_: SimpleNamespace(step=0))
    monkeypatch.setattr(probes, "learn_step", breaks)
    probe = {"G9": lambda: probes.in_parts(lambda: probes.moments_of_8_bits(CPU, SMALL))}
    (result,) = run_selftest(1, vllm=False, only="G9", probes=probe)
    assert (result.outcome, result.seen) == ("failed", "the gradient is not finite")


def test_on_a_machine_without_a_gpu_nothing_is_run_and_each_row_says_what_runs_it() -> None:
    results = list(run_selftest(0, vllm=False, probes={}))
    assert [result.name for result in results] == [f"G{number}" for number in range(1, 11)]
    for result in results:
        assert (result.outcome, result.seen) == ("not run", NO_GPU)
        assert result.command == f"assay selftest gpu --only {result.name}"


def test_with_a_gpu_what_is_not_built_or_has_no_environment_is_still_not_run() -> None:
    held = {row.name: lambda: "seen" for row in GPU_ROWS}
    found = {result.name: result for result in run_selftest(1, vllm=False, probes=held)}
    assert [name for name, result in found.items() if result.outcome == "held"] == ["G3", "G4", "G6", "G8", "G9", "G10"]
    assert {found[name].seen for name in ("G1", "G2", "G7")} == {NO_VLLM}
    assert found["G5"].seen.startswith("not needed")


@pytest.mark.skipif(count_gpus() > 0, reason="this machine has a GPU")
def test_the_command_says_for_each_row_that_there_is_no_gpu_and_ends_with_5(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    shown = run_forked(("selftest", "gpu"), home)
    assert shown.returncode == 5
    lines = shown.stdout.decode().splitlines()
    assert [line.split()[0] for line in lines if "not run: no GPU" in line] == [row.name for row in GPU_ROWS]
    assert lines[-1] == "0 of 10 rows ran, 0 failed"
    asked = run_forked(("selftest", "gpu", "--only", "G3", "--json"), home)
    assert asked.returncode == 5
    assert [row["outcome"] for row in json.loads(asked.stdout)["rows"]] == ["not run"]
    assert run_forked(("selftest", "gpu", "--only", "G11"), home).returncode == 2


class Made:
    """Makes engines on vLLM's build for processors, which has no sleep mode: the messages, the order and
    the proofs are as on a GPU, and no memory is freed."""

    def __init__(self, folder: Path) -> None:
        self._faults = Faults(folder)

    def engine(self, level: int = 0, **chosen: object) -> VllmEngine:
        self._faults.network = "shared" if chosen.get("transfer") == "nccl" else "own"
        settings = VllmSettings.model_validate({"sleep": level} | chosen)
        return VllmEngine(8, 2 * SMALL.tokens, start=self._faults.start, settings=settings)

    def pressed(self, cache_bytes: int) -> VllmEngine:
        start = lambda asked: self._faults.start(asked | {"cache_bytes": cache_bytes})  # noqa: E731
        return VllmEngine(SMALL.rollouts, SMALL.tokens, start=start)


@needs_vllm
@pytest.mark.long_vllm
def test_vllm_wakes_with_a_push_that_is_proved(tmp_path: Path) -> None:
    assert "woke with a push, proved, same scores" in probes.sleep_and_wake(Made(tmp_path).engine, SMALL)


@needs_vllm
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_else_asks_vllm_runs_on_its_build_for_processors(tmp_path: Path) -> None:
    made = Made(tmp_path)
    ways = [probes.PushWay(way, partial(made.engine, transfer=way), CPU) for way in WAYS]
    assert "all of one digest" in probes.push_each_way(ways, SMALL, "")
    graphs = partial(made.engine, graphs=True)
    assert "so does vLLM with decoding graphs" in probes.graph_and_push(CPU, SMALL, graphs)
    assert "our scheduler" in probes.cache_pressure(made.pressed, SMALL, 4)
    assert "an adapter on vLLM is" in probes.adapter_on_vllm(SMALL, made.engine)

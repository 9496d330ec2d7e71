"""The gateway as a process: the daemon runs it, ends it, starts it again; by itself it serves a real model."""

from __future__ import annotations

import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import openai
import psutil
import pytest
import safetensors.torch
import torch
from checkpoint_records import checkpoint_record
from daemon_kit import clean_environ, until
from forked_commands import ForkedCommand
from vllm_engines import torch_process

from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.daemon.processes.gateway_process import GatewayProcess
from appliance.gateway.champion import PAUSE, ServedChampion
from appliance.gateway.tokens import new_token
from appliance.inference.engine_loop import EngineLoop
from appliance.inference.engines import make_engine
from appliance.inference.folder import read_model
from appliance.inference.torch import engine as torch_engine
from appliance.inference.vllm.engine import VllmEngine
from appliance.inference.vllm.process import EngineFault
from appliance.inference.vllm.supervisor import REPLACEMENTS
from appliance.learning.folders import write_by_digest
from appliance.system.clock import utc_now

SEEDLING = Path(__file__).parents[3] / "fixtures" / "seedling"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def children(program: str) -> list[psutil.Process]:
    found = []
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it ended meanwhile, or is a zombie
            if program in one.cmdline() and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
    return found


def test_a_gateway_that_ends_is_started_again_and_ends_with_its_owner(tmp_path: Path) -> None:
    said: list[str] = []
    marker = f"marker-{tmp_path.name}"
    program = "import sys, time; print('began', file=sys.stderr, flush=True); time.sleep(600)"
    process = GatewayProcess(Settings(data=tmp_path), said.append, (sys.executable, "-c", program, marker))
    process.start()
    log = tmp_path / "logs" / "gateway.log"
    until(lambda: log.exists() and b"began" in log.read_bytes())
    (first,) = children(marker)
    first.kill()
    until(lambda: said and [one for one in children(marker) if one.pid != first.pid])
    assert "ended with status -9 and starts again in 1 s: began" in said[0]
    process.close()
    assert children(marker) == []
    GatewayProcess(Settings(data=tmp_path), said.append).close()  # one that was never started


def test_the_command_serves_a_model_in_service_to_the_openai_client(data: Path) -> None:
    digest = write_by_digest(data / "models", read_model(SEEDLING))
    with Core(Settings(data=data)) as core:
        core.ledger.put_checkpoint(checkpoint_record(digest, created=utc_now()))
        core.ledger.set_aliases({"champion": digest}, "a test", utc_now())
    _, secret = new_token(data, "agent", consent=True, now=utc_now())
    port = free_port()
    environ = clean_environ(data) | {"ASSAY_GATEWAY__PORT": str(port), "ASSAY_THREADS": "1"}
    process = ForkedCommand(("gateway", "serve"), environ, merged=True)
    try:
        until(lambda: process.poll() is not None or answers(port), 240)
        with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=secret, max_retries=0) as client:
            said = client.chat.completions.create(
                model=digest[:12], messages=[{"role": "user", "content": "gcd of 12 and 18?"}], max_tokens=24, seed=1
            )
        assert (said.assay["weights"], said.usage.completion_tokens > 0) == (digest, True)
        kept = (data / "gateway" / "sessions" / f"{said.assay['session']}.json").read_text()
        assert "gcd of 12 and 18?" in kept
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        output = process.communicate(timeout=120)[0].decode()
    assert process.returncode == 0, output
    assert "serving the gateway at" in output


def test_what_the_machine_failed_at_is_tried_again_after_a_pause_and_the_one_before_answers_on(tmp_path: Path) -> None:
    files, now, failing = read_model(SEEDLING), [0.0], 0
    tensors = {name: one * 1.01 for name, one in safetensors.torch.load(files["model.safetensors"]).items()}
    one = write_by_digest(tmp_path / "models", files)
    two = write_by_digest(tmp_path / "models", {**files, "model.safetensors": safetensors.torch.save(tensors)})
    promoted = [one]

    def start(settings: dict[str, Any]) -> Any:
        nonlocal failing
        failing -= 1
        if failing >= 0:
            raise EngineFault("its memory is another's")
        return torch_process(settings)

    def lose_engine(starts_that_fail: int) -> None:
        nonlocal failing
        failing = starts_that_fail
        os.kill(engine.supervisor.pid or 0, signal.SIGKILL)

    engine = VllmEngine(1, 64, start=start)
    with EngineLoop(engine) as loop:
        champion = ServedChampion(loop, tmp_path, lambda: promoted[0], lambda: now[0])

        def served() -> str | None:
            champion.look()
            assert loop.version == (champion.model.version if champion.model else "")
            return champion.model.version if champion.model else None

        failing = REPLACEMENTS + 1
        assert served() is None
        assert "its memory is another's; it is tried again in 1 min" in champion.problem
        failing = 0
        assert served() is None, "the pause is not over"
        now[0] += PAUSE
        assert (served(), champion.problem) == (one, "")
        promoted[0] = two
        lose_engine(REPLACEMENTS)
        assert served() == one, "the push failed, and the one before is pushed again"
        now[0] += PAUSE
        lose_engine(2 * REPLACEMENTS + 1)
        assert served() is None, "nor can the one before be pushed"
        assert "tried again in 2 min" in champion.problem
        promoted[0] = one
        assert (served(), champion.problem) == (one, ""), "it was rolled back"


def test_a_champion_for_which_there_is_no_memory_yet_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest, now = write_by_digest(tmp_path / "models", read_model(SEEDLING)), [0.0]

    def full(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with EngineLoop(make_engine("torch", rows=1, slots=64, threads=1)) as loop, monkeypatch.context() as patch:
        patch.setattr(torch_engine, "make_decoder", full)
        champion = ServedChampion(loop, tmp_path, lambda: digest, lambda: now[0])
        champion.look()
        assert champion.model is None
        assert "ran out of memory while it took the weights; it is tried again in 1 min" in champion.problem
        patch.undo()
        now[0] += PAUSE
        champion.look()
        assert champion.model is not None


def test_a_model_that_cannot_be_used_leaves_the_one_before_in_place(tmp_path: Path) -> None:
    good = write_by_digest(tmp_path / "models", read_model(SEEDLING))
    bad = write_by_digest(tmp_path / "models", {"config.json": b"{}"})
    now: list[str | None] = [None]
    with (
        EngineLoop(make_engine("torch", rows=1, slots=64, threads=1)) as loop,
        ServedChampion(loop, tmp_path, lambda: now[0]) as champion,
    ):
        assert (champion.model, champion.problem) == (None, "no model is in service yet")
        now[0] = bad
        champion.look()
        assert champion.model is None
        assert "cannot be used here" in champion.problem
        now[0] = good
        champion.look()
        assert (champion.model.version, champion.problem) == (good, "")
        assert "<|end|>" in champion.model.marks.values()
        now[0] = "0" * 64
        champion.look()
        assert champion.model.version == good

"""Measurements of `pretrained.py`, each in a process of its own: `python -m benchmarks.pretrained_parts NAME JSON`.

Invariants: every push is proved before anything is sampled, and its seconds include the proof. The last line of
standard output is the figures as JSON. Memory is the peak of the resident set as the kernel has it (VmHWM), or on a GPU
what torch had of it at its highest with what CUDA itself takes; nobody else may use the GPU meanwhile.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

os.environ["OMP_WAIT_POLICY"] = os.environ.get("OMP_WAIT_POLICY", "PASSIVE")  # as in the worker; torch reads it once

import torch

from appliance.gpu_selftest.probe_models import drawn_rollout, wait_for
from appliance.inference.adapters import push_model, require_proof
from appliance.inference.device import choose_placement
from appliance.inference.engine import Engine, GenerationRequest
from appliance.inference.folder import open_model, read_model
from appliance.inference.gpu_numbers import VISIBLE, shown_gpus
from appliance.inference.torch.engine import TorchEngine
from appliance.inference.vllm.engine import VllmEngine
from appliance.inference.vllm.placement import VllmSettings, count_gpus
from appliance.learning.checkpoints import step_folder
from appliance.learning.folders import read_verified
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.signal.grouping import make_groups
from appliance.learning.trained_weights import add_adapter
from appliance.learning.training.trainer import Trainer
from appliance.learning.training.updates import open_for
from benchmarks import torch_engine
from benchmarks.pretrained_text import Text

FIXTURE = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "seedling"
ROWS = 8
"""Conversations of the torch engine beside a learner, and rollouts of its step."""


def peak(device: str, process: str = "self") -> int:
    """Returns the peak bytes of a process's resident set, or of what this process has of the GPU."""
    if device == "cuda":
        free, total = torch.cuda.mem_get_info()
        return total - free - torch.cuda.memory_reserved() + torch.cuda.max_memory_reserved()
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) * 1024


def make_random(folder: str) -> dict[str, Any]:
    """Writes a model of the shape of Qwen2.5-0.5B with random weights: bfloat16, 1 GB."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=151936,
        hidden_size=896,
        intermediate_size=4864,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        max_position_embeddings=32768,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=5,
    )
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    Qwen2ForCausalLM(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "dialect.json"):
        shutil.copy(FIXTURE / name, folder)
    Path(folder, "LICENSE").write_text("Random numbers. Anybody may use them.\n")
    return {}


def learn(
    base: str, checkpoints: str, recipe: dict[str, Any], device: str, tokens: int, sampled: int, *, resume: bool
) -> dict[str, Any]:
    """Pushes the model, samples, takes a step, pushes again and saves; or resumes from that and pushes."""
    way = TrainingRecipe.model_validate(recipe)
    placement, kept = choose_placement(device), step_folder(Path(checkpoints), 1)
    files = read_verified(Path(base))
    model = open_for(files, way).to(placement.device)
    trainer = Trainer(model, way, 1, max_tokens=tokens, companions=files)
    del files
    engine = TorchEngine(ROWS, tokens, placement=placement)
    if resume:
        trainer.restore(kept)
        return {**proved(engine, model, "w"), "step": trainer.step, "peak": peak(device)}
    found = {"first_push": proved(engine, model, "w")}
    text, rng = Text(Path(base)), Random(0)
    prompts = {number: text.window(tokens - sampled, rng) for number in range(ROWS)}
    for number, prompt in prompts.items():
        engine.submit(GenerationRequest(number, prompt, -1, tokens, 1.0, number))
    judged = []
    while engine.unfinished:
        for turn in engine.step():
            judged.append(drawn_rollout(0, turn.request, prompts[turn.request], turn.ids, turn.logprobs))
            engine.finish(turn.request)
    figures = trainer.train_step(0, judged, make_groups(judged, way, 0))
    engine.sleep()
    found |= proved(engine, model, "w2")
    trainer.save(kept)
    wanted = ("loss", "ratio", "mismatch_kl", "tokens", "rollouts", "gradient_norm", "seconds")
    return {**found, **{name: figures[name] for name in wanted}, "peak": peak(device)}


def proved(engine: Engine, model: Any, version: str) -> dict[str, Any]:
    """Pushes a model; returns the proof and the seconds with it. Raises ModelError for other weights."""
    started = time.monotonic()
    proof = engine.push(model, version)
    wait_for(model.device)
    require_proof(proof, model, version)
    return {"digest": proof.digest, "base": proof.base, "seconds_of_push": time.monotonic() - started}


def vllm_full(base: str, device: str, rows: int, context: int, repeats: int, share: float | None) -> dict[str, Any]:
    """Pushes the whole model to vLLM twice and compares it with `generate`."""
    model: Any = open_model(read_model(Path(base)))
    text, rng = Text(Path(base)), Random(3)
    slots = context + torch_engine.TURNS * (torch_engine.MOST + torch_engine.RESULT)
    free = torch.cuda.mem_get_info()[0] if device == "cuda" else 0
    engine = _vllm(rows, slots, device, share)
    try:
        push_model(engine, model, "first")
        with torch.no_grad():
            list(model.parameters())[-1].mul_(1.01)
        found = proved(engine, model, "second") | _seen(engine)
        if device == "cuda":
            found["memory"] = free - torch.cuda.mem_get_info()[0]
            found["total"] = torch.cuda.mem_get_info()[1]
            model = model.to("cuda", torch.bfloat16)
        found["gb"] = sum(one.nbytes for one in model.parameters()) / 1e9
        found |= torch_engine.measure(
            engine,
            model,
            torch_engine.text_prompts(2 * rows, context, text, rng),
            text.stops(),
            rows=rows,
            repeats=repeats,
            forced=text.window(torch_engine.RESULT, rng),
            clocked=True,
        )
        if device == "cpu":
            found["memory"] = peak(device, str(engine.supervisor.pid))
        return found | _seen(engine)
    finally:
        engine.close()


def vllm_lora(base: str, device: str, share: float | None) -> dict[str, Any]:
    """Pushes two adapters of the model to vLLM one after the other, and samples with the second."""
    model: Any = open_model(read_model(Path(base)))
    add_adapter(model, 16, 32.0, seed=0)
    engine = _vllm(ROWS, 128, device, share)
    try:
        _perturb(model, 1)
        first = proved(engine, model, "first")
        _perturb(model, 2)
        second = proved(engine, model, "second")
        prompts = torch_engine.text_prompts(ROWS, 32, Text(Path(base)), Random(0))
        started = time.monotonic()
        tokens = torch_engine.plain_with_engine(engine, prompts)
        rate = tokens / (time.monotonic() - started)
        return {"first": first, **second, "tokens_a_second": rate, **_seen(engine)}
    finally:
        engine.close()


def vllm_sleep(base: str, device: str, share: float | None) -> dict[str, Any]:
    """Pushes from the GPU by IPC to a vLLM that records CUDA graphs, lets it sleep at level 2, and wakes it."""
    model: Any = open_model(read_model(Path(base))).to(device)
    engine = _vllm(ROWS, 256, device, share, sleep=2, graphs=True, transfer="ipc")
    try:
        first, ids = proved(engine, model, "first"), [list(range(1, 40))]
        before, free = engine.score(ids), torch.cuda.mem_get_info()[0]
        engine.sleep()
        freed = torch.cuda.mem_get_info()[0] - free
        if engine.version:
            raise SystemExit(f"the sleeping engine reports version {engine.version!r}")
        second = proved(engine, model, "second")
        return {
            "first": first,
            **second,
            "freed": freed,
            "total": torch.cuda.mem_get_info()[1],
            "same_scores": engine.score(ids) == before,
            **_seen(engine),
        }
    finally:
        engine.close()


def _vllm(rows: int, slots: int, device: str, share: float | None, **chosen: Any) -> VllmEngine:
    if device == "cpu":
        return VllmEngine(rows, slots)
    first = tuple(int(one) for one in shown_gpus(os.environ.get(VISIBLE), count_gpus())[:1] if one.isdecimal())
    given = {"gpus": first, "memory_share": share} | chosen
    return VllmEngine(rows, slots, settings=VllmSettings.model_validate(given))


def _seen(engine: VllmEngine) -> dict[str, Any]:
    """Returns the largest difference from the trainer; ends the process if an engine had to be replaced."""
    if engine.supervisor.quarantined:
        raise SystemExit("; ".join(engine.supervisor.quarantined))
    return {"difference": engine.supervisor.worst_difference}


def _perturb(model: Any, number: int) -> None:
    with torch.no_grad():
        for name, one in model.named_parameters():
            if ".lora_B." in name:
                one.fill_(0.001 * number)


PARTS = {one.__name__: one for one in (make_random, learn, vllm_full, vllm_lora, vllm_sleep)}

if __name__ == "__main__":
    print(json.dumps(PARTS[sys.argv[1]](**json.loads(sys.argv[2]))))

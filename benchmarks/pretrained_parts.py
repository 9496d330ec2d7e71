"""Measurements of `pretrained.py`, each in a process of its own: `python -m benchmarks.pretrained_parts NAME JSON`.

Invariants: every push is proved before anything is sampled, and its seconds include the proof. The last line of
standard output is the figures as JSON. Memory is the peak of the resident set as the kernel has it (VmHWM), or on a GPU
what torch had of it at its highest with what CUDA itself takes; nobody else may use the GPU meanwhile.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
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
from appliance.inference.memory import KEPT_TOKENS, READ_TOKENS
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
from appliance.records.training import Judged
from benchmarks import torch_engine
from benchmarks.pretrained_text import Text

FIGURES = ("loss", "ratio", "mismatch_kl", "tokens", "rollouts", "gradient_norm", "seconds")
ROWS = 8
"""Conversations of the torch engine beside a learner, and rollouts of its step."""


def peak(device: str, process: str = "self") -> int:
    """Returns the peak bytes of a process's resident set, or of what this process has of the GPU."""
    if device == "cuda":
        free, total = torch.cuda.mem_get_info()
        return total - free - torch.cuda.memory_reserved() + torch.cuda.max_memory_reserved()
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) * 1024


def learn(
    base: str, checkpoints: str, recipe: dict[str, Any], device: str, tokens: int, sampled: int, *, resume: bool
) -> dict[str, Any]:
    """Twice pushes the model, samples and takes a step, then pushes and saves; or resumes from that and pushes. Moments
    are beside gradients only in the second step."""
    way = TrainingRecipe.model_validate(recipe)
    placement, kept = choose_placement(device), step_folder(Path(checkpoints), 2)
    files = read_verified(Path(base))
    model = open_for(files, way).to(placement.device)
    trainer = Trainer(model, way, 1, max_tokens=tokens, companions=files)
    del files
    engine = TorchEngine(ROWS, tokens, placement=placement)
    if resume:
        trainer.restore(kept)
        return {**proved(engine, model, "resumed"), "step": trainer.step, "peak": peak(device)}
    text, rng = Text(Path(base)), Random(0)
    steps = []
    for step in range(2):
        pushed = proved(engine, model, f"step {step}")
        fill_prompts(engine, tokens, lambda length: text.window(length, rng))
        prompts = [text.window(tokens - sampled, rng) for _ in range(ROWS)]
        judged = rollouts(engine, prompts, tokens, step)
        if device == "cpu":  # as in a night; on a GPU the plan has the engine beside a step
            engine.sleep()
        figures = trainer.train_step(step, judged, make_groups(judged, way, step))
        steps.append(pushed | {name: figures[name] for name in FIGURES})
        engine.sleep()
    found = proved(engine, model, "trained")
    trainer.save(kept)
    return {**found, "steps": steps, "peak": peak(device)}


def fill_prompts(engine: Engine, tokens: int, window: Callable[[int], tuple[int, ...]]) -> None:
    """Reads prompts for conversations of that many tokens until the engine drops some from its full cache, as in an
    evaluation."""
    for number in range((KEPT_TOKENS + READ_TOKENS) // (tokens - 2) + 1):
        engine.submit(GenerationRequest(number, window(tokens - 2), -1, tokens, 1.0, number))
    while engine.unfinished:
        for turn in engine.step():
            engine.finish(turn.request)


def rollouts(engine: Engine, prompts: Sequence[tuple[int, ...]], tokens: int, step: int) -> list[Judged]:
    """Samples conversations of that many tokens; all but the first token count as sampled, which takes most memory,
    with the engine's own log-probabilities."""
    ids = dict(enumerate(prompts))
    for number, prompt in enumerate(prompts):
        engine.submit(GenerationRequest(number, prompt, -1, tokens, 1.0, number))
    while engine.unfinished:
        for turn in engine.step():
            ids[turn.request] += turn.ids
            engine.finish(turn.request)
    scores = engine.score(list(ids.values()))
    return [drawn_rollout(step, number, one[:1], one[1:], scores[number]) for number, one in ids.items()]


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
            stop=engine.supervisor.vocabulary - 1,
        )
        if device == "cpu":
            found["memory"] = peak(device, str(engine.supervisor.pid))
        return found | _seen(engine)
    finally:
        engine.close()


def vllm_lora(base: str, device: str, share: float | None, *, fp8: bool = False) -> dict[str, Any]:
    """Pushes two adapters of the model to vLLM one after the other, and samples with the second."""
    model: Any = open_model(read_model(Path(base)))
    add_adapter(model, 16, 32.0, seed=0)
    engine = _vllm(ROWS, 128, device, share, fp8=fp8)
    try:
        _perturb(model, 1)
        first = proved(engine, model, "first")
        _perturb(model, 2)
        second = proved(engine, model, "second")
        prompts = torch_engine.text_prompts(ROWS, 32, Text(Path(base)), Random(0))
        started = time.monotonic()
        tokens = torch_engine.plain_with_engine(engine, prompts, engine.supervisor.vocabulary - 1)
        rate = tokens / (time.monotonic() - started)
        return {"first": first, **second, "tokens_a_second": rate, "cached": engine.capacity.tokens, **_seen(engine)}
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


PARTS = {one.__name__: one for one in (learn, vllm_full, vllm_lora, vllm_sleep)}

if __name__ == "__main__":
    print(json.dumps(PARTS[sys.argv[1]](**json.loads(sys.argv[2]))))

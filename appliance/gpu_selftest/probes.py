"""Probes of engines and learner on a GPU; each returns its observation as a sentence.

Invariants: a probe takes the device as an argument, computes the same on each, and raises `ProbeFailedError` if its
property does not hold. On a CPU it shows only that the probe works. Models have random weights, and only temporary
folders are written.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from appliance.gpu_selftest.errors import ProbeFailedError, ProbeNotRunError
from appliance.gpu_selftest.probe_models import (
    PLAIN,
    SMALL,
    ProbeSize,
    drawn_batch,
    freed,
    furthest,
    learn_step,
    make_trainer,
    random_model,
    wait_for,
)
from appliance.inference.engine import Engine, GenerationRequest
from appliance.inference.vllm.engine import VllmEngine
from appliance.inference.vllm.server.core import BLOCK
from appliance.learning.errors import LearningError
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.trained_weights import add_adapter
from appliance.learning.training.trainer import Trainer
from appliance.scheduling.engine_pool import EnginePool

CLOSE = 0.5
"""Maximum difference of a log-probability between a bfloat16 engine and the float32 trainer."""
MOVED = 2e-5
"""Maximum difference of a weight between a resumed and an uninterrupted learner."""
MAX_KL = 0.01
"""Maximum nats per token between bfloat16 with a float32 head and float32."""


def sleep_and_wake(make: Callable[[int], VllmEngine], size: ProbeSize) -> str:
    """G1: checks that a sleeping vLLM engine has no version, wakes with a push, and is proved before it samples, at
    both levels."""
    seen = []
    for level in (1, 2):
        engine = make(level)
        try:
            model = random_model(size, torch.device("cpu"))
            engine.push(model, "before")
            pid, ids = engine.supervisor.pid, [list(range(1, 20))]
            before = engine.score(ids)
            engine.sleep()
            if engine.version:
                raise ProbeFailedError(f"level {level}: the sleeping engine reports version {engine.version!r}")
            engine.push(model, "after")
            if engine.score(ids) != before:
                raise ProbeFailedError(f"level {level}: equal weights score differently after the sleep")
            if engine.supervisor.quarantined or engine.supervisor.pid != pid:
                raise ProbeFailedError(f"level {level}: {'; '.join(engine.supervisor.quarantined)}")
            seen.append(f"level {level} differs by {engine.supervisor.worst_difference:.1e} from the trainer")
        finally:
            engine.close()
    return f"woke with a push, proved, same scores: {', '.join(seen)}"


@dataclass(frozen=True)
class PushWay:
    """Transfer of weights to vLLM that is available here."""

    name: str
    make: Callable[[], VllmEngine]
    device: torch.device
    """Device of the pushed model."""


def push_each_way(ways: Sequence[PushWay], size: ProbeSize, not_run: str) -> str:
    """G2: measures a push of weights with its proof by each transfer; checks that all engines have equal weights."""
    seen, proofs = [], set()
    for way in ways:
        engine = way.make()
        try:
            model = random_model(size, way.device)
            engine.push(model, "first")
            with torch.no_grad():
                model.model.norm.weight *= 1.01
            wait_for(way.device)
            started = time.monotonic()
            proofs.add(engine.push(model, "second"))
            seconds = time.monotonic() - started
            if engine.supervisor.quarantined:
                raise ProbeFailedError(f"{way.name}: {'; '.join(engine.supervisor.quarantined)}")
            size_gb = sum(one.nbytes for one in model.state_dict().values()) / 1e9
            worst = engine.supervisor.worst_difference
            seen.append(f"{way.name} {seconds:.2f} s for {size_gb:.3f} GB ({worst:.1e} from the trainer)")
        finally:
            engine.close()
    if len(proofs) != 1:
        raise ProbeFailedError(f"engines with equal pushes proved {len(proofs)} different weights")
    return ", ".join([*seen, *([not_run] if not_run else [])]) + "; each with its proof, all of one digest"


def cache_pressure(make: Callable[[int], VllmEngine], size: ProbeSize, itemsize: int) -> str:
    """G7: measures the cost of preemptions at three times the KV cache, and checks that our scheduler causes none.
    `make` takes the cache's bytes, with `itemsize` bytes per number."""
    model = random_model(size, torch.device("cpu"))
    config = model.config
    token = 2 * config.num_key_value_heads * config.head_dim * config.num_hidden_layers * itemsize
    engine = make(token * (size.rollouts * size.tokens // 3 + BLOCK))  # one block is reserved for empty slots
    try:
        engine.push(model, "first")
        tokens = engine.capacity.tokens or 0
        if not 2 * size.tokens <= tokens <= size.rollouts * size.tokens // 2:
            raise ProbeFailedError(f"the cache should be short, but has {tokens} tokens")
        admits = EnginePool([engine], size.tokens)
        arms: dict[str, Engine] = {"all admitted": engine, "our scheduler": admits}
        seen = {}
        for name, arm in arms.items():
            arm.push(model, name)
            seen[name] = _pressed(arm, engine, size)
    finally:
        engine.close()
    pressed, spaced = seen.values()
    if spaced[1] or not pressed[1]:
        raise ProbeFailedError(f"{pressed[1]} preemptions with all admitted, {spaced[1]} with our scheduler")
    said = [f"{name} {seconds:.1f} s with {count} preemptions" for name, (seconds, count) in seen.items()]
    return f"{size.rollouts} conversations of {size.tokens} tokens, a cache of {tokens}: {', '.join(said)}"


def _pressed(engine: Engine, sampler: VllmEngine, size: ProbeSize) -> tuple[float, int]:
    """Samples a round of conversations; returns the seconds, and the preemptions in that time."""
    before, started = sampler.preemptions(), time.monotonic()
    for number in range(size.rollouts):
        prompt = tuple((7 * number + at) % size.vocabulary for at in range(8))
        engine.submit(
            GenerationRequest(number, prompt, size.vocabulary - 1, size.tokens, 1.0, number, group=str(number))
        )
    while engine.unfinished:
        for turn in engine.step():
            engine.finish(turn.request)
    return time.monotonic() - started, sampler.preemptions() - before


def graph_and_push(device: torch.device, size: ProbeSize, make: Callable[[], VllmEngine] | None = None) -> str:
    """G3: checks that a recorded forward pass uses weights copied after recording, and so does vLLM with graphs
    (`make`)."""
    torch.manual_seed(0)
    layer = nn.Sequential(nn.Linear(size.hidden, size.hidden), nn.SiLU(), nn.Linear(size.hidden, size.hidden))
    layer = layer.to(device).requires_grad_(False)
    given = torch.randn(4, size.hidden, device=device)
    replay, answer = _recorded(layer, given)
    replay()
    before = answer.clone()
    for one in layer.parameters():
        one.copy_(torch.randn_like(one))
    replay()
    wanted = layer(given)
    if torch.equal(before, answer) or not torch.allclose(answer, wanted, atol=1e-4, rtol=1e-4):
        raise ProbeFailedError("a recorded pass uses the weights from before the push")
    how = "a CUDA graph" if device.type == "cuda" else "a pass (a CPU records none)"
    if make is None:
        return f"{how} uses the new weights; vLLM's: not run"
    engine = make()
    try:
        model = random_model(SMALL, torch.device("cpu"))
        engine.push(model, "before")
        with torch.no_grad():
            model.model.norm.weight *= 1.5
        engine.push(model, "after")
        if engine.supervisor.quarantined:
            raise ProbeFailedError(f"vLLM with graphs: {'; '.join(engine.supervisor.quarantined)}")
        worst = engine.supervisor.worst_difference
    finally:
        engine.close()
    return f"{how} uses the new weights; so does vLLM with decoding graphs, {worst:.1e} from the trainer"


def half_precision(device: torch.device, size: ProbeSize) -> str:
    """G4: measures the effect of bfloat16 on log-probabilities, with a float32 head and without, and of batching on a
    row."""
    model = random_model(size, device)
    ids = _drawn(size, 4).to(device)
    with torch.no_grad():
        wanted = model(input_ids=ids).logits.float().log_softmax(-1)
        half = model.to(torch.bfloat16)
        hidden = half.model(input_ids=ids).last_hidden_state
        head = half.lm_head.weight
        kl = {
            "float32": _kl(wanted, (hidden.float() @ head.float().T).log_softmax(-1)),
            "bfloat16": _kl(wanted, (hidden @ head.T).float().log_softmax(-1)),
        }
        alone = half.model(input_ids=ids[:1]).last_hidden_state
        moved = (alone - hidden[:1]).abs().max().item()
    if not kl["float32"] <= MAX_KL:
        raise ProbeFailedError(f"KL of bfloat16 with a float32 head is {kl['float32']:.1e}; {MAX_KL} is allowed")
    return (
        f"KL to float32: {kl['float32']:.1e} with a float32 head, {kl['bfloat16']:.1e} with a bfloat16 head; a row "
        f"alone and in a batch of 4 differ by {moved:.1e}"
    )


def step_time(device: torch.device, size: ProbeSize, flops: float) -> str:
    """G6: measures tokens per second of a learner's step in float32 and bfloat16; for the latter also the share of the
    data sheet's operations, and the idle share."""
    seen, parameters = [], 0
    for precision in ("float32", "bfloat16"):
        trainer = make_trainer(device, size, TrainingRecipe.model_validate({**PLAIN, "precision": precision}))
        parameters = sum(one.numel() for one in trainer.model.parameters())
        learn_step(trainer, drawn_batch(replace(size, rollouts=4)))
        tokens, seconds = size.rollouts * size.tokens, _timed(trainer, device, size)
        said = f"{tokens / seconds:.0f} tokens/s in {precision}"
        if precision == "bfloat16":
            if flops:
                said += f", {100 * 6 * parameters * tokens / seconds / flops:.1f} % of its data sheet"
            said += f", idle share {_idle_share(trainer, device, size)}"
        seen.append(said)
        del trainer
        freed()
    return f"{parameters / 1e6:.0f} M parameters: {'; '.join(seen)}; TRL: not run (benchmarks/trl_learner.py)"


def _timed(trainer: Trainer, device: torch.device, size: ProbeSize) -> float:
    """Returns the seconds of a trainer's step."""
    judged = drawn_batch(size, trainer.step)
    wait_for(device)
    started = time.monotonic()
    learn_step(trainer, judged)
    wait_for(device)
    return time.monotonic() - started


def _idle_share(trainer: Trainer, device: torch.device, size: ProbeSize) -> str:
    """Measures the GPU's idle share in a trainer's step, as text: kernel seconds of a profiled step against seconds of
    an unprofiled one."""
    if device.type != "cuda":
        return "not run"
    few = replace(size, rollouts=8)
    seconds = _timed(trainer, device, few)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as watched:
        _timed(trainer, device, few)
    kernels = sum(one.self_device_time_total for one in watched.key_averages()) / 1e6
    return f"{100 * max(0.0, 1 - kernels / seconds):.0f} %" if kernels else "not run: the profiler saw no kernel"


def in_parts(*parts: Callable[[], str]) -> str:
    """Runs the parts of a GPU probe and joins their sentences. Raises ProbeNotRunError if none ran."""
    seen, ran = [], False
    for part in parts:
        try:
            seen.append(part())
            ran = True
        except ProbeNotRunError as error:
            seen.append(str(error))
    said = "; ".join(seen)
    if not ran:
        raise ProbeNotRunError(said)
    return said


def adapter_on_vllm(size: ProbeSize, make: Callable[[int], VllmEngine] | None) -> str:
    """G9: checks that vLLM's kernels compute a LoRA adapter correctly."""
    if make is None:
        raise ProbeNotRunError("vLLM's LoRA kernels: not run, no environment")
    engine = make(0)
    try:
        engine.push(_with_adapter(size, torch.device("cpu")), "adapter")
        if engine.supervisor.quarantined:
            raise ProbeFailedError("; ".join(engine.supervisor.quarantined))
        return f"an adapter on vLLM is {engine.supervisor.worst_difference:.1e} from the trainer"
    finally:
        engine.close()


def moments_of_8_bits(device: torch.device, size: ProbeSize) -> str:
    """G9: compares a training step after restoring a checkpoint with the uninterrupted one, with 8-bit moments."""
    recipe = TrainingRecipe.model_validate({**PLAIN, "optimizer": "adamw_8bit"})
    first, second = make_trainer(device, size, recipe), make_trainer(device, size, recipe)
    learn_step(first, drawn_batch(size, first.step))
    with tempfile.TemporaryDirectory(prefix="assay-probe-") as folder:
        first.save(Path(folder) / "step")
        second.restore(Path(folder) / "step")
    learn_step(first, drawn_batch(size, first.step))
    learn_step(second, drawn_batch(size, second.step))
    worst = furthest(first, second)
    if not worst <= MOVED:
        raise ProbeFailedError(f"a learner resumed with 8-bit moments is {worst:.1e} off")
    full = make_trainer(device, size, TrainingRecipe.model_validate(PLAIN))
    learn_step(full, drawn_batch(size, full.step))
    small, large = (moment_bytes(one) / 1e6 for one in (first, full))
    return (
        f"a step with 8-bit moments ({small:.2f} MB, {large:.2f} in float32), and the next one from a "
        f"checkpoint, {worst:.0e} off"
    )


def state_in_main_memory(device: torch.device, size: ProbeSize) -> str:
    """G9: compares two steps with moments and inputs of layers in main memory with the same steps without."""
    first, second = (
        make_trainer(device, size, TrainingRecipe.model_validate({**PLAIN, "gradient_checkpointing": True, **moved}))
        for moved in ({}, {"offload": "both"})
    )
    for _ in range(2):
        for one in (first, second):
            learn_step(one, drawn_batch(size, one.step))
    worst = furthest(first, second)
    if not worst <= MOVED:
        raise ProbeFailedError(f"two steps with state in main memory are {worst:.1e} off")
    return f"two steps with moments and inputs of layers in main memory, {worst:.0e} off"


def moment_bytes(trainer: Trainer) -> int:
    """Returns the bytes of a trainer's optimizer state."""
    kept = {
        id(value): value.nbytes
        for slots in trainer.optimizer.state.values()
        for value in slots.values()
        if isinstance(value, Tensor)
    }
    return sum(kept.values())


def memory_ladder(device: torch.device, size: ProbeSize) -> str:
    """G10: checks that a training step whose pass exceeds the memory is taken at half size, and then refused with a
    reason."""
    recipe = TrainingRecipe(rollouts_per_task=4, keep=4, selector="uniform", micro_batch=size.rollouts)
    if device.type != "cuda":
        learn_step(make_trainer(device, size, recipe), drawn_batch(size))
        return "a step ran whole; a CPU has no memory limit to test"
    total = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.reset_peak_memory_stats(device)
    trainer = make_trainer(device, size, recipe)
    held = torch.cuda.memory_allocated(device)
    learn_step(trainer, drawn_batch(size, trainer.step))
    peak = torch.cuda.max_memory_allocated(device)
    del trainer
    freed()
    try:
        torch.cuda.set_per_process_memory_fraction((held + 0.8 * (peak - held)) / total, device)
        trainer = make_trainer(device, size, recipe)
        learn_step(trainer, drawn_batch(size, trainer.step))
        halved = trainer.halved
        del trainer
        freed()
        torch.cuda.set_per_process_memory_fraction((held + 0.1 * (peak - held)) / total, device)
        try:
            learn_step(make_trainer(device, size, recipe), drawn_batch(size))
        except (LearningError, torch.OutOfMemoryError) as error:
            said = " ".join(str(error).split())[:160]
            if not halved:
                raise ProbeFailedError("a step fits whole in 80 % of its memory: nothing was halved") from error
            return f"at 80 % of a whole pass's {peak / 1e9:.1f} GB, the step ran in halves; at 10 %: {said}"
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, device)
    raise ProbeFailedError("a step fits in a tenth of its memory: the limit had no effect")


def _with_adapter(size: ProbeSize, device: torch.device) -> Any:
    model = random_model(size, device)
    add_adapter(model, 8, 16.0, seed=0)
    with torch.no_grad():
        for name, one in model.named_parameters():
            if ".lora_B." in name:
                one.fill_(0.02)
    return model


def _recorded(layer: nn.Module, given: Tensor) -> tuple[Callable[[], object], Tensor]:
    """Records a layer's forward pass (on a GPU as a CUDA graph); returns a function that recomputes the output in
    place, and the output."""
    if given.device.type != "cuda":
        kept = layer(given)
        return (lambda: kept.copy_(layer(given))), kept
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            layer(given)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        answer = layer(given)
    return graph.replay, answer


def _kl(wanted: Tensor, found: Tensor) -> float:
    return float((wanted.exp() * (wanted - found)).sum(-1).mean())


def _drawn(size: ProbeSize, rows: int) -> Tensor:
    return torch.randint(1, size.vocabulary, (rows, size.tokens), generator=torch.Generator().manual_seed(1))

"""One learner in a process of its own on a GPU, beside the learner in this process on the processor.

    python -m benchmarks.gpu_learner [--device cuda:0] [--large]

Small models with random weights, some seconds, no network. Each line says what was seen, and the last one whether all
of it held: losses and weights as on the processor up to rounding (full training in float32, an adapter beside bfloat16
on packed rollouts, demonstrations), a checkpoint that both go on from, the same step once more after a restore,
weights that an engine on the GPU proves to hold, memory that learner and engine give back, a pass that runs out of
memory and is halved or explained, and a kill that this process outlives. With `--large` a model of some 0.3 billion
parameters steps on the GPU alone. With `--device cpu` the same runs without a GPU and shows nothing about one.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.gpu_selftest.probe_models import ProbeSize, drawn_rollout, random_model
from appliance.inference.adapters import push_model
from appliance.inference.engines import make_engine
from appliance.inference.folder import open_model
from appliance.learning.errors import LearningError
from appliance.learning.learner_devices import learner_devices, usable_gpus
from appliance.learning.rank_processes import RankProcesses
from appliance.learning.recipes.recipe import TrainingRecipe, WarmStartRecipe
from appliance.learning.signal.grouping import make_groups
from appliance.learning.training.ranked_trainer import RankedSft, RankedTrainer
from appliance.learning.training.sft import Encoded, SftTrainer
from appliance.learning.training.trainer import Trainer
from runtime.errors import InfrastructureError

SIZE = ProbeSize(hidden=256, layers=4, vocabulary=2_000, rollouts=8, tokens=96)
LARGE = ProbeSize(hidden=1024, layers=16, vocabulary=32_000, rollouts=16, tokens=512)
FULL = TrainingRecipe(rollouts_per_task=4, keep=4, selector="uniform", micro_batch=4, learning_rate=1e-4)
LORA = FULL.model_copy(
    update={"method": "lora", "lora_rank": 8, "precision": "bfloat16", "packing": True, "micro_batch_tokens": 512}
)
SHOWN = WarmStartRecipe(steps=8, batch=4, warmup_steps=2, learning_rate=1e-3)
failed: list[str] = []


def say(what: str, held: bool, seen: str) -> None:
    print(f"{'held' if held else 'FAILED':6} {what}: {seen}", flush=True)
    if not held:
        failed.append(what)


def records(size: ProbeSize, step: int, recipe: TrainingRecipe) -> Any:
    rng, cut = Random(step), size.tokens // 2
    ids = [tuple(rng.randrange(1, size.vocabulary) for _ in range(size.tokens)) for _ in range(size.rollouts)]
    guessed = (-5.0,) * (size.tokens - cut)
    judged = [drawn_rollout(step, number, one[:cut], one[cut:], guessed) for number, one in enumerate(ids)]
    return judged, make_groups(judged, recipe, 0)


def files_of(size: ProbeSize) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        random_model(size, torch.device("cpu")).save_pretrained(folder)
        return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def furthest(one: nn.Module, other: nn.Module) -> float:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return max(float((a.detach().float() - b.detach().float()).abs().max()) for a, b in pairs)


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def trains(ranks: RankProcesses, files: dict[str, bytes], recipe: TrainingRecipe, folder: Path) -> nn.Module:
    dtype = torch.bfloat16 if recipe.method == "lora" else torch.float32
    models: list[nn.Module] = [open_model(files, dtype=dtype) for _ in range(3)]
    settings: dict[str, Any] = {"max_tokens": SIZE.tokens, "companions": files}
    there = RankedTrainer(ranks, models[0], recipe, 1, **settings)
    here = Trainer(models[1], recipe, 1, **settings)
    worst = 0.0
    for step in range(3):
        told = there.train_step(step, *records(SIZE, step, recipe))
        expected = here.train_step(step, *records(SIZE, step, recipe))
        for name in ("loss", "entropy", "gradient_norm"):
            worst = max(worst, abs(told[name] - expected[name]) / max(1e-3, abs(expected[name])))
    off, bar = furthest(models[0], models[1]), 0.05 if recipe.method == "lora" else 1e-3
    say(f"{recipe.method}, 3 steps", worst < bar, f"figures off by {worst:.1e} of themselves, weights by {off:.1e}")
    there.save(folder / "there", {"by": "gpu"})
    beside = Trainer(models[2], recipe, 1, **settings)
    beside.restore(folder / "there")
    say("checkpoint, on the processor", same(models[0], models[2]), "the same weights, to the bit")
    first = there.train_step(3, *records(SIZE, 3, recipe))
    after = {name: one.clone() for name, one in models[0].state_dict().items()}
    there.restore(folder / "there")
    again = there.train_step(3, *records(SIZE, 3, recipe))
    bits = all(torch.equal(one, after[name]) for name, one in models[0].state_dict().items())
    say(
        "restore, then the same step",
        abs(first["loss"] - again["loss"]) < 1e-4,
        f"loss {first['loss']!r} and {again['loss']!r}; weights {'equal' if bits else 'not equal'} to the bit",
    )
    return models[0]


def learns_from_demonstrations(ranks: RankProcesses, files: dict[str, bytes]) -> None:
    rng = Random(5)
    drawn = [tuple(rng.randrange(1, SIZE.vocabulary) for _ in range(rng.randint(20, 60))) for _ in range(40)]
    shown = [Encoded(ids, (*[False] * 10, *[True] * (len(ids) - 10))) for ids in drawn]
    models = [open_model(files) for _ in range(2)]
    settings: dict[str, Any] = {"max_tokens": SIZE.tokens, "companions": files}
    there = RankedSft(ranks, models[0], shown, SHOWN, 3, **settings)
    here = SftTrainer(models[1], shown, SHOWN, 3, **settings)
    one, other = there.run_steps(5)["loss"], here.run_steps(5)["loss"]
    say("demonstrations, 5 steps", abs(one - other) < 1e-3 * other, f"loss {one:.6f} and {other:.6f}")


def engine_beside_it(ranks: RankProcesses, model: nn.Module, device: torch.device) -> None:
    engine = make_engine("torch", rows=4, slots=128, device=device.type)
    ids = [list(range(1, 40))]
    push_model(engine, model, "v1")
    before = engine.score(ids)
    held = torch.cuda.memory_allocated() if device.type == "cuda" else 0
    engine.sleep()
    left = torch.cuda.memory_allocated() if device.type == "cuda" else 0
    push_model(engine, model, "v2")
    say(
        "engine on the same device, slept and pushed to",
        engine.score(ids) == before and (device.type == "cpu" or left < held / 10),
        f"proved twice, the same scores; {held / 1e6:.0f} MB held, {left / 1e6:.0f} MB asleep",
    )
    engine.close()


def out_of_memory(ranks: RankProcesses, device: torch.device) -> None:
    size = ProbeSize(hidden=512, layers=8, vocabulary=32_000, rollouts=16, tokens=512)
    recipe = FULL.model_copy(update={"micro_batch": 16})
    files = files_of(size)
    settings: dict[str, Any] = {"max_tokens": size.tokens, "companions": files}
    learner = RankedTrainer(ranks, open_model(files), recipe, 1, **settings)
    learner.train_step(0, *records(size, 0, recipe))
    for keep in (6 << 30, 3 << 30, 1 << 29):
        free, _ = torch.cuda.mem_get_info(device)
        hog = torch.empty(max(0, free - keep), dtype=torch.uint8, device=device)
        try:
            figures = learner.train_step(learner.step, *records(size, learner.step, recipe))
            seen, held = f"the step was taken, in {figures['seconds']:.1f} s", True
        except LearningError as error:
            seen, held = f"{error}; {error.hint}"[:300], True
        except InfrastructureError as error:
            seen, held = f"{error}"[:300], False
        say(f"{keep / 2**30:g} GiB left", held, seen)
        del hog
        torch.cuda.empty_cache()
        if not held:
            return
    figures = learner.train_step(learner.step, *records(size, learner.step, recipe))
    say("after it, with room", figures["tokens"] > 0, f"the same process learned, in {figures['seconds']:.1f} s")


def large_step(ranks: RankProcesses, device: torch.device) -> None:
    files = files_of(LARGE)
    recipe = FULL.model_copy(update={"precision": "bfloat16", "packing": True, "micro_batch_tokens": 4096})
    model = open_model(files)
    started = time.monotonic()
    learner = RankedTrainer(ranks, model, recipe, 1, max_tokens=LARGE.tokens, companions=files)
    opened = time.monotonic() - started
    walls, taken = [], []
    for step in range(3):
        started = time.monotonic()
        taken.append(learner.train_step(step, *records(LARGE, step, recipe))["seconds"])
        walls.append(time.monotonic() - started)
    read = LARGE.rollouts * LARGE.tokens
    count = sum(one.numel() for one in model.parameters()) / 1e6
    seen = f"{count:.0f} million parameters: opened in {opened:.1f} s, {read / min(taken):,.0f} tokens a second"
    say("large", True, f"{seen} in a step, {min(walls) - min(taken):.2f} s more until the weights are here")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="otherwise the one that the appliance would choose")
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // 2))
    chosen = learner_devices("auto", 1, usable_gpus("auto"), (0,))
    name = arguments.device or chosen[0]
    device = torch.device(name)
    say("device", True, f"the appliance would choose {chosen[0]}; this is {name}")
    files = files_of(SIZE)
    with tempfile.TemporaryDirectory() as text, RankProcesses((name,)) as ranks:
        model = trains(ranks, files, FULL, Path(text) / "full")
        trains(ranks, files, LORA, Path(text) / "lora")
        learns_from_demonstrations(ranks, files)
        engine_beside_it(ranks, model, device)
        if device.type == "cuda":
            out_of_memory(ranks, device)
        if arguments.large:
            large_step(ranks, device)
        learner = RankedTrainer(ranks, open_model(files), FULL, 1, max_tokens=SIZE.tokens, companions=files)
        os.kill(ranks.pids[0], signal.SIGKILL)
        try:
            learner.train_step(0, *records(SIZE, 0, FULL))
            say("killed", False, "it answered")
        except InfrastructureError as error:
            say("killed", True, str(error))
    print("all of it held" if not failed else f"did not hold: {', '.join(failed)}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()

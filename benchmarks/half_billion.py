"""A model of half a billion parameters, from import to resume, and whether it needs the memory that `assay plan` says.

    python benchmarks/half_billion.py [--json FILE] [--keep FOLDER] [--device cuda]

Makes a model of the shape of Qwen2.5-0.5B with random weights (bf16, 1 GB on disk) and does with it, each in a process
of its own: `assay model import`, `assay plan`, one step of GRPO with LoRA on 8 rollouts of 512 tokens that the torch
engine sampled after a push with its proof, another push, a checkpoint; then a resume from that, with a push and its
proof. Rewards are drawn: what is measured is memory, the peak of the resident set as the kernel has it (VmHWM), beside
the plan's.

Bar: the peak of each process is within 15 % of what the plan said.

With `--device cuda` learner and engine are on the first GPU, layers compute in bfloat16, and the peak is what torch had
of the GPU at its highest with what CUDA itself takes, beside the plan for the GPU. Nobody else may use it meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# A script's own folder comes first on the path, and there is a `runtime` in it.
sys.path[0] = str(Path(__file__).resolve().parents[1])

FIXTURE = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "seedling"
RECIPE = {
    "method": "lora",
    "lora_rank": 16,
    "packing": True,
    "micro_batch_tokens": 1024,
    "rollouts_per_task": 4,
    "keep": 4,
    "tasks_per_step": 2,
    "selector": "uniform",
}
TOKENS, SAMPLED = 512, 64
GIB = 1 << 30


def peak(device: str) -> int:
    """Bytes of this process's resident set at its highest, or of what it has of the GPU."""
    if device == "cuda":
        import torch

        free, total = torch.cuda.mem_get_info()
        return total - free - torch.cuda.memory_reserved() + torch.cuda.max_memory_reserved()
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) * 1024


def make_model(folder: Path) -> None:
    import shutil

    import torch
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
        shutil.copy(FIXTURE / name, folder / name)
    (folder / "LICENSE").write_text("Random numbers. Anybody may use them.\n")


def recipe_on(device: str) -> dict[str, Any]:
    return RECIPE | ({"precision": "bfloat16"} if device == "cuda" else {})


def learn(folder: Path, checkpoints: Path, *, resume: bool, device: str) -> dict[str, float]:
    """Opens the model and takes a step, or goes on from the checkpoint; ends with a push and its proof."""
    from random import Random

    import torch

    from appliance.gpu_selftest.probe_models import drawn_rollout
    from appliance.inference.adapters import push_model
    from appliance.inference.device import choose_placement
    from appliance.inference.engine import GenerationRequest
    from appliance.inference.folder import open_model
    from appliance.inference.torch.engine import TorchEngine
    from appliance.learning.checkpoints import step_folder
    from appliance.learning.folders import read_verified
    from appliance.learning.recipes.recipe import TrainingRecipe
    from appliance.learning.signal.grouping import make_groups
    from appliance.learning.training.trainer import Trainer

    recipe = TrainingRecipe.model_validate(recipe_on(device))
    placement = choose_placement(device)
    files = read_verified(folder)
    model = open_model(files, dtype=torch.bfloat16 if device == "cuda" else torch.float32).to(placement.device)
    trainer = Trainer(model, recipe, 1, max_tokens=TOKENS, companions=files)
    del files
    engine = TorchEngine(8, TOKENS, placement=placement)
    clock = time.monotonic if device == "cuda" else time.process_time
    found = {"opened": peak(device) / GIB}
    if resume:
        trainer.restore(step_folder(checkpoints, 1))
    started = clock()
    push_model(engine, model, "w")
    found["pushing_s"] = clock() - started
    found["pushed"] = peak(device) / GIB
    if resume:
        return {**found, "step": float(trainer.step), "peak": float(peak(device))}
    rng = Random(0)
    prompts = {number: tuple(rng.randrange(600, 150_000) for _ in range(TOKENS - SAMPLED)) for number in range(8)}
    for number, prompt in prompts.items():
        engine.submit(GenerationRequest(number, prompt, 5, TOKENS, 1.0, number))
    judged = []
    started = clock()
    while engine.unfinished:
        for turn in engine.step():
            judged.append(drawn_rollout(0, turn.request, prompts[turn.request], turn.ids, turn.logprobs))
            engine.finish(turn.request)
    found["sampling_s"] = clock() - started
    found["sampled"] = peak(device) / GIB
    started = clock()
    figures = trainer.train_step(0, judged, make_groups(judged, recipe, 0))
    found["learning_s"] = clock() - started
    found["learned"] = peak(device) / GIB
    engine.sleep()
    push_model(engine, model, "w2")
    found["pushed_again"] = peak(device) / GIB
    trainer.save(step_folder(checkpoints, 1))
    wanted = ("loss", "ratio", "mismatch_kl", "tokens", "rollouts", "gradient_norm")
    return {**found, **{name: figures[name] for name in wanted}, "peak": float(peak(device))}


def assay(*arguments: str) -> str:
    program = Path(sys.executable).with_name("assay")
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"assay {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def in_a_process(*arguments: str) -> Any:
    done = subprocess.run([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else None


def main() -> None:
    from benchmarks.record import write_run

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path, help="work there, and leave everything")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--do", choices=("make", "learn", "resume"), help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.do == "make":
        make_model(given.paths[0])
        return
    if given.do:
        print(json.dumps(learn(*given.paths, resume=given.do == "resume", device=given.device)))
        return
    with tempfile.TemporaryDirectory(prefix="assay-half-billion-") as temporary:
        figures = measure(given.keep or Path(temporary), given.device)
    print(json.dumps(figures, indent=1))
    write_run(figures, given.json)
    sys.exit(0 if all(abs(one["off"]) <= 0.15 for one in figures["memory"].values()) else 1)


def measure(folder: Path, device: str) -> dict[str, Any]:
    model, data = folder / "model", folder / "data"
    if not model.exists():
        in_a_process("--do", "make", str(model))
    imported = json.loads(assay("model", "import", str(model), "--data", str(data), "--json"))
    settings = [
        f"ASSAY_RECIPE__TRAINING__{name.upper()}={json.dumps(value).strip(chr(34))}"
        for name, value in recipe_on(device).items()
    ]
    settings += [f"ASSAY_RECIPE__AGENT__MAX_TOKENS={TOKENS}", "ASSAY_RECIPE__AGENT__CONCURRENT=8"]
    os.environ.update(line.split("=", 1) for line in settings)
    plan = json.loads(assay("plan", imported["name"], "--data", str(data), "--json"))
    said = plan["configured"]["phases"]
    base = Path(imported["folder"])
    learned = in_a_process("--device", device, "--do", "learn", str(base), str(folder / "checkpoints"))
    resumed = in_a_process("--device", device, "--do", "resume", str(base), str(folder / "checkpoints"))
    memory = {
        name: {"said_gib": expected / GIB, "peak_gib": seen["peak"] / GIB, "off": seen["peak"] / expected - 1}
        for name, expected, seen in (
            ("step", max(said["loading"], said["training"], said.get("pushing", 0)), learned),
            ("resume", max(said["loading"], said["resuming"]), resumed),
        )
    }
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        "memory": memory,
        "phases": {name: value / GIB for name, value in said.items()},
        "parts": plan["configured"]["parts"],
        "step": learned,
        "resume": resumed,
    }


if __name__ == "__main__":
    main()

"""A model from import to resume, and whether it needs the memory that `assay plan` says.

    python benchmarks/half_billion.py [--model FOLDER] [--ways NAME,..] [--json FILE] [--keep FOLDER] [--device cuda]

Makes a model of the shape of Qwen2.5-0.5B with random weights (bf16, 1 GB on disk), or takes the model in FOLDER, and
does with it, each in a process of its own: `assay model import`, `assay plan`, two steps of GRPO on rollouts that the
torch engine sampled, each after a push with its proof, and a checkpoint; then a resume from that with a push, and for
an adapter the published model. Only from the second step on are moments beside gradients and activations. Rewards and
most tokens are drawn: what is measured is memory, the peak of the resident set as the kernel has it (VmHWM), of each
phase, beside the plan's. `--ways` are all of WAYS for a given model, else `lora`.

Bar: no way needs more than the plan said, and the plan says at most 15 % more than was needed.

With `--device cuda` learner and engine are on the first GPU, layers compute in bfloat16, and the peak is what torch had
of the GPU at its highest with what CUDA itself takes, beside the plan for the GPU. Nobody else may use it meanwhile.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# A script's own folder comes first on the path, and there is a `runtime` in it.
sys.path[0] = str(Path(__file__).resolve().parents[1])

FIXTURE = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "seedling"
RECIPE = {
    "lora_rank": 16,
    "micro_batch_tokens": 512,
    "micro_batch": 4,
    "rollouts_per_task": 4,
    "keep": 4,
    "tasks_per_step": 2,
    "selector": "uniform",
    "refills": 0,
    "watch_items": 2,
}
PACKED, HALF, AGAIN = {"packing": True}, {"precision": "bfloat16"}, {"gradient_checkpointing": True}
LORA, QLORA = {"method": "lora"}, {"method": "qlora"}
WAYS: dict[str, dict[str, Any]] = {
    "full": PACKED,
    "full-padded": {},
    "full-again": PACKED | AGAIN,
    "full-half": PACKED | HALF,
    "full-half-again": PACKED | HALF | AGAIN,
    "full-8bit": PACKED | {"optimizer": "adamw_8bit"},
    "lora": PACKED | LORA,
    "lora-padded": LORA,
    "lora-half": PACKED | LORA | HALF,
    "lora-half-again": PACKED | LORA | HALF | AGAIN,
    "qlora": PACKED | QLORA,
    "qlora-half-again": PACKED | QLORA | HALF | AGAIN,
}
TOKENS, DRAWN, ROWS = 128, 16, 4
GIB = 1 << 30


def peak(device: str) -> int:
    """Bytes of this process's resident set at its highest since `restart`, or of what it has of the GPU."""
    if device == "cuda":
        import torch

        free, total = torch.cuda.mem_get_info()
        return total - free - torch.cuda.memory_reserved() + torch.cuda.max_memory_reserved()
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) * 1024


def restart(device: str) -> None:
    """Starts a new highest mark."""
    if device == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats()
    else:
        Path("/proc/self/clear_refs").write_text("5")


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


def recipe_of(way: str, device: str) -> dict[str, Any]:
    return RECIPE | WAYS[way] | (HALF if device == "cuda" else {})


def dtype_of(way: str) -> str:
    """Number format of the engine beside a way of training: that of its layers."""
    return "bfloat16" if "-half" in way else "auto"


def learn(way: str, folder: Path, checkpoints: Path, *, resume: bool, device: str) -> dict[str, int]:
    """Opens the model and takes two steps, or goes on from the checkpoint; ends with a push and its proof. Returns the
    highest bytes of each phase."""
    from random import Random

    from appliance.gpu_selftest.probe_models import drawn_rollout
    from appliance.inference.adapters import push_model
    from appliance.inference.device import choose_placement
    from appliance.inference.engine import GenerationRequest
    from appliance.inference.torch.engine import TorchEngine
    from appliance.learning.checkpoints import step_folder
    from appliance.learning.folders import read_verified
    from appliance.learning.merging import publish_merged
    from appliance.learning.recipes.recipe import TrainingRecipe
    from appliance.learning.signal.grouping import make_groups
    from appliance.learning.training.trainer import Trainer
    from appliance.learning.training.updates import open_for
    from appliance.records.training import Judged
    from benchmarks.pretrained_parts import fill_prompts

    recipe = TrainingRecipe.model_validate(recipe_of(way, device))
    placement = choose_placement(device, dtype_of(way))
    phases: dict[str, int] = {}

    def ends(phase: str) -> None:
        phases[phase] = max(phases.get(phase, 0), peak(device))
        restart(device)

    files = read_verified(folder)
    model = open_for(files, recipe).to(placement.device)
    trainer = Trainer(model, recipe, 1, max_tokens=TOKENS, companions=files)
    engine = TorchEngine(ROWS, TOKENS, placement=placement)
    del files
    ends("loading")
    if resume:
        trainer.restore(step_folder(checkpoints, 2))
        ends("resuming")
        push_model(engine, model, "w")
        ends("pushing")
        if recipe.adapts:
            del trainer, model
            publish_merged(step_folder(checkpoints, 2), read_verified(folder), checkpoints / "published")
            ends("publishing")
        return phases
    push_model(engine, model, "w0")
    ends("pushing")
    vocabulary, rng = model.get_input_embeddings().weight.shape[0], Random(0)

    def window(length: int) -> tuple[int, ...]:
        return tuple(rng.randrange(600, vocabulary) for _ in range(length))

    for step, length in enumerate((2 * DRAWN, TOKENS)):
        fill_prompts(engine, TOKENS, window)
        prompts = {task: window(length - DRAWN) for task in range(2)}
        for number in range(8):
            engine.submit(GenerationRequest(number, prompts[number // 4], 5, length, 1.0, number))
        judged: list[Judged] = []
        while engine.unfinished:
            for turn in engine.step():
                ids = prompts[turn.request // 4] + turn.ids  # all but the first count as sampled: that takes most
                guessed = (-math.log(vocabulary),) * (length - 1)
                judged.append(drawn_rollout(step, turn.request, ids[:1], ids[1:], guessed))
                engine.finish(turn.request)
        if device == "cpu":  # as in a night; on a GPU the plan has the engine beside a step
            engine.sleep()
        ends("sampling")
        trainer.train_step(step, judged, make_groups(judged, recipe, step))
        ends("training")
        if not step:
            engine.sleep()
            push_model(engine, model, "w1")
            ends("pushing")
    trainer.save(step_folder(checkpoints, 2))
    ends("saving")
    return phases


def assay(*arguments: str, **settings: str) -> str:
    program, environment = Path(sys.executable).with_name("assay"), os.environ | settings
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False, env=environment)
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
    parser.add_argument("--model", type=Path, help="folder of a model to take instead")
    parser.add_argument("--ways", type=lambda text: text.split(","))
    parser.add_argument("--keep", type=Path, help="work there, and leave everything")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--do", choices=("make", "learn", "resume"), help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.do == "make":
        make_model(given.paths[0])
        return
    if given.do:
        found = learn(given.ways[0], *given.paths, resume=given.do == "resume", device=given.device)
        print(json.dumps(found))
        return
    ways = given.ways or (list(WAYS) if given.model else ["lora"])
    if unknown := sorted(set(ways) - set(WAYS)):
        parser.error(f"unknown way {unknown[0]}: use some of {', '.join(WAYS)}")
    with tempfile.TemporaryDirectory(prefix="assay-half-billion-") as temporary:
        figures = measure(given.keep or Path(temporary), given.model, ways, given.device)
    write_run(figures, given.json)
    sys.exit(0 if all(0 <= one["over"] <= 0.15 for one in figures["ways"].values()) else 1)


def measure(folder: Path, given: Path | None, ways: list[str], device: str) -> dict[str, Any]:
    model, data = given or folder / "model", folder / "data"
    if not model.exists():
        in_a_process("--do", "make", str(model))
    imported = json.loads(assay("model", "import", str(model), "--data", str(data), "--json"))
    print(f"{'way':17} {'GiB said':>8} {'needed':>7} {'over':>7}   phases, needed / said", flush=True)
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
        "ways": {way: measure_way(way, folder, data, imported, device) for way in ways},
    }


def measure_way(way: str, folder: Path, data: Path, imported: dict[str, Any], device: str) -> dict[str, Any]:
    settings = {
        f"ASSAY_RECIPE__TRAINING__{name.upper()}": json.dumps(value).strip('"')
        for name, value in recipe_of(way, device).items()
    }
    settings |= {"ASSAY_RECIPE__AGENT__MAX_TOKENS": str(TOKENS), "ASSAY_RECIPE__AGENT__CONCURRENT": str(ROWS)}
    settings["ASSAY_MODEL__DTYPE"] = dtype_of(way)
    plan = json.loads(assay("plan", imported["name"], "--data", str(data), "--json", **settings))["configured"]
    checkpoints, needed = folder / "checkpoints" / way, dict[str, int]()
    for process in ("learn", "resume"):
        found = in_a_process("--ways", way, "--device", device, "--do", process, imported["folder"], str(checkpoints))
        needed |= {name: max(value, needed.get(name, 0)) for name, value in found.items()}
    said, most = plan["phases"], max(needed.values())
    over = plan["needed"] / most - 1
    phases = ", ".join(f"{name} {value / GIB:.2f} / {said.get(name, 0) / GIB:.2f}" for name, value in needed.items())
    print(f"{way:17} {plan['needed'] / GIB:8.2f} {most / GIB:7.2f} {over:+7.1%}   {phases}", flush=True)
    return {
        "said": plan["needed"],
        "needed": most,
        "over": over,
        "plan": said,
        "phases": needed,
        "parts": plan["parts"],
    }


if __name__ == "__main__":
    main()

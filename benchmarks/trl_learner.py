r"""Tokens a second of a learner's step, beside TRL's GRPOTrainer on the same model, batch and loss.

    python -m pip install --target FOLDER/site-packages --no-deps trl==1.16.0 \
        accelerate datasets dill multiprocess pandas pyarrow xxhash
    PYTHONPATH=FOLDER/site-packages python benchmarks/trl_learner.py [--rounds 5] [--json FILE] [--device cuda]
    PYTHONPATH=FOLDER/site-packages python benchmarks/trl_learner.py --model FOLDER [--method lora] [--short]

(The folder has to be called `site-packages`: dill, which datasets hashes with, copies what lies elsewhere.)

A Qwen2 of 7.9 million parameters with random weights in float32, 64 rollouts of 8 tasks: a prompt of 48 tokens, and
answers of 32 to 640 tokens whose logarithms are normally distributed, as those of agents are. Each round takes one
step with each learner, in an order that changes, with DAPO's loss (a mean over all tokens of the batch) and the same
advantages; TRL's part is its `_compute_loss`, the backward pass, the clip and AdamW, without its dataset, logging and
generation. Rollouts of one pass have as many tokens in each learner, padding included. What is compared is processor
time, on one thread. The gradients' norms of the first step show that both learned the same. Bar: 1.5 times TRL's
trained tokens a second.

With `--device cuda` the model has the shape of Qwen2.5-0.5B (a vocabulary of 151,936), all compute on the first GPU,
each learner also with its layers in bfloat16 (TRL's under autocast, as its own trainer does it), and what is compared
is the clock's time, once the GPU has nothing left to do, with the most memory that a step took.

With `--model` it is a pretrained model instead, in float32 where all of it is trained, and rollouts are windows of the
pages in `docs/`. `--method` trains an adapter: both learners have the same one, and the same packed layers below it if
it is `qlora`. `--short` is 8 rollouts of at most 160 tokens in passes of two, two rounds, and no padded learner.

With `--demo` model and batch are those of the first step of a demonstration of a pretrained model (`assay demo
--model`), whose data folder it is: real rollouts with the results of tools, the recipe's own precision, passes of as
many tokens as there, and eight rollouts in a pass of TRL's, which is its default. Three rounds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

# A script's own folder comes first on the path, and there is a `runtime` in it.
sys.path[0] = str(Path(__file__).resolve().parents[1])
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
if TYPE_CHECKING:
    from appliance.learning.recipes.recipe import TrainingRecipe

TOKENIZER = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "seedling"
VOCABULARY, PROMPT = 16_384, 48
RECIPE: dict[str, Any] = {
    "objective": "dapo",
    "rollouts_per_task": 4,
    "keep": 4,
    "selector": "uniform",
    "learning_rate": 1e-4,
    "warmup_steps": 0,
}


class Size(NamedTuple):
    """Rollouts of a step and of one pass, and the most tokens of an answer."""

    rollouts: int = 64
    at_once: int = 8
    longest: int = 640


class Learned(NamedTuple):
    """Model and step that every learner has: a pretrained model's folder, or None for random weights."""

    folder: Path | None
    method: str
    device: str
    size: Size
    recorded: TrainingRecipe | None = None
    """Recipe of a demonstration."""

    def recipe(self, *, packing: bool = False, precision: str = "float32") -> TrainingRecipe:
        from appliance.learning.recipes.recipe import TrainingRecipe

        at_once, longest = self.size.at_once, PROMPT + self.size.longest
        if self.recorded is not None:
            return self.recorded
        passes = {"micro_batch_tokens": at_once * longest, "micro_batch": at_once}
        own = {"packing": packing, "precision": precision, "method": self.method}
        return TrainingRecipe.model_validate(RECIPE | passes | own | {"tasks_per_step": self.size.rollouts // 4})

    def open(self, recipe: TrainingRecipe) -> Any:
        """Opens the model in the type that the recipe trains in."""
        if self.folder is None:
            return make_model(self.device)
        from appliance.inference.folder import read_model
        from appliance.learning.training.updates import open_for

        return open_for(read_model(self.folder), recipe).to(self.device)


SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
HALF_BILLION = {
    "vocab_size": 151_936,
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
}


def make_model(device: str) -> Any:
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    shape = HALF_BILLION if device == "cuda" else SMALL
    with torch.device(device):
        model = Qwen2ForCausalLM(Qwen2Config(**shape, max_position_embeddings=1024, tie_word_embeddings=True))
    return model.float().to(device)


def recorded(folder: Path) -> tuple[Learned, list[Any], list[Any]]:
    """Returns model and recipe of a demonstration, the judged rollouts of its first step, and their groups."""
    from appliance.learning.recipes.recipe import Recipe
    from appliance.ledger.sqlite import SqliteLedger
    from benchmarks.learning import demonstrated

    plan, model = demonstrated(folder)
    recipe = Recipe.model_validate(plan).training
    with SqliteLedger(folder / "ledger.sqlite3") as ledger:
        cycle = next(one.id for one in ledger.cycles() if one.kind == "demo" and "start" in one.plan)
        step = ledger.step(cycle, 1)
    assert step is not None
    longest = max(sum(len(node.ids) for node in one.rollout.nodes) for one in step.judged)
    size = Size(sum(len(group.kept) for group in step.groups), 8, longest)
    return Learned(model, recipe.method, "cpu", size, recipe), list(step.judged), list(step.groups)


def make_batch(learned: Learned) -> list[Any]:
    """Judged rollouts whose log-probabilities are the model's own."""
    import torch

    from appliance.gpu_selftest.probe_models import drawn_rollout
    from benchmarks.pretrained_text import Text

    model = learned.open(learned.recipe()).eval()
    text = Text(learned.folder) if learned.folder else None
    rng = Random(1)
    made = []
    for number in range(learned.size.rollouts):
        length = min(learned.size.longest, max(32, round(math.exp(rng.gauss(5.0, 0.8)))))
        if text is None:
            ids = tuple(rng.randrange(VOCABULARY) for _ in range(PROMPT + length))
        else:
            ids = text.window(PROMPT + length, rng)
        with torch.no_grad():
            given = torch.tensor([ids], device=model.device)
            scores = model(given).logits[0, PROMPT - 1 : -1].log_softmax(-1).cpu()
        own = torch.tensor(ids[PROMPT:])
        logprobs = scores.gather(1, own[:, None])[:, 0].tolist()
        made.append(drawn_rollout(0, number, ids[:PROMPT], ids[PROMPT:], tuple(logprobs)))
    return made


class Ours:
    def __init__(
        self, judged: list[Any], groups: list[Any], learned: Learned, *, packing: bool, precision: str = "float32"
    ) -> None:
        from appliance.learning.training.trainer import Trainer

        recipe = learned.recipe(packing=packing, precision=precision)
        self.judged, self.groups = judged, groups
        self.trainer = Trainer(learned.open(recipe), recipe, 1, max_tokens=PROMPT + learned.size.longest)

    def step(self) -> float:
        """Takes a step; the norm of its gradient."""
        return self.trainer.train_step(self.trainer.step, self.judged, self.groups)["gradient_norm"]


class Trl:
    def __init__(
        self, judged: list[Any], groups: list[Any], learned: Learned, folder: str, *, half: bool = False
    ) -> None:
        import torch
        from datasets import Dataset
        from transformers import PreTrainedTokenizerFast
        from trl import GRPOConfig, GRPOTrainer

        from appliance.learning.batches import samples
        from appliance.learning.training.updates import prepare

        device, at_once = learned.device, learned.size.at_once
        recipe = learned.recipe(precision="bfloat16" if half else "float32")
        model = learned.open(recipe)
        prepare(model, recipe, 1)
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(TOKENIZER / "tokenizer.json"))
        tokenizer.pad_token = tokenizer.eos_token = tokenizer.convert_ids_to_tokens(0)
        passes = math.ceil(learned.size.rollouts / at_once)
        config = GRPOConfig(
            output_dir=folder,
            loss_type="dapo",
            beta=0.0,
            epsilon=0.2,
            epsilon_high=0.28,
            per_device_train_batch_size=at_once,
            gradient_accumulation_steps=passes,
            num_generations=4,
            max_completion_length=learned.size.longest,
            gradient_checkpointing=False,
            use_cpu=device == "cpu",
            bf16=False,
            report_to="none",
        )
        dataset = Dataset.from_dict({"prompt": ["a"] * passes * at_once})
        self.trainer = GRPOTrainer(
            model=model,
            reward_funcs=lambda completions, **_given: [0.0] * len(completions),
            args=config,
            train_dataset=dataset,
            processing_class=tokenizer,
        )
        self.model = self.trainer.model.train()
        self.device, self.half = device, half
        self.trainer.current_gradient_accumulation_steps = passes
        self.trained = [one for one in self.model.parameters() if one.requires_grad]
        self.optimizer = torch.optim.AdamW(self.trained, lr=recipe.learning_rate, betas=(0.9, 0.95), weight_decay=0.0)
        chosen = samples(judged, groups)
        Random(0).shuffle(chosen)
        self.batches = [self._batch(chosen[at : at + at_once]) for at in range(0, len(chosen), at_once)]
        total = torch.tensor(float(sum(one.trained_tokens for one in chosen)))
        for batch in self.batches:
            batch["num_items_in_batch"] = total.to(device)

    def _batch(self, chosen: list[Any]) -> dict[str, Any]:
        """Pads prompts on the left and what follows on the right to the longest, as TRL does; results of tools are in
        `tool_mask`."""
        import torch
        from torch.nn.utils.rnn import pad_sequence

        firsts = [one.mask.index(True) for one in chosen]
        prompts = [torch.tensor(one.ids[:at]) for one, at in zip(chosen, firsts, strict=True)]
        ids = [torch.tensor(one.ids[at:]) for one, at in zip(chosen, firsts, strict=True)]
        own = [torch.tensor(one.mask[at:], dtype=torch.long) for one, at in zip(chosen, firsts, strict=True)]
        made = {
            "prompt_ids": pad_sequence(prompts, batch_first=True, padding_side="left"),
            "prompt_mask": pad_sequence([torch.ones_like(one) for one in prompts], True, padding_side="left"),
            "completion_ids": pad_sequence(ids, batch_first=True),
            "completion_mask": pad_sequence([torch.ones_like(one) for one in ids], batch_first=True),
            "tool_mask": pad_sequence(own, batch_first=True, padding_value=1),
            "advantages": torch.tensor([one.advantages[-1] for one in chosen]),
        }
        return {name: one.to(self.device) for name, one in made.items()}

    def step(self) -> float:
        import torch

        for batch in self.batches:
            with torch.autocast(self.device, torch.bfloat16, enabled=self.half):
                loss = self.trainer._compute_loss(self.model, batch)
            loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.trained, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return float(norm)


def main() -> None:
    from benchmarks.record import write_run

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="default: 5, or 2 with --short")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="a pretrained model instead of random weights")
    parser.add_argument("--method", choices=("full", "lora", "qlora"), default="full")
    parser.add_argument("--short", action="store_true", help="8 short rollouts and two rounds")
    parser.add_argument("--demo", type=Path, metavar="FOLDER", help="a demonstration's model and first batch")
    args = parser.parse_args()
    import torch

    from appliance.learning.batches import samples
    from appliance.learning.signal.grouping import make_groups

    device, on_gpu = args.device, args.device == "cuda"
    torch.set_num_threads(1)
    learned = Learned(args.model, args.method, device, Size(8, 2, 160) if args.short else Size())
    if args.demo is not None:
        learned, judged, groups = recorded(args.demo)
    else:
        judged = make_batch(learned)
        groups = list(make_groups(judged, learned.recipe(), 0))
    half = learned.recipe().precision == "bfloat16"
    tokens = sum(one.trained_tokens for one in samples(judged, groups))
    with tempfile.TemporaryDirectory() as folder:
        arms: dict[str, Any] = {
            "packed": Ours(judged, groups, learned, packing=True),
            **({} if args.short or args.demo else {"padded": Ours(judged, groups, learned, packing=False)}),
            "trl": Trl(judged, groups, learned, folder, half=half),
        }
        if on_gpu:
            arms["packed bfloat16"] = Ours(judged, groups, learned, packing=True, precision="bfloat16")
            arms["trl bfloat16"] = Trl(judged, groups, learned, folder, half=True)
        norms = {name: arm.step() for name, arm in arms.items()}
        seconds: dict[str, list[float]] = {name: [] for name in arms}
        memory = dict.fromkeys(arms, 0.0)
        for number in range(args.rounds or (2 if args.short else 3 if args.demo else 5)):
            order = list(arms)
            Random(number).shuffle(order)
            for name in order:
                if on_gpu:
                    torch.cuda.synchronize()
                    torch.cuda.reset_peak_memory_stats()
                    held = torch.cuda.memory_allocated()
                started = time.monotonic() if on_gpu else time.process_time()
                arms[name].step()
                if on_gpu:
                    torch.cuda.synchronize()
                    memory[name] = max(memory[name], (torch.cuda.max_memory_allocated() - held) / 1e9)
                seconds[name].append((time.monotonic() if on_gpu else time.process_time()) - started)
    ratios = {}
    for name in arms:
        others = seconds["trl bfloat16" if name.endswith("bfloat16") else "trl"]
        ratios[name] = sorted(trl / own for trl, own in zip(others, seconds[name], strict=True))
    report = {
        "tokens": tokens,
        "method": learned.recipe().method,
        "precision": learned.recipe().precision,
        "gradient_norm": {name: round(norm, 6) for name, norm in norms.items()},
        "tokens_a_second": {name: round(tokens / statistics.median(found)) for name, found in seconds.items()},
        "times_trl": {
            name: [round(found[0], 2), round(statistics.median(found), 2), round(found[-1], 2)]
            for name, found in ratios.items()
        },
        **({"gb_beside_what_is_held": {name: round(gb, 2) for name, gb in memory.items()}} if on_gpu else {}),
        "versions": {name: __import__(name).__version__ for name in ("torch", "transformers", "trl")},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        + (f", {torch.cuda.get_device_name()}" if on_gpu else ""),
    }
    print(json.dumps(report, indent=2))
    write_run(report, args.json)
    sys.exit(0 if report["times_trl"]["packed"][1] >= 1.5 else 1)


if __name__ == "__main__":
    main()

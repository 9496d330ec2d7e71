"""A night on a chat-format model, with each engine and each method, from the same weights, tasks and seed.

    python benchmarks/chat_night.py [--short] [--engines torch,vllm] [--methods full,lora] [--data FOLDER] [--json FILE]
        [--taught FOLDER] [--tasksets NAME,...] [--steps N]

Makes a Qwen3 of 5.8 million parameters with random weights, Qwen3's special tokens, chat template and call format, and
teaches it on demonstrations in that format. Then for each engine and method: the training of one night, and the sealed
questions of that night asked of the model before and after it. A sampled token is unproved when no proof names the
version of the weights that drew it; that is counted over all of them. `--short` is a smaller model, taught and trained
for a few steps: it shows that everything runs, and nothing about learning. `--data` is kept and gone on from: the
taught model is in its `taught`, and `--taught` begins from one of another run, that of `mixed_night.py` among them,
which knows `--tasksets arithmetic`.

Bar: the gain is above 0 with its interval (95 %, paired, Tango), and 0 tokens are unproved, in each of the four nights.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "fixtures"))
os.environ["OMP_WAIT_POLICY"] = os.environ.get("OMP_WAIT_POLICY", "PASSIVE")

import torch
from chat_models import qwen3_template, tokenizer_of
from tokenizers import Tokenizer
from transformers import Qwen3Config, Qwen3ForCausalLM

from appliance.agent.answers import written
from appliance.agent.budget import AgentBudget
from appliance.config import Settings
from appliance.inference.engines import ENGINES
from appliance.inference.folder import open_model, read_model
from appliance.learning.comparison import compare
from appliance.learning.folders import write_folder
from appliance.learning.recipe import EvaluationRecipe, Recipe, TrainingRecipe, WarmStartRecipe
from appliance.learning.sft import Encoded, SftTrainer, encode
from appliance.ledger.sqlite import SqliteLedger
from appliance.places import runtime_settings
from appliance.policy_files import load_policy
from appliance.records.cycles import Cycle, CycleState
from appliance.records.rollouts import Purpose, Role
from appliance.records.training import Judged, RolloutFilter
from appliance.rendering.formats import load_renderer
from appliance.rendering.renderer import Renderer
from appliance.rendering.tools import tools_of
from appliance.worker.context import WorkContext
from appliance.worker.cycle import CycleRun
from appliance.worker.demonstrations import PlayedDemonstration, play
from appliance.worker.evaluate import EvalRun, evaluate
from appliance.worker.progress import CycleProgress
from curriculum.demonstrations import demonstrable, demonstration
from curriculum.names import CALCULATORS
from curriculum.sealed import sealed_set
from curriculum.seeds import derive

AT = "2026-01-01T00:00:00.000+00:00"
TOKENS = 448
SEED = 0
FULL = {
    "hidden": 384,
    "layers": 3,
    "entries": 1600,
    "demonstrations": 8000,
    "teaching": 800,
    "batch": 32,
    "steps": 40,
    "tasks": 12,
    "rollouts": 16,
    "sealed": 512,
}
SHORT = FULL | {
    "hidden": 64,
    "layers": 2,
    "entries": 1000,
    "demonstrations": 96,
    "teaching": 8,
    "batch": 8,
    "steps": 2,
    "tasks": 2,
    "rollouts": 8,
    "sealed": 16,
}


def wordy() -> Renderer:
    """Writes Qwen3's template with a tokenizer that was made of nothing in particular: for the text."""
    files = {"tokenizer.json": tokenizer_of("qwen3"), "chat_template.jinja": qwen3_template()}
    named = {"rendering.json": json.dumps({"format": "template"})}
    return load_renderer({name: text.encode() for name, text in (files | named).items()})


def conversation(renderer: Renderer, one: PlayedDemonstration) -> Encoded:
    """A demonstration in a model's tokens."""
    return encode(
        renderer,
        renderer.prompt(one.task.messages, tools_of(one.task)),
        list(zip(one.calls, one.results, strict=True)),
        written(one.answer, one.task.form),
    )


def new_model(folder: Path, size: dict[str, int], texts: tuple[str, ...], tokens: int = TOKENS) -> None:
    """A Qwen3 with random weights, whose tokenizer is made of these conversations, marks included."""
    text = tokenizer_of("qwen3", size["entries"], texts, digits=True)
    tokenizer = Tokenizer.from_str(text)
    config = Qwen3Config(
        vocab_size=tokenizer.get_vocab_size(with_added_tokens=True),
        hidden_size=size["hidden"],
        intermediate_size=3 * size["hidden"],
        num_hidden_layers=size["layers"],
        num_attention_heads=size["hidden"] // 32,
        num_key_value_heads=size["hidden"] // 64,
        head_dim=32,
        max_position_embeddings=2 * tokens,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.token_to_id("<|im_end|>"),
        pad_token_id=tokenizer.token_to_id("<|endoftext|>"),
    )
    torch.manual_seed(SEED)
    Qwen3ForCausalLM(config).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(text)
    named = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(named))
    (folder / "chat_template.jinja").write_text(qwen3_template())


def teach(
    data: Path,
    size: dict[str, int],
    recipe: Recipe,
    tasksets: Sequence[str] = CALCULATORS,
    others: tuple[str, ...] = (),
    *,
    rate: float = 2e-3,
    right_choice: float = 0.6,
    fail_first: float = 0.1,
) -> Path:
    """Makes the model that all nights begin from, taught on demonstrations of these tasksets; what is there already is
    taken. Its tokenizer is made of conversations that begin like `others`, too. `rate` is the learning rate, the shares
    are those of `curriculum.demonstrations`."""
    folder = data / "taught"
    if folder.exists():
        return folder
    settings = Settings.load({"data": str(data)})
    with SqliteLedger(data / "teaching.sqlite3") as ledger:
        policy = load_policy(data)
        with WorkContext(data, ledger, runtime_settings(settings, data), recipe.agent, policy) as context:
            rng = Random(SEED)
            shown = demonstrable(list(tasksets))
            made = [
                demonstration(
                    rng, right_choice=right_choice, fail_first=fail_first, exclude=frozenset(), tasksets=shown
                )
                for _ in range(size["demonstrations"])
            ]
            played = play(made, context.sessions, policy, recipe.agent.max_result_chars, caller="chat_night")
    tokens = recipe.agent.max_tokens
    plain = wordy()
    new_model(
        data / "untaught", size, (*(plain.text(conversation(plain, one).ids) for one in played[:500]), *others), tokens
    )
    files = read_model(data / "untaught")
    renderer = load_renderer(files)
    encoded = [conversation(renderer, one) for one in played]
    encoded = [one for one in encoded if len(one.ids) <= tokens]
    warm = WarmStartRecipe(steps=size["teaching"], batch=size["batch"], learning_rate=rate)
    learner = SftTrainer(open_model(files), encoded, warm, SEED, max_tokens=tokens, companions=files)
    figures = learner.run_steps(size["teaching"])
    print(
        f"{sum(one.numel() for one in learner.model.parameters()) / 1e6:.2f} M parameters, taught on {len(encoded)} "
        f"demonstrations of {sum(len(one.ids) for one in encoded) / len(encoded):.0f} tokens for {size['teaching']} "
        f"steps: loss {figures['loss']:.3f}, {figures['seconds']:.0f} s",
        flush=True,
    )
    learner.model.save_pretrained(data / "weights")
    weights = {"model.safetensors": (data / "weights" / "model.safetensors").read_bytes()}
    write_folder(folder, {**files, **weights})
    (folder / "manifest.json").unlink()
    return folder


def unproved(judged: list[Judged], proved: set[str]) -> tuple[int, int]:
    """Sampled tokens, and those of them whose version no proof names."""
    spans = [
        span for one in judged for node in one.rollout.nodes if node.role is Role.ASSISTANT for span in node.weights
    ]
    drawn = sum(len(node.ids) for one in judged for node in one.rollout.nodes if node.role is Role.ASSISTANT)
    named = sum(span.end - span.start for span in spans if span.version in proved)
    return drawn, drawn - named


def night(data: Path, model: Path, engine: str, recipe: Recipe) -> dict[str, Any]:
    """Trains for a night, and asks its sealed questions before and after."""
    settings = Settings.load({"data": str(data)})
    proved: set[str] = set()
    make = ENGINES[engine]

    def watched(rows: int, slots: int, threads: int | None, **others: Any) -> Any:
        made = make(rows, slots, threads, **others)
        plain = made.push

        def push(weights: Any, version: str) -> Any:
            proof = plain(weights, version)
            proved.add(proof.version)
            return proof

        made.push = push
        return made

    started, processor = time.monotonic(), time.process_time()
    ENGINES[engine] = watched
    try:
        with SqliteLedger(data / "ledger.sqlite3") as ledger:
            policy = load_policy(data)
            plan = {"recipe": recipe.model_dump(mode="json")}
            cycle = Cycle(
                id="n",
                kind="night",
                seed=SEED,
                plan=plan,
                phase="prepare",
                state=CycleState.RUNNING,
                created=AT,
                updated=AT,
            )
            ledger.put_cycle(cycle)
            with WorkContext(
                data, ledger, runtime_settings(settings, data), recipe.agent, policy, engine=engine
            ) as context:
                CycleRun(cycle, context, CycleProgress(cycle, ledger, time.monotonic), model).train()
                known = ledger.cycle("n")
                assert known is not None
                before, after = (ledger.checkpoint(known.plan[name]) for name in ("start", "candidate"))
                assert before is not None
                assert after is not None
                tasks = sealed_set(
                    recipe.evaluation.sealed_items, derive("sealed", SEED), tasksets=tuple(known.plan["tasksets"])
                ).tasks
                found = [
                    evaluate(EvalRun("n", one, 1.0, number, derive("exam", SEED)), tasks, context)
                    for number, one in enumerate((before, after))
                ]
                quarantined = getattr(getattr(context.engine, "supervisor", None), "quarantined", [])
            trained = list(ledger.rollouts(RolloutFilter(cycle="n", purpose=Purpose.TRAIN), limit=1 << 20))
            mismatch = [ledger.step("n", step) for step in range(recipe.training.steps)]
    finally:
        ENGINES[engine] = make
    compared = compare(found[1][0], found[0][0])
    drawn, without = unproved([*trained, *found[0][1], *found[1][1]], proved)
    return {
        "engine": engine,
        "method": recipe.training.method,
        "learned": before.manifest != after.manifest,
        "steps": sum(one is not None for one in mismatch),
        "before": compared.champion.value,
        "after": compared.candidate.value,
        "gain": [compared.gain.value, compared.gain.low, compared.gain.high],
        "tokens": drawn,
        "unproved": without,
        "proofs": len(proved),
        "put_aside": list(quarantined),
        "seconds": time.monotonic() - started,
        "processor_seconds": time.process_time() - processor,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--engines", default="torch,vllm")
    parser.add_argument("--methods", default="full,lora")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--taught", type=Path)
    parser.add_argument("--tasksets", default=",".join(CALCULATORS))
    parser.add_argument("--steps", type=int)
    given = parser.parse_args()
    if given.taught is not None and not (given.taught / "model.safetensors").is_file():
        parser.error(f"{given.taught} holds no taught model; name the folder `taught` of an earlier run's --data")
    tasksets = tuple(given.tasksets.split(","))
    size = SHORT if given.short else FULL
    if given.steps:
        size = size | {"steps": given.steps}
    data = Path(tempfile.mkdtemp(prefix="assay-chat-")) if given.data is None else given.data.resolve()
    data.mkdir(parents=True, exist_ok=True)
    training = TrainingRecipe(
        steps=size["steps"],
        tasks_per_step=size["tasks"],
        rollouts_per_task=size["rollouts"],
        keep=size["rollouts"] // 2,
        refills=0 if given.short else 1,
        watch_every=size["steps"],
        watch_items=8 if given.short else 96,
        checkpoint_every=size["steps"],
        packing=True,
    )
    rates = {"full": 3e-4, "lora": 3e-3}
    recipe = Recipe(
        training=training,
        agent=AgentBudget(concurrent=64, max_tokens=TOKENS),
        evaluation=EvaluationRecipe(sealed_items=size["sealed"]),
        tasksets=tasksets,
    )
    model = given.taught.resolve() if given.taught else teach(data, size, recipe, tasksets)
    rows = []
    for method in given.methods.split(","):
        for engine in given.engines.split(","):
            own = training.model_copy(update={"method": method, "learning_rate": rates[method]})
            folder = data / f"{engine}-{method}"
            folder.mkdir()
            row = night(folder, model, engine, recipe.model_copy(update={"training": own}))
            rows.append(row)
            value, low, high = row["gain"]
            print(
                f"{engine:6} {method:5} {row['before']:.3f} -> {row['after']:.3f}  gain {value:+.3f} [{low:+.3f}, "
                f"{high:+.3f}]  {row['unproved']} of {row['tokens']} tokens unproved, {row['proofs']} versions proved, "
                f"{len(row['put_aside'])} engines put aside, {row['seconds']:.0f} s",
                flush=True,
            )
    report = {"short": given.short, "cores": len(os.sched_getaffinity(0)), "python": platform.python_version()}
    if given.json:
        given.json.write_text(json.dumps(report | {"nights": rows}, indent=1) + "\n")
    met = all(row["unproved"] == 0 and (given.short or row["gain"][1] > 0) for row in rows)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()

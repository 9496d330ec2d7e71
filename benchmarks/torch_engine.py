"""The torch engine against `transformers.generate`: multi-turn rollouts and tokens, short and long contexts.

    python -m benchmarks.torch_engine [--json FILE] [--short] [--threads 2] [--repeats 5]
    python -m benchmarks.torch_engine --device cuda --hidden 1024 --layers 14 --repeats 3
    python -m benchmarks.torch_engine --model FOLDER [--rows 8] [--contexts 64] [--repeats 2]

Same model (Qwen3, random weights), same prompts, same threads, in one run; the two take turns and go first in turn, and
medians of the ratios of neighbouring runs are reported with their range. Bars: 3 times the finished multi-turn
rollouts, 1.25 times the tokens a second, each at 64 rows, with prompts of 64 tokens and of 4,096.

A rollout has three turns with a result of 24 tokens forced between two of them. One token in 24 ends a turn, so turns
have 24 tokens in the mean, and both sides draw their own. `generate` is called for each turn on all rows that are under
way, filled up with new ones between turns; it pads on the left, ends each turn at its stop, keeps no cache from turn to
turn (it has no way to put a result behind it for each row), and is spared the log-probabilities.

On a processor (the default) time is that of this process's processors, so other work on the machine costs both sides
alike, and nothing is said of a GPU. With `--device cuda` both sides compute on the first GPU in bfloat16, the engine's
last product in float32, and time is the clock's, once the GPU has nothing left to do. `--short` is a model of two
layers, 8 rows, prompts of 1,536 tokens and two repeats: some 40 s.

With `--model` it is a pretrained model instead, prompts and results are windows of the pages in `docs/`, and the end of
a sentence or a line ends a turn: some 20 tokens. `rolled` has the sampled tokens of a rollout on either side.

Exits 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

os.environ["OMP_WAIT_POLICY"] = os.environ.get("OMP_WAIT_POLICY", "PASSIVE")  # as in the worker; torch reads it once

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.inference.engine import Engine, GenerationRequest
from appliance.inference.engines import make_engine
from appliance.inference.folder import open_model, read_model
from benchmarks.pretrained_text import Text
from benchmarks.record import write_run

ROLLOUTS_BAR, TOKENS_BAR = 3.0, 1.25
TURNS, RESULT, NEW, MOST = 3, 24, 64, 96
"""Turns of a rollout, tokens of a result, new tokens of the plain measure, the most of a turn."""

Prompts = Sequence[tuple[int, ...]]
FORCED = (1,) * RESULT
"""Result between two turns of a model with random weights."""


def make_model(layers: int, hidden: int, vocabulary: int, positions: int) -> Any:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 32,
        num_key_value_heads=max(1, hidden // 64),
        head_dim=32,
        max_position_embeddings=positions,
        eos_token_id=None,
        bos_token_id=None,
    )
    return Qwen3ForCausalLM(config).eval()


def make_prompts(count: int, context: int, vocabulary: int, rng: Random) -> Prompts:
    return [
        tuple(rng.randrange(vocabulary) for _ in range(max(2, round(context * rng.uniform(0.5, 1.0)))))
        for _ in range(count)
    ]


def text_prompts(count: int, context: int, text: Text, rng: Random) -> Prompts:
    return [text.window(max(2, round(context * rng.uniform(0.5, 1.0))), rng) for _ in range(count)]


def roll_with_engine(engine: Engine, prompts: Prompts, stops: tuple[int, ...], forced: tuple[int, ...] = FORCED) -> int:
    """Plays all rollouts; returns the tokens that were sampled. A turn of `MOST` tokens ends there, as with `generate`:
    the engine, which limits conversations and not turns, is given the conversation again."""
    before = engine.tokens_sampled
    histories, turns = [list(prompt) for prompt in prompts], [0] * len(prompts)
    starts = [len(prompt) for prompt in prompts]

    def submit(number: int) -> None:
        most = len(prompts[number]) + TURNS * (MOST + RESULT)
        ids = tuple(histories[number])
        engine.submit(GenerationRequest(number, ids, stops[0], most, 1.0, number, other_stops=stops[1:]))

    def goes_on(number: int, ids: Sequence[int]) -> bool:
        turns[number] += 1
        histories[number] += (*ids, *forced)
        starts[number] = len(histories[number])
        return turns[number] < TURNS

    for number in range(len(prompts)):
        submit(number)
    while engine.unfinished:
        for turn in engine.step():
            if goes_on(turn.request, turn.ids) and turn.ended == "stop":
                engine.resume(turn.request, forced)
            else:
                engine.finish(turn.request)
        for number, length in engine.lengths().items():
            if length - starts[number] >= MOST and goes_on(number, engine.withdraw(number).ids):
                submit(number)
    return engine.tokens_sampled - before


@torch.inference_mode()
def roll_with_generate(
    model: Any, prompts: Prompts, stops: tuple[int, ...], rows: int, forced: tuple[int, ...] = FORCED
) -> int:
    waiting = deque([list(prompt), 0] for prompt in prompts)
    active: list[Any] = []
    sampled = 0
    while waiting or active:
        while waiting and len(active) < rows:
            active.append(waiting.popleft())
        drawn = generate(model, [one[0] for one in active], MOST, stops)
        for one, turn in zip(active, drawn, strict=True):
            end = next((at + 1 for at, token in enumerate(turn) if token in stops), len(turn))
            sampled += end
            one[0] += (*turn[:end], *forced)
            one[1] += 1
        active = [one for one in active if one[1] < TURNS]
    return sampled


@torch.inference_mode()
def generate(model: Any, histories: Sequence[list[int]], new: int, stops: tuple[int, ...] | None) -> list[list[int]]:
    longest = max(map(len, histories))
    ids = torch.tensor([[0] * (longest - len(ids)) + ids for ids in histories], device=model.device)
    mask = torch.tensor([[0] * (longest - len(ids)) + [1] * len(ids) for ids in histories], device=model.device)
    ends = {"eos_token_id": list(stops)} if stops else {"min_new_tokens": new}
    out = model.generate(
        input_ids=ids,
        attention_mask=mask,
        max_new_tokens=new,
        do_sample=True,
        temperature=1.0,
        top_k=0,
        pad_token_id=0,
        **ends,
    )
    found: list[list[int]] = out[:, longest:].tolist()
    return found


def plain_with_engine(engine: Engine, prompts: Prompts, stop: int = -1) -> int:
    """Samples NEW tokens behind each prompt. vLLM takes no `stop` outside its vocabulary; a turn that draws it ends."""
    before = engine.tokens_sampled
    for number, prompt in enumerate(prompts):
        engine.submit(GenerationRequest(number, prompt, stop, len(prompt) + NEW, 1.0, number))
    while engine.unfinished:
        for turn in engine.step():
            engine.finish(turn.request)
    return engine.tokens_sampled - before


def plain_with_generate(model: Any, prompts: Prompts) -> int:
    return sum(map(len, generate(model, [list(prompt) for prompt in prompts], NEW, None)))


def spent(work: Callable[[], int], *, clocked: bool = False) -> tuple[float, int]:
    """Seconds of this process's processors, or of the clock if `clocked` or on a GPU, and what it returned."""
    clock = time.monotonic if clocked or torch.cuda.is_initialized() else time.process_time
    start = clock()
    done = work()
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return clock() - start, done


def compare(
    arms: dict[str, Callable[[Prompts], int]],
    prompts: Prompts,
    per: Callable[[int], float],
    repeats: int,
    *,
    clocked: bool = False,
) -> dict[str, Any]:
    """Runs the arms in turn, each first every other time; rates are `per(done)` a second, as in `spent`.

    Before that both warm up with an eighth of the prompts. What each run took is told as it ends.
    """
    rates: dict[str, list[float]] = {name: [] for name in arms}
    sampled: dict[str, list[int]] = {name: [] for name in arms}
    for arm in arms.values():
        arm(prompts[: max(1, len(prompts) // 8)])
    for repeat in range(repeats):
        for name in reversed(list(arms)) if repeat % 2 else list(arms):
            seconds, done = spent(lambda arm=arms[name]: arm(prompts), clocked=clocked)
            sampled[name].append(done)
            rates[name].append(per(done) / seconds)
            print(f"{name}, repeat {repeat + 1}: {seconds:.1f} s, {done:,} tokens", file=sys.stderr, flush=True)
    ratios = [one / other for one, other in zip(rates["engine"], rates["generate"], strict=True)]
    return {
        **{name: statistics.median(found) for name, found in rates.items()},
        "ratio": statistics.median(ratios),
        "range": [min(ratios), max(ratios)],
        "rolled": {name: round(statistics.mean(found) / len(prompts), 1) for name, found in sampled.items()},
    }


def measure(
    engine: Engine,
    model: Any,
    prompts: Prompts,
    stops: tuple[int, ...],
    *,
    rows: int,
    repeats: int,
    forced: tuple[int, ...] = FORCED,
    clocked: bool = False,
    stop: int = -1,
) -> dict[str, Any]:
    """Compares an engine that has the model's weights with `generate`, in rollouts and in tokens; the latter on `rows`
    prompts."""
    rollouts = compare(
        {
            "engine": lambda some: roll_with_engine(engine, some, stops, forced),
            "generate": lambda some: roll_with_generate(model, some, stops, rows, forced),
        },
        prompts,
        lambda _: float(len(prompts)),
        repeats,
        clocked=clocked,
    )
    tokens = compare(
        {
            "engine": lambda some: plain_with_engine(engine, some, stop),
            "generate": lambda some: plain_with_generate(model, some),
        },
        prompts[:rows],
        float,
        repeats,
        clocked=clocked,
    )
    return {
        "rollouts a second": {**rollouts, "bar": ROLLOUTS_BAR, "met": rollouts["ratio"] >= ROLLOUTS_BAR},
        "tokens a second": {**tokens, "bar": TOKENS_BAR, "met": tokens["ratio"] >= TOKENS_BAR},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--short", action="store_true", help="2 layers, 8 rows, 1,536 tokens, 2 repeats")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--contexts", type=int, nargs="+", help="tokens of the longest prompt")
    parser.add_argument("--hidden", type=int, help="size of the model; a multiple of 64")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="a pretrained model instead of random weights")
    asked = parser.parse_args()
    short = asked.short
    rows, repeats = asked.rows or (8 if short else 64), asked.repeats or (2 if short else 5)
    contexts = asked.contexts or ([64, 1536] if short else [64, 4096])
    hidden, layers = asked.hidden or (128 if short else 256), asked.layers or (2 if short else 4)
    torch.set_num_threads(asked.threads)
    vocabulary, rng = 2048, Random(3)
    most = max(contexts) + TURNS * (MOST + RESULT)
    text = Text(asked.model) if asked.model else None
    if text is None:
        model, stops, forced = (
            make_model(layers, hidden, vocabulary, most),
            tuple(range(2, 2 + vocabulary // 24)),
            FORCED,
        )
    else:
        model, stops, forced = open_model(read_model(asked.model)), text.stops(), text.window(RESULT, rng)
    on_gpu = asked.device == "cuda"
    if on_gpu:
        model = model.to("cuda", torch.bfloat16)
    figures: dict[str, Any] = {
        "title": f"{torch.cuda.get_device_name()}, bfloat16" if on_gpu else "CPU, seconds of its own processors",
        "threads": asked.threads,
        "rows": rows,
        "repeats": repeats,
        "model": {
            "layers": model.config.num_hidden_layers,
            "hidden": model.config.hidden_size,
            "parameters": model.num_parameters(),
        },
        "load": os.getloadavg()[0],
    }
    missed: list[str] = []
    for context in contexts:
        engine = make_engine("torch", rows=rows, slots=context + TURNS * (MOST + RESULT), device=asked.device)
        engine.push(model, "benchmark")
        if text is None:
            prompts = make_prompts(2 * rows, context, vocabulary, rng)
        else:
            prompts = text_prompts(2 * rows, context, text, rng)
        found = measure(engine, model, prompts, stops, rows=rows, repeats=repeats, forced=forced)
        engine.close()
        figures[f"context {context}"] = found
        missed += [name for name, one in found.items() if not one["met"]]
    print(json.dumps(figures, indent=1))
    write_run(figures, asked.json)
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()

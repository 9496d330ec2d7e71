"""The embedded engine against `transformers.generate`: same model, same batch, same threads, in one run.

    python benchmarks/inference.py [--json FILE] [--threads 2] [--model FOLDER]

Two figures carry a bar: finished multi-turn rollouts per second, at least 3 times those of a loop that calls `generate`
for each turn, and plain tokens per second at batch 64 with 64 new tokens, at least 1.25 times `generate`'s best cache.

The rival is written to win: it pads on the left, fills its batch up with new conversations between turns, stops at the
turn's end, and is spared the log-probabilities that the engine returns. What it cannot avoid is reading the history
again for each turn and waiting for the longest turn of the batch. Without `--model`, a seedling is taught the form of a
conversation for a few seconds first. The tool is a local function of the decoded text: no sandbox is measured here.
Repetitions alternate between the two, and the medians are compared. Threads wait without spinning, as in the worker:
with other work on the same cores, spinning ones cost both sides most of their speed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

os.environ["OMP_WAIT_POLICY"] = os.environ.get("OMP_WAIT_POLICY", "PASSIVE")  # as in the worker; torch reads it once

import torch
import torch.nn.functional as F  # noqa: N812

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.agent.budget import AgentBudget
from appliance.inference.engine import Engine, GenerationRequest
from appliance.inference.engines import make_engine
from appliance.inference.folder import open_model, read_model
from appliance.rendering.formats import load_renderer
from appliance.rendering.markers import SEEDLING, MarkerRenderer
from appliance.rendering.renderer import Renderer, ToolRequest
from appliance.seedling.model import new_seedling, save_model_folder
from appliance.seedling.tokenizer import train_tokenizer
from benchmarks.record import write_run
from curriculum.demonstrations import Demonstration, demonstration

BUDGET = AgentBudget()
ROLLOUTS_BAR, TOKENS_BAR = 3.0, 1.25
PLAIN_PROMPT, PLAIN_NEW = 16, 64


def tool(code: str) -> str:
    """Stands for a tool: a few digits that depend on the code."""
    return str(sum(code.encode()) % 997)


@dataclass
class Conversation:
    ids: list[int]
    calls: int = 0
    sampled: int = 0
    turns: int = 0
    done: bool = field(default=False)


def take_turn(renderer: Renderer, conversation: Conversation, turn: Sequence[int]) -> tuple[int, ...]:
    """Books a sampled turn; returns the tokens to force next, () when the conversation is over."""
    conversation.ids.extend(turn)
    conversation.sampled += len(turn)
    conversation.turns += 1
    if turn and turn[-1] == renderer.stop and conversation.calls < BUDGET.max_calls:
        meaning = renderer.read(turn)
        if isinstance(meaning, ToolRequest):
            forced = renderer.result(tool(meaning.code))
            if len(conversation.ids) + len(forced) < BUDGET.max_tokens:
                conversation.calls += 1
                conversation.ids.extend(forced)
                return forced
    conversation.done = True
    return ()


def roll_with_engine(engine: Engine, renderer: Renderer, prompts: Sequence[tuple[int, ...]]) -> list[Conversation]:
    conversations = [Conversation(list(prompt)) for prompt in prompts]
    for i, prompt in enumerate(prompts):
        engine.submit(GenerationRequest(i, prompt, renderer.stop, BUDGET.max_tokens, 1.0, seed=i))
    while engine.unfinished:
        for turn in engine.step():
            forced = take_turn(renderer, conversations[turn.request], turn.ids)
            if forced:
                engine.resume(turn.request, forced)
            else:
                engine.finish(turn.request)
    return conversations


@torch.inference_mode()
def roll_with_generate(
    model: Any, renderer: Renderer, prompts: Sequence[tuple[int, ...]], rows: int
) -> list[Conversation]:
    conversations = [Conversation(list(prompt)) for prompt in prompts]
    waiting = deque(conversations)
    active: list[Conversation] = []
    while waiting or active:
        while waiting and len(active) < rows:
            active.append(waiting.popleft())
        longest = max(len(c.ids) for c in active)
        ids = torch.tensor([[0] * (longest - len(c.ids)) + c.ids for c in active])
        mask = torch.tensor([[0] * (longest - len(c.ids)) + [1] * len(c.ids) for c in active])
        out = model.generate(
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=BUDGET.max_tokens - min(len(c.ids) for c in active),
            do_sample=True,
            temperature=1.0,
            top_k=0,
            eos_token_id=renderer.stop,
            pad_token_id=0,
        )[:, longest:].tolist()
        for conversation, drawn in zip(active, out, strict=True):
            end = drawn.index(renderer.stop) + 1 if renderer.stop in drawn else len(drawn)
            take_turn(renderer, conversation, drawn[: min(end, BUDGET.max_tokens - len(conversation.ids))])
        active = [conversation for conversation in active if not conversation.done]
    return conversations


def plain_with_engine(engine: Engine, prompts: Sequence[tuple[int, ...]]) -> int:
    """Samples PLAIN_NEW tokens for each prompt without a stop; returns how many were sampled."""
    before = engine.tokens_sampled
    for i, prompt in enumerate(prompts):
        engine.submit(GenerationRequest(i, prompt, -1, len(prompt) + PLAIN_NEW, 1.0, seed=i))
    while engine.unfinished:
        engine.step()
    return engine.tokens_sampled - before


@torch.inference_mode()
def plain_with_generate(model: Any, prompts: Sequence[tuple[int, ...]], cache: str) -> int:
    ids = torch.tensor(prompts)
    out = model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=PLAIN_NEW,
        min_new_tokens=PLAIN_NEW,
        do_sample=True,
        temperature=1.0,
        top_k=0,
        pad_token_id=0,
        cache_implementation=cache,
        disable_compile=True,
    )
    return int(out.shape[0] * (out.shape[1] - ids.shape[1]))


def teach(folder: Path, steps: int, seed: int) -> None:
    """Makes a seedling that has seen the form of a conversation: enough to take turns as a trained one does."""
    rng = Random(seed)
    shown = [demonstration(rng, right_choice=0.6, fail_first=0.5) for _ in range(2000)]
    tokenizer = train_tokenizer([text for one in shown for text in (one.task.question, *one.calls, "\\boxed{12}")])
    renderer = MarkerRenderer(tokenizer, SEEDLING)
    lessons = sorted((written(renderer, one) for one in shown), key=lambda lesson: len(lesson[0]))
    model = new_seedling(tokenizer, seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        start = rng.randrange(len(lessons) - 64)
        batch = lessons[start : start + 64]
        width = max(len(ids) for ids, _ in batch)
        ids = torch.tensor([ids + [0] * (width - len(ids)) for ids, _ in batch])
        wanted = torch.tensor([mask + [0] * (width - len(mask)) for _, mask in batch])[:, 1:]
        logits = model(input_ids=ids[:, :-1], use_cache=False).logits
        loss = F.cross_entropy(logits[wanted == 1], ids[:, 1:][wanted == 1])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    save_model_folder(model, tokenizer, folder)


def written(renderer: Renderer, shown: Demonstration) -> tuple[list[int], list[int]]:
    """A demonstration in tokens, and which of them are the policy model's own."""
    ids = list(renderer.question(shown.task.question))
    mask = [0] * len(ids)
    for code in shown.calls:
        for part, own in ((renderer.call(code), 1), (renderer.result(tool(code)), 0)):
            ids.extend(part)
            mask.extend([own] * len(part))
    last = renderer.answer(f"\\boxed{{{tool(shown.calls[-1])}}}")
    return ids + list(last), mask + [1] * len(last)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def compare_plain(model: Any, rows: int, repetitions: int, rng: Random) -> dict[str, float]:
    engine = make_engine("torch", rows=rows, slots=PLAIN_PROMPT + PLAIN_NEW)
    engine.push(model, "benchmark")
    rates: dict[str, list[float]] = {"engine": [], "dynamic": [], "static": []}
    for repetition in range(repetitions + 1):
        prompts = [tuple(rng.randrange(6, 256) for _ in range(PLAIN_PROMPT)) for _ in range(rows)]
        for name in rates:
            seconds, tokens = timed(
                lambda name=name, prompts=prompts: (
                    plain_with_engine(engine, prompts)
                    if name == "engine"
                    else plain_with_generate(model, prompts, name)
                )
            )
            if repetition:
                rates[name].append(tokens / seconds)
    return {name: statistics.median(found) for name, found in rates.items()}


def compare_rollouts(
    model: Any, renderer: Renderer, prompts: Sequence[tuple[int, ...]], rows: int, repetitions: int
) -> dict[str, float]:
    engine = make_engine("torch", rows=rows, slots=BUDGET.max_tokens)
    rates: dict[str, list[float]] = {"engine": [], "generate": []}
    shapes: dict[str, list[float]] = {"engine": [], "generate": []}
    for repetition in range(repetitions + 1):
        engine.push(model, "benchmark")
        for name, found in rates.items():
            seconds, rolled = timed(
                lambda name=name: (
                    roll_with_engine(engine, renderer, prompts)
                    if name == "engine"
                    else roll_with_generate(model, renderer, prompts, rows)
                )
            )
            if repetition:
                found.append(len(rolled) / seconds)
                shapes[name].append(sum(one.sampled for one in rolled) / len(rolled))
    figures = {f"{name}_rollouts_per_second": statistics.median(found) for name, found in rates.items()}
    figures |= {f"{name}_tokens_per_rollout": statistics.mean(found) for name, found in shapes.items()}
    figures["ratio"] = figures["engine_rollouts_per_second"] / figures["generate_rollouts_per_second"]
    return figures


def loading(model: Any, repetitions: int) -> float:
    """Median milliseconds to take the weights of a live model, as after every training step."""
    engine = make_engine("torch", rows=1, slots=BUDGET.max_tokens)
    return 1000 * statistics.median(timed(lambda: engine.push(model, "benchmark"))[0] for _ in range(4 * repetitions))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--model", type=Path, help="a model folder; default: a seedling taught for a few seconds")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--rows", type=int, default=BUDGET.concurrent)
    parser.add_argument("--rollouts", type=int, default=384)
    parser.add_argument("--group", type=int, default=16, help="rollouts of one question in the grouped measurement")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)

    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.model
        if folder is None:
            folder = Path(scratch) / "seedling"
            teach(folder, steps=120, seed=0)
        model, renderer = open_model(read_model(folder)), load_renderer(read_model(folder))
    rng = Random(7)
    questions = [
        renderer.question(demonstration(rng, right_choice=1.0, fail_first=0.0).task.question)
        for _ in range(asked.rollouts)
    ]
    groups = [question for question in questions[: asked.rollouts // asked.group] for _ in range(asked.group)]

    figures: dict[str, Any] = {
        "machine": {"processor": platform.processor() or platform.machine(), "threads": asked.threads},
        "rows": asked.rows,
        "rollouts": asked.rollouts,
        "push_milliseconds": loading(model, asked.repetitions),
        "distinct_questions": compare_rollouts(model, renderer, questions, asked.rows, asked.repetitions),
        "grouped_questions": compare_rollouts(model, renderer, groups, asked.rows, asked.repetitions),
        "plain_tokens_per_second": {},
    }
    for rows in (64, 128, 192, 384):
        figures["plain_tokens_per_second"][str(rows)] = compare_plain(model, rows, asked.repetitions, rng)
    plain = figures["plain_tokens_per_second"]["64"]
    figures["bars"] = {
        "rollouts": {"ratio": figures["distinct_questions"]["ratio"], "bar": ROLLOUTS_BAR},
        "tokens": {"ratio": plain["engine"] / max(plain["dynamic"], plain["static"]), "bar": TOKENS_BAR},
    }
    for bar in figures["bars"].values():
        bar["met"] = bar["ratio"] >= bar["bar"]
    print(json.dumps(figures, indent=1))
    write_run(figures, asked.json)


if __name__ == "__main__":
    main()

"""Tiny models of several architectures, and a driver that plays conversations in a random order."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from appliance.inference.engine import GenerationRequest
from appliance.inference.torch_engine import TorchEngine

torch.set_num_threads(1)
VOCABULARY = 48
NAMES = ("qwen2", "llama", "qwen3", "gpt2")


@cache
def tiny(name: str, head: int = 8) -> Any:
    """Weights are wide, so that distributions are far from uniform and an error would show. `head` is the size of an
    attention head: vLLM's processor build knows none below 32."""
    shape = {
        "vocab_size": VOCABULARY,
        "hidden_size": 4 * head if head < 32 else 2 * head,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4 if head < 32 else 2,
        "num_key_value_heads": 2 if head < 32 else 1,
        "max_position_embeddings": 128,
        "bos_token_id": None,
        "eos_token_id": None,
        "initializer_range": 0.3,
    }
    torch.manual_seed(11)
    model: Any
    if name == "qwen2":
        model = Qwen2ForCausalLM(Qwen2Config(**shape, tie_word_embeddings=True))
    elif name == "llama":
        scaled = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}
        model = LlamaForCausalLM(LlamaConfig(**shape, attention_bias=True, mlp_bias=True, rope_parameters=scaled))
    elif name == "qwen3":
        model = Qwen3ForCausalLM(Qwen3Config(**shape, head_dim=max(16, head)))
    else:
        model = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=VOCABULARY,
                n_embd=32,
                n_layer=2,
                n_head=2,
                n_positions=128,
                bos_token_id=None,
                eos_token_id=None,
                initializer_range=0.3,
            )
        )
    with torch.no_grad():
        for key, weight in model.named_parameters():
            if "norm" in key or "ln_" in key or "bias" in key:
                weight.add_(torch.randn(weight.shape) * 0.2)
    return model.eval()


def engine_for(name: str, rows: int, slots: int, **options: Any) -> TorchEngine:
    engine = TorchEngine(rows, slots, **options)
    engine.push(tiny(name), f"digest of {name}")
    return engine


@dataclass
class Played:
    """A finished conversation: all its tokens, and the log-probability by index of those that were sampled."""

    request: GenerationRequest
    ids: list[int]
    logprobs: dict[int, float] = field(default_factory=dict)


def some_requests(random: Random, count: int, slots: int) -> list[GenerationRequest]:
    prompts = [tuple(random.randrange(VOCABULARY) for _ in range(random.choice((1, 4, 9)))) for _ in range(6)]
    return [
        GenerationRequest(
            id=number,
            prompt=random.choice(prompts),
            stop=random.randrange(4),
            max_tokens=random.randrange(slots // 2, slots + 1),
            temperature=random.choice((1.0, 0.6, 1.7)),
            seed=random.getrandbits(63),
        )
        for number in range(count)
    ]


def forced_on(request: GenerationRequest, turn: int) -> list[int]:
    """What the tool says: it depends on the conversation, not on when it is asked."""
    random = Random(request.seed + turn)
    return [random.randrange(VOCABULARY) for _ in range(random.choice((0, 1, 5)))]


def play(
    engine: TorchEngine, requests: list[GenerationRequest], schedule: Random, longest_wait: int = 40
) -> list[Played]:
    """Plays all conversations, with submissions and tool answers at random moments."""
    played = {request.id: Played(request, list(request.prompt)) for request in requests}
    turns = dict.fromkeys(played, 0)
    todo, waiting = list(requests), dict[int, int]()
    while todo or engine.unfinished:
        while todo and (schedule.random() < 0.6 or not engine.unfinished):
            engine.submit(todo.pop(0))
        for turn in engine.step():
            one = played[turn.request]
            one.logprobs |= {len(one.ids) + i: value for i, value in enumerate(turn.logprobs)}
            one.ids.extend(turn.ids)
            if turn.ended == "stop":
                waiting[turn.request] = schedule.choice((0, 1, 3, longest_wait))
        for number in [number for number, left in waiting.items() if left <= 0]:
            del waiting[number]
            one = played[number]
            forced = forced_on(one.request, turns[number])
            turns[number] += 1
            if len(one.ids) + len(forced) < one.request.max_tokens:
                engine.resume(number, forced)
                one.ids.extend(forced)
            else:
                engine.finish(number)
        waiting = {number: left - 1 for number, left in waiting.items()}
    return list(played.values())

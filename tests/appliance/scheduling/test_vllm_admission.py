"""C6: on the real vLLM with a small cache, what the scheduler admits is never preempted, and all at once is, for which
tokens are computed again."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
import torch
from inference_models import VOCABULARY, tiny
from vllm_engines import needs_vllm, recounting_process

from appliance.inference.engine import Engine, GenerationRequest, Turn
from appliance.inference.vllm.engine import VllmEngine
from appliance.scheduling.engine_pool import EnginePool

pytestmark = [needs_vllm, pytest.mark.timeout(900)]
SLOTS, ROWS, HEAD = 120, 16, 32
BLOCK_BYTES = 2 * 4 * HEAD * 2 * 32
"""Keys and values, float32, one head, two layers, 32 tokens."""
BLOCKS = 5 * 4
"""Five of the longest conversations; there are rows for sixteen."""


class Small:
    """The engine, and how many tokens it computed again after a preemption."""

    def __init__(self) -> None:
        self.engine = VllmEngine(ROWS, SLOTS, start=self._start)

    def _start(self, settings: dict[str, Any]) -> Any:
        self._process = recounting_process(settings | {"cache_bytes": (BLOCKS + 1) * BLOCK_BYTES})
        return self._process

    def recomputed(self) -> int:
        return int(self._process.ask("figures")["recomputed"])


@pytest.fixture
def small() -> Iterator[Small]:
    made = Small()
    yield made
    made.engine.close()


def requests() -> list[GenerationRequest]:
    """Conversations of very different lengths: most are short, as those that were recorded."""
    rng = Random(6)
    made = []
    for number in range(2 * ROWS):
        prompt = tuple(rng.randrange(VOCABULARY - 1) for _ in range(rng.randint(4, 12)))
        longest = min(SLOTS, int(40 * rng.lognormvariate(0.5, 0.7)) + 16)
        made.append(GenerationRequest(number, prompt, VOCABULARY - 1, longest, 1.0, number, group=str(number // 4)))
    return made


def converse(engine: Engine, sampler: VllmEngine) -> tuple[dict[int, tuple[Any, ...]], int]:
    """Whole conversations, with a token forced behind each turn, and how many ran at once at most."""
    asked = {request.id: request for request in requests()}
    known = {number: list(request.prompt) for number, request in asked.items()}
    found: dict[int, tuple[Any, ...]] = dict.fromkeys(asked, ())
    most = 0
    for request in asked.values():
        engine.submit(request)
    while engine.unfinished:
        most = max(most, sampler.unfinished)
        for turn in engine.step():
            number = turn.request
            found[number] += (turn,)
            known[number] += turn.ids
            if turn.ended == "stop" and len(known[number]) + 1 < asked[number].max_tokens:
                known[number].append(1)
                engine.resume(number, (1,))
            elif turn.ended == "stop":
                engine.finish(number)
    return found, most


@torch.no_grad()
def furthest(found: dict[int, tuple[Turn, ...]]) -> float:
    """The largest difference of a sampled log-probability from the model's own."""
    worst = 0.0
    for request in requests():
        known = list(request.prompt)
        for turn in found[request.id]:
            logits = tiny("qwen2", HEAD)(input_ids=torch.tensor([[*known, *turn.ids]])).logits[0, len(known) - 1 : -1]
            own = logits.log_softmax(-1).gather(1, torch.tensor(turn.ids)[:, None]).squeeze(1)
            worst = max(worst, (own - torch.tensor(turn.logprobs)).abs().max().item())
            known += [*turn.ids, 1]
    return worst


def test_c6_nothing_is_preempted_with_the_scheduler_and_without_it_much_is(small: Small) -> None:
    engine = small.engine
    engine.push(tiny("qwen2", HEAD), "static")
    assert engine.capacity.tokens == BLOCKS * engine.capacity.block
    everything, _ = converse(engine, engine)
    static, again = engine.preemptions(), small.recomputed()
    assert static > 0
    assert again > static, "a preempted conversation has more than one token"
    pool = EnginePool([engine], SLOTS)
    pool.push(tiny("qwen2", HEAD), "ours")
    for batch in range(2):  # before lengths are known, and after
        ours, most = converse(pool, engine)
        said = f"batch {batch}: {pool.figures()}"
        assert (engine.preemptions(), small.recomputed()) == (static, again), said
        assert pool.figures()["set_back_tokens"] < again, said
        assert most >= 4, "memory is not left idle"
        assert ours.keys() == everything.keys()
        assert furthest(ours) < 1e-4

"""Long conversations: memory follows the tokens that are there, and nothing that is drawn shows how they are kept."""

from __future__ import annotations

import dataclasses
import time
from random import Random
from resource import RUSAGE_SELF, getrusage
from typing import Any
from weakref import WeakSet

import pytest
import torch
from inference_models import NAMES, VOCABULARY, engine_for, play, some_requests, tiny
from tables import table
from transformers import DynamicCache, Qwen2Config, Qwen2ForCausalLM

from appliance.inference.device import Placement, choose_placement
from appliance.inference.engine import GenerationRequest, ModelError, NoProbabilitiesError, OutOfMemoryError, Turn
from appliance.inference.memory import SHORT
from appliance.inference.torch import engine as torch_engine
from appliance.inference.torch.blocks import BlockPool, Paging
from appliance.inference.torch.decoder import Decoder
from appliance.inference.torch.engine import TorchEngine
from appliance.inference.torch.slots import SlotCache
from appliance.planning.model_shape import EMBEDDED
from appliance.planning.sizes import cache_bytes
from runtime.errors import InfrastructureError

SLOTS = 48
SMALL = Paging(block=4, window=10, chunk=6)
"""So small that a conversation of `SLOTS` tokens is cut in every way."""
LONG = 8192
LONGEST = 4 * LONG
"""As many positions as `long_model` has."""


def with_long_prompts(count: int, seed: int) -> list[GenerationRequest]:
    asked = some_requests(Random(seed), count, SLOTS)
    longer = [dataclasses.replace(one, prompt=one.prompt * (1 + one.id % 3)) for one in asked]
    return [one if len(one.prompt) < one.max_tokens else dataclasses.replace(one, max_tokens=SLOTS) for one in longer]


@table("name", NAMES)
@table("room", [None, SLOTS + 4])
def test_blocks_chunks_and_scarce_memory_change_nothing_that_is_drawn(name: str, room: int | None) -> None:
    requests = with_long_prompts(12, seed=3)
    whole = play(engine_for(name, 5, SLOTS), requests, Random(1))
    engine = engine_for(name, 5, SLOTS, kv_tokens=room, paging=SMALL)
    cut = play(engine, requests, Random(2))
    assert [one.ids for one in cut] == [one.ids for one in whole]
    for one, other in zip(cut, whole, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
    scores = engine.score([one.ids for one in cut])
    for one, score in zip(cut, scores, strict=True):
        if one.request.temperature == 1:
            assert {at: score[at - 1] for at in one.logprobs} == pytest.approx(one.logprobs, abs=1e-4)


def test_no_more_tokens_are_held_than_there_is_room_for_and_a_waiting_row_that_gave_way_goes_on() -> None:
    engine = engine_for("qwen2", 4, SLOTS, kv_tokens=SLOTS + 4, paging=SMALL)
    for number in range(4):
        engine.submit(GenerationRequest(number, (1, 2, number), 5, SLOTS, 1.0, number))
    ids: dict[int, list[int]] = {number: [1, 2, number] for number in range(4)}
    for _ in range(1000):
        for turn in engine.step():
            ids[turn.request] += turn.ids
            if turn.ended == "stop" and len(ids[turn.request]) + 8 < SLOTS:
                engine.resume(turn.request, (7,) * 7)
                ids[turn.request] += (7,) * 7
            else:
                engine.finish(turn.request)
        assert engine._cache.tokens <= engine.kv_tokens == SLOTS + 4
        if not engine.unfinished:
            break
    assert engine.unfinished == 0
    assert engine._long is not None
    assert engine._long.evictions > 0
    assert engine._cache.tokens == engine._cache.pool.count == 0


def test_a_cache_lies_on_its_device_from_the_beginning_and_can_be_emptied_outside_of_a_step() -> None:
    there = torch.device("meta")  # stands for a GPU: what is made in a step's inference mode could not be changed later
    cache = SlotCache(2, SLOTS, 1, SMALL, there)
    assert cache.device == there
    with torch.inference_mode():
        cache.seat(0, [torch.zeros(1, 3, 4, device=there)], [torch.zeros(1, 3, 4, device=there)])
    cache.vacate(0)
    cache.free()


def long_model(seed: int = 5) -> Any:
    torch.manual_seed(seed)
    shape = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = Qwen2Config(
        **shape, vocab_size=VOCABULARY, num_key_value_heads=1, max_position_embeddings=LONGEST, initializer_range=0.2
    )
    return Qwen2ForCausalLM(config).eval()


def test_a_conversation_of_8192_tokens_beside_short_ones_takes_memory_for_the_tokens_that_are_there() -> None:
    model, rows, random = long_model(), 16, Random(4)
    engine = TorchEngine(rows, LONG)
    engine.push(model, "long")
    each = 2 * 2 * 1 * 16 * 4  # keys and values, layers, heads, size, bytes
    window = rows * Paging().window * each
    prompt = tuple(random.randrange(VOCABULARY) for _ in range(LONG - 40))
    engine.submit(GenerationRequest(0, prompt, -1, LONG, 1.0, 0))
    for number in range(1, 40):
        engine.submit(GenerationRequest(number, (number, 2, 3), -1, 60, 1.0, number))
    turns: dict[int, Turn] = {}
    most = 0
    while engine.unfinished:
        turns |= {turn.request: turn for turn in engine.step()}
        most = max(most, engine.kv_bytes)
        assert engine.kv_bytes <= 1.5 * engine._cache.tokens * each + window + 8 * Paging().block * each
    assert most < 0.2 * rows * LONG * each, "a slot for each token of the longest would take five times as much"
    assert len(turns) == 40
    scores = engine.score([prompt + turns[0].ids])[0]
    assert scores[len(prompt) - 1 :] == pytest.approx(turns[0].logprobs, abs=1e-4)
    with torch.no_grad():
        plain = model(input_ids=torch.tensor([[*prompt, *turns[0].ids]]), logits_to_keep=41).logits[0].log_softmax(-1)
    expected = plain[:-1].gather(1, torch.tensor(turns[0].ids)[:, None]).squeeze(1).tolist()
    assert turns[0].logprobs == pytest.approx(expected, abs=1e-4)


@torch.no_grad()
def plain_in_chunks(model: Any, ids: list[int], last: int) -> torch.Tensor:
    """Log-probabilities behind each of the last tokens, by the model's own forward pass over at most 1,024 at once."""
    cache, found = DynamicCache(), torch.zeros(0, VOCABULARY)
    for start in range(0, len(ids), 1024):
        some = torch.tensor([ids[start : start + 1024]])
        logits = model(input_ids=some, cache=cache, use_cache=True).logits[0]
        found = torch.cat([found, logits.log_softmax(-1)])[-last:]
    return found


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_conversation_of_32768_tokens_takes_turns_beside_short_ones() -> None:
    model, rows, random, prompt_tokens = long_model(), 4, Random(6), LONGEST - 68
    engine = TorchEngine(rows, LONGEST)
    engine.push(model, "long")
    each = 2 * 2 * 1 * 16 * 4  # as above
    prompt = tuple(random.randrange(VOCABULARY) for _ in range(prompt_tokens))
    engine.submit(GenerationRequest(0, prompt, 1, LONGEST, 1.0, 0, tuple(range(2, 8))))
    for number in range(1, 8):
        engine.submit(GenerationRequest(number, (number, 2, 3), -1, 60, 1.0, number))
    ids, sampled, turns, ended, most = [*prompt], dict[int, float](), 0, 0, 0
    began, used, before = time.monotonic(), time.process_time(), getrusage(RUSAGE_SELF).ru_maxrss
    while engine.unfinished:
        for turn in engine.step():
            if turn.request:
                ended += 1
                continue
            sampled |= {len(ids) + at: value for at, value in enumerate(turn.logprobs)}
            ids += turn.ids
            turns += 1
            if turn.ended == "stop" and len(ids) + 6 < LONGEST:
                engine.resume(0, (9, 8, 9, 8, 9))
                ids += (9, 8, 9, 8, 9)
            elif turn.ended == "stop":
                engine.finish(0)
        most = max(most, engine.kv_bytes)
    took = f"{time.monotonic() - began:.0f} s, {time.process_time() - used:.0f} s of the processor"
    more = (getrusage(RUSAGE_SELF).ru_maxrss - before) / 1024
    held = f"keys and values {most / 2**20:.1f} MiB at most, the process {more:.0f} MiB more than before"
    print(f"{turns} turns, {len(ids)} tokens, {len(sampled)} sampled, {took}, {held}")
    assert ended == 7
    assert turns > 2
    assert len(ids) > LONGEST - 8
    assert most < 1.5 * LONGEST * each + rows * Paging().window * each, "a slot for each token of each row takes 4"
    plain = plain_in_chunks(model, ids, last=len(ids) - prompt_tokens + 1)
    expected = {at: float(plain[at - prompt_tokens, ids[at]]) for at in sampled}
    print(f"off by at most {max(abs(sampled[at] - expected[at]) for at in sampled):.1e}")
    assert sampled == pytest.approx(expected, abs=1e-4)


def test_a_long_prompt_that_many_share_is_read_once() -> None:
    engine = TorchEngine(8, LONG)
    model = long_model()
    engine.push(model, "long")
    prompt = tuple(at * 7 % VOCABULARY for at in range(1500))
    for number in range(8):
        engine.submit(GenerationRequest(number, prompt, -1, 1510, 1.0, number))
    steps = 0
    while engine.unfinished:
        engine.step()
        steps += 1
    assert steps <= 3 + 8 + 10, "three chunks of one prompt, a step for each row to copy it, and ten tokens"


def most_held(engine: TorchEngine, tokens: int, steps: int) -> int:
    """What keys and values of full rows took at most."""
    for number in range(2 * engine.capacity.rows):
        prompt = tuple((number * 7 + at) % VOCABULARY for at in range(tokens - 100))
        engine.submit(GenerationRequest(number, prompt, -1, tokens, 1.0, number))
    most = 0
    for _ in range(steps):
        engine.step()
        most = max(most, engine.kv_bytes)
    return most


@pytest.mark.parametrize("share", [1, 3])
def test_keys_and_values_take_no_more_than_the_memory_that_there_is_for_them(
    monkeypatch: pytest.MonkeyPatch, share: int
) -> None:
    rows, tokens = 12, 1400
    limit = 256 * rows * (tokens // share + Paging().window)
    monkeypatch.setattr(Placement, "kv_memory", lambda self: limit)
    engine = TorchEngine(rows, tokens)
    engine.push(long_model(), "long")
    held = most_held(engine, tokens, 60)
    assert 0.8 * limit < held <= limit


@pytest.mark.parametrize("tokens", [SHORT, SHORT + 100])
def test_a_plan_counts_what_keys_and_values_take(tokens: int) -> None:
    model, rows = long_model(), 6
    engine = TorchEngine(rows, tokens, placement=Placement(torch.device("cpu"), torch.bfloat16))
    engine.push(model, "planned")
    shape = dataclasses.replace(EMBEDDED, layers=2, key_value=16)
    planned = cache_bytes(shape, tokens, rows, 2)
    assert 0.8 * planned < most_held(engine, tokens, 40) <= planned


@torch.inference_mode()
def test_blocks_stay_together_when_rows_come_and_go() -> None:
    pool, random = BlockPool(block=2), Random(1)
    pool.fit([torch.zeros(1, 0, 3)], [torch.zeros(1, 0, 3)])
    held: dict[int, torch.Tensor] = {}
    for step in range(300):
        row = random.randrange(6)
        if random.random() < 0.4:
            pool.drop(row)
            held.pop(row, None)
        else:
            new = torch.full((1, 2 * random.randrange(4), 3), float(step))
            pool.add(row, [new], [-new])
            held[row] = torch.cat([held.get(row, new[:, :0]), new], 1)
        assert len(pool.keys[0]) <= max(8, 4 * pool.count)
        for one, expected in held.items():
            keys, values = pool.history(one, 0)
            assert torch.equal(keys, expected)
            assert torch.equal(values, -expected)


def test_a_model_that_keeps_more_than_memory_holds_is_refused_with_what_would_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Placement, "kv_memory", lambda self: 256 * (2000 + window))
    window = 4 * Paging().window
    engine = TorchEngine(4, LONG)
    with pytest.raises(ModelError, match="8192 tokens") as caught:
        engine.push(long_model(), "long")
    assert "2000" in caught.value.hint
    smaller = TorchEngine(4, 1500)
    smaller.push(long_model(), "long")
    assert smaller.kv_tokens == 2000
    scores = smaller.score([tuple(range(1, 9))])
    monkeypatch.setattr(Placement, "kv_memory", lambda self: 256 * (1000 + window))
    with pytest.raises(ModelError, match="1500 tokens") as caught:
        smaller.push(long_model(seed=2), "too much")
    assert caught.value.hint == "lower recipe.agent.concurrent"
    monkeypatch.setattr(Placement, "most_kv_memory", lambda self: 256 * (2000 + window))
    with pytest.raises(OutOfMemoryError, match="1500 tokens") as full:  # somebody else has it now
        smaller.push(long_model(seed=2), "too much for now")
    assert full.value.hint == "stop other programs on the GPU, or lower recipe.agent.concurrent"
    assert (smaller.version, smaller.kv_tokens, smaller.score([tuple(range(1, 9))])) == ("long", 2000, scores)
    with pytest.raises(ValueError, match="is too small for one"):
        TorchEngine(4, SLOTS, kv_tokens=SLOTS - 1)


def test_a_gpu_never_holds_old_weights_beside_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPU is this machine, and has room for 4000 tokens, of which each decoder takes 1000."""
    window = 4 * Paging().window
    decoders: WeakSet[Decoder] = WeakSet()
    make, held = torch_engine.make_decoder, []

    class Card(Placement):
        gpu = True

        def kv_memory(self) -> int:
            held.append(len(decoders))
            return 256 * (4000 + window - 1000 * len(decoders))

        def most_kv_memory(self) -> int:
            return 256 * (4000 + window)

    def made(*given: Any, **how: Any) -> Decoder:
        held.append(len(decoders))
        decoders.add(decoder := make(*given, **how))
        return decoder

    monkeypatch.setattr(torch_engine, "make_decoder", made)
    engine = TorchEngine(4, 2500, placement=Card(torch.device("cpu"), torch.float32))
    for version in ("before", "the same once more"):
        engine.push(long_model(), version)
        assert (engine.version, engine.kv_tokens) == (version, 3000)
    assert held == [0, 1, 0, 1]
    diverged = long_model(seed=2)
    with torch.no_grad():
        diverged.model.embed_tokens.weight.fill_(float("nan"))
    with pytest.raises(NoProbabilitiesError):
        engine.push(diverged, "diverged")
    assert engine.version == ""
    with pytest.raises(RuntimeError, match="no weights"):
        engine.score([(1, 2)])
    engine.push(long_model(), "sound")
    assert engine.kv_tokens == 3000


@pytest.mark.parametrize("name", ["qwen3", "gpt2"])
def test_bfloat16_samples_what_it_scores_and_gives_log_probabilities_in_single_precision(name: str) -> None:
    engine = engine_for(name, 3, SLOTS, paging=SMALL, placement=choose_placement("cpu", "bfloat16"))
    exact = engine_for(name, 3, SLOTS)
    requests = [dataclasses.replace(one, temperature=1.0) for one in with_long_prompts(6, seed=8)]
    for one in play(engine, requests, Random(2)):
        found = torch.tensor([*one.logprobs.values()])
        for scorer, most in ((engine, 0.25), (exact, 0.25)):
            (score,) = scorer.score([one.ids])
            assert (found - torch.tensor([score[at - 1] for at in one.logprobs])).abs().mean() < most
        assert any(float(value) != float(value.bfloat16()) for value in found)
    assert engine._cache.keys[0].dtype is torch.bfloat16
    assert next(tiny(name).parameters()).dtype is torch.float32


def test_a_device_that_is_not_there_and_one_without_memory_are_said_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_placement() == Placement(torch.device("cpu"), torch.float32)
    with pytest.raises(InfrastructureError, match="no GPU here"):
        choose_placement("cuda")
    for device, dtype in (("tpu", "auto"), ("cpu", "int4")):
        with pytest.raises(ModelError, match="invalid"):
            choose_placement(device, dtype)
    engine = engine_for("qwen2", 2, SLOTS)
    engine.submit(GenerationRequest(0, (1, 2), -1, SLOTS, 1.0, 0))

    def full(*_: object) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has ...")

    monkeypatch.setattr(engine._decoder, "advance", full)
    engine.step()
    with pytest.raises(OutOfMemoryError, match="ran out of memory while 1 conversations went on") as caught:
        engine.step()
    assert "recipe.agent.concurrent" in caught.value.hint
    assert len(engine.withdraw(0).ids) == 1, "what was sampled is not lost"
    assert engine.unfinished == 0

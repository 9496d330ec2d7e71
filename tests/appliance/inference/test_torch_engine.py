"""The engine's promises: what a row draws and is told about it never depends on how the batch was run."""

from __future__ import annotations

import copy
import dataclasses
import math
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from inference_models import NAMES, VOCABULARY, Played, engine_for, forced_on, play, some_requests, tiny
from tables import table

from appliance.inference.engine import GenerationRequest, ModelError
from appliance.inference.sampling import uniforms
from appliance.inference.torch import engine as torch_engine
from appliance.inference.torch import fused
from appliance.inference.torch.engine import TorchEngine
from appliance.inference.torch.low_rank import LinearMap

SLOTS = 48


def plainly(name: str, ids: list[int]) -> torch.Tensor:
    """Logits [tokens, V] of a forward pass of transformers over the finished conversation."""
    with torch.no_grad():
        logits: torch.Tensor = tiny(name)(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float()
    return logits


def assert_faithful(name: str, played: Played) -> None:
    """Log-probabilities agree with transformers, and each token is the one that the seed picks there."""
    request, logits = played.request, plainly(name, played.ids)
    expected = (logits / request.temperature).log_softmax(-1)
    mass = expected.double().exp().cumsum(-1)
    stream = uniforms(request.seed, SLOTS)
    for at, logprob in played.logprobs.items():
        token = played.ids[at]
        assert logprob == pytest.approx(expected[at - 1, token].item(), abs=1e-4)
        below = mass[at - 1, token - 1].item() if token else 0.0
        assert below - 1e-4 <= stream[at].item() <= mass[at - 1, token].item() + 1e-4


@settings(max_examples=12, deadline=None)
@given(name=st.sampled_from(NAMES), rows=st.integers(1, 9), count=st.integers(1, 24), seed=st.integers(0, 2**32))
def test_log_probabilities_agree_with_transformers_however_rows_wait_and_are_refilled(
    name: str, rows: int, count: int, seed: int
) -> None:
    random = Random(seed)
    requests = some_requests(random, count, SLOTS)
    played = play(engine_for(name, rows, SLOTS), requests, schedule=random)
    assert len(played) == count
    for one in played:
        assert one.logprobs
        assert len(one.ids) <= one.request.max_tokens
        assert_faithful(name, one)


@pytest.mark.parametrize("name", NAMES)
def test_other_rows_and_another_schedule_change_nothing_that_is_drawn(name: str) -> None:
    requests = some_requests(Random(3), 12, SLOTS)
    together = play(engine_for(name, 12, SLOTS), requests, schedule=Random(4))
    crowded = play(engine_for(name, 5, SLOTS), requests, schedule=Random(5))
    alone = [play(engine_for(name, 1, SLOTS), [request], schedule=Random(6))[0] for request in requests]
    assert [one.ids for one in together] == [one.ids for one in crowded] == [one.ids for one in alone]


def test_a_row_that_waits_while_the_loop_goes_round_many_times_has_forgotten_nothing() -> None:
    engine, random = engine_for("qwen2", 3, SLOTS), Random(8)
    patient = GenerationRequest(0, (5, 6, 7), stop=-1, max_tokens=SLOTS, temperature=1.0, seed=1)
    for stop in range(VOCABULARY):
        patient = GenerationRequest(0, (5, 6, 7), stop=stop, max_tokens=SLOTS, temperature=1.0, seed=1)
        engine.submit(patient)
        (turn,) = [turn for _ in range(SLOTS) for turn in engine.step()]
        if turn.ended == "stop" and len(turn.ids) < 10:
            break
    ids = [*patient.prompt, *turn.ids]
    for number in range(1, 30):
        engine.submit(
            GenerationRequest(number, (1, 2), stop=-1, max_tokens=SLOTS, temperature=1.0, seed=random.getrandbits(40))
        )
    while engine.runnable:
        engine.step()
    forced = forced_on(patient, 0)
    engine.resume(0, forced)
    (last,) = [turn for _ in range(2 * SLOTS) for turn in engine.step()]
    start = len(ids) + len(forced)
    ids += [*forced, *last.ids]
    assert_faithful("qwen2", Played(patient, ids, {start + i: value for i, value in enumerate(last.logprobs)}))


def test_rows_that_close_the_gaps_take_all_of_their_tokens_along() -> None:
    engine = engine_for("qwen2", 4, SLOTS)
    for number in (0, 1):  # one after the other: what comes then may begin below the slots of the second
        engine.submit(GenerationRequest(number, (1 + number,), -1, 20, 1.0, number))
        while engine.unfinished:
            engine.step()
    prompts = [tuple((7 * at + 3 * row + row * row * at) % VOCABULARY for at in range(20)) for row in range(4)]
    for row, prompt in enumerate(prompts):  # two are full at once, and the others move to their rows
        engine.submit(GenerationRequest(2 + row, prompt, -1, 21 if row < 2 else 40, 1.0, row))
    turns = [turn for _ in range(20) for turn in engine.step()]
    assert len(turns) == 4
    for turn in turns:
        ids = [*prompts[turn.request - 2], *turn.ids]
        request = GenerationRequest(turn.request, prompts[turn.request - 2], -1, SLOTS, 1.0, turn.request - 2)
        assert_faithful("qwen2", Played(request, ids, {20 + at: value for at, value in enumerate(turn.logprobs)}))


def test_few_cached_prompts_and_a_sleep_that_frees_memory_change_nothing_that_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests = some_requests(Random(3), 12, SLOTS)
    expected = [one.ids for one in play(engine_for("qwen2", 5, SLOTS), requests, schedule=Random(5))]
    monkeypatch.setattr(torch_engine, "KEPT_TOKENS", 40)
    monkeypatch.setattr(torch_engine, "READ_TOKENS", 30)
    engine = engine_for("qwen2", 5, SLOTS)
    read, kept = TorchEngine._read, []

    def watched(self: TorchEngine, *given: Any) -> None:
        read(self, *given)
        kept.append(sum(map(len, self._prompts)))

    monkeypatch.setattr(TorchEngine, "_read", watched)
    for _ in range(2):
        assert [one.ids for one in play(engine, requests, schedule=Random(5))] == expected
        assert engine.kv_bytes > 0
        engine.sleep()
        assert (engine.kv_bytes, len(engine._prompts), engine.version != "") == (0, 0, True)
    assert 0 < max(kept) <= max(40, *(len(one.prompt) for one in requests))


def test_any_of_its_stop_tokens_ends_a_turn_of_a_row_and_of_no_other() -> None:
    engine = engine_for("qwen2", 2, SLOTS)
    engine.submit(GenerationRequest(0, (9,), -1, SLOTS, 1.0, 5))
    engine.submit(GenerationRequest(1, (9,), 0, SLOTS, 1.0, 5, other_stops=tuple(range(1, VOCABULARY))))
    (first,) = engine.step()
    assert (first.request, len(first.ids), first.ended) == (1, 1, "stop")
    (last,) = [turn for _ in range(SLOTS) for turn in engine.step()]
    assert (last.request, last.ended, last.ids[:1]) == (0, "length", first.ids)


def test_forced_tokens_ride_in_the_running_loop_and_hold_nobody_up() -> None:
    engine = engine_for("qwen2", 2, SLOTS)
    stop = next(
        token
        for token in range(VOCABULARY)
        if _first_turn(GenerationRequest(0, (9,), token, SLOTS, 1.0, 5)) in range(1, 8)
    )
    engine.submit(GenerationRequest(0, (9,), stop, SLOTS, 1.0, 5))
    engine.submit(GenerationRequest(1, (3,), -1, SLOTS, 1.0, 6))
    while not engine.step():
        pass
    before = engine.tokens_sampled
    for _ in range(5):
        assert engine.step() == []
    assert engine.tokens_sampled == before + 5, "the waiting row drew nothing, the other one a token a step"
    engine.resume(0, [1, 2, 3])
    for _ in range(3):
        engine.step()
    assert engine.tokens_sampled == before + 8, "the stop token and all but the last forced one sample nothing"
    engine.step()
    assert engine.tokens_sampled == before + 10


def _first_turn(request: GenerationRequest) -> int:
    """Tokens of the first turn; 0 when it never ends."""
    engine = engine_for("qwen2", 1, SLOTS)
    engine.submit(request)
    turns = [turn for _ in range(SLOTS) for turn in engine.step()]
    return len(turns[0].ids) if turns[0].ended == "stop" else 0


def test_greedy_takes_the_likeliest_token_and_reports_the_untempered_log_probability() -> None:
    engine = engine_for("llama", 4, SLOTS)
    engine.submit(GenerationRequest(0, (4, 2), -1, SLOTS, 0.0, 1))
    engine.submit(GenerationRequest(1, (4, 2), -1, SLOTS, 1.0, 1))
    turns = {turn.request: turn for _ in range(SLOTS) for turn in engine.step()}
    ids = [4, 2, *turns[0].ids]
    logits = plainly("llama", ids)
    assert list(turns[0].ids) == logits.argmax(-1)[1:-1].tolist()
    expected = logits.log_softmax(-1).max(-1).values[1:-1]
    assert torch.allclose(torch.tensor(turns[0].logprobs), expected, atol=1e-4)
    assert turns[1].ids != turns[0].ids


def test_a_row_that_spends_its_budget_ends_with_length_and_is_gone() -> None:
    engine = engine_for("qwen2", 1, SLOTS)
    engine.submit(GenerationRequest(7, (1, 2, 3), -1, 10, 1.0, 0))
    (turn,) = [turn for _ in range(20) for turn in engine.step()]
    assert (turn.request, turn.ended, len(turn.ids), len(turn.logprobs)) == (7, "length", 7, 7)
    assert engine.unfinished == 0
    with pytest.raises(ValueError, match="does not wait"):
        engine.resume(7, [1])


def test_waiting_rows_are_unfinished_but_not_runnable() -> None:
    engine = engine_for("qwen2", 2, SLOTS)
    for number in range(5):
        engine.submit(GenerationRequest(number, (number,), -1, SLOTS, 1.0, number))
    assert (engine.unfinished, engine.runnable) == (5, 2)
    engine.step()
    assert (engine.unfinished, engine.runnable) == (5, 2)
    engine.finish(0)
    engine.finish(4)
    engine.finish(4)
    assert (engine.unfinished, engine.runnable) == (3, 2)
    for number in range(1, 4):
        engine.finish(number)
    assert (engine.unfinished, engine.runnable, list(engine.step())) == (0, 0, [])


@table(
    "wrong",
    [
        GenerationRequest(1, (), 0, 10, 1.0, 0),
        GenerationRequest(1, (1, 2), 0, 2, 1.0, 0),
        GenerationRequest(1, (1, 2), 0, SLOTS + 1, 1.0, 0),
        GenerationRequest(1, (1, VOCABULARY), 0, 10, 1.0, 0),
        GenerationRequest(1, (1, -1), 0, 10, 1.0, 0),
        GenerationRequest(1, (1, 2), 0, 10, -0.5, 0),
        GenerationRequest(1, (1, 2), 0, 10, math.nan, 0),
        GenerationRequest(0, (1, 2), 0, 10, 1.0, 0),
    ],
)
def test_a_request_that_cannot_be_served_is_refused_before_it_costs_anything(wrong: GenerationRequest) -> None:
    engine = engine_for("qwen2", 1, SLOTS)
    engine.submit(GenerationRequest(0, (1,), 0, 10, 1.0, 0))
    with pytest.raises(ValueError, match=r"request|prompt|temperature|token"):
        engine.submit(wrong)
    assert engine.unfinished == 1


def test_forced_tokens_beyond_the_budget_are_refused() -> None:
    engine = engine_for("qwen2", 1, SLOTS)
    request = next(
        r for r in (GenerationRequest(0, (9,), t, 16, 1.0, 5) for t in range(VOCABULARY)) if 0 < _first_turn(r) < 8
    )
    engine.submit(request)
    while not engine.step():
        pass
    with pytest.raises(ValueError, match="leave no room"):
        engine.resume(0, [1] * 15)
    with pytest.raises(ValueError, match="vocabulary"):
        engine.resume(0, [VOCABULARY])
    engine.resume(0, [1])


def test_new_weights_are_used_at_once_and_never_in_the_middle_of_a_conversation() -> None:
    engine = engine_for("qwen2", 2, SLOTS)
    engine.submit(GenerationRequest(0, (1, 2), -1, SLOTS, 0.0, 0))
    engine.step()
    with pytest.raises(RuntimeError, match="unfinished"):
        engine.push(tiny("llama"), "another")
    assert engine.version == "digest of qwen2"
    engine.finish(0)
    engine.push(tiny("llama"), "another")
    assert engine.version == "another"
    engine.submit(GenerationRequest(0, (1, 2), -1, SLOTS, 0.0, 0))
    (turn,) = [turn for _ in range(SLOTS) for turn in engine.step()]
    assert list(turn.ids) == plainly("llama", [1, 2, *turn.ids]).argmax(-1)[1:-1].tolist()


def test_a_trained_copy_does_not_change_under_the_engine() -> None:
    model = tiny("qwen2")
    engine = engine_for("qwen2", 1, SLOTS)
    request = GenerationRequest(0, (3, 1), -1, 20, 1.0, 2)
    engine.submit(request)
    (before,) = [turn for _ in range(20) for turn in engine.step()]
    weights = {key: weight.clone() for key, weight in model.state_dict().items()}
    try:
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(1.5)
        engine.submit(request)
        (after,) = [turn for _ in range(20) for turn in engine.step()]
        engine.push(model, "next")
        engine.submit(request)
        (trained,) = [turn for _ in range(20) for turn in engine.step()]
    finally:
        model.load_state_dict(weights)
    assert before == after != trained


def test_a_model_that_the_trainer_left_in_training_mode_is_sampled_without_dropout() -> None:
    tiny("gpt2").train()
    try:
        engine = engine_for("gpt2", 1, SLOTS)
        tiny("gpt2").train()
        (one,) = play(engine, [GenerationRequest(0, (1, 2), -1, SLOTS, 1.0, 3)], Random(0))
    finally:
        tiny("gpt2").eval()
    assert_faithful("gpt2", one)


def test_weights_without_finite_probabilities_stop_the_engine_and_leave_nothing_behind() -> None:
    """Those of one token alone, which no probe of a push meets."""
    engine = engine_for("qwen2", 2, SLOTS)
    config = copy.deepcopy(tiny("qwen2").config)
    config.tie_word_embeddings = False
    broken = type(tiny("qwen2"))(config).eval()
    unseen = next(one for one in range(VOCABULARY) if one not in {at * 7 % VOCABULARY for at in range(24)})
    with torch.no_grad():
        broken.model.embed_tokens.weight[unseen].fill_(math.nan)
    engine.push(broken, "diverged")
    for number in range(3):
        engine.submit(GenerationRequest(number, (1, unseen), -1, SLOTS, 1.0, number))
    with pytest.raises(ModelError, match="no finite probabilities") as caught:
        engine.step()
    assert "checkpoint" in caught.value.hint
    assert engine.unfinished == 0
    engine.push(tiny("qwen2"), "sound")
    (one,) = play(engine, [GenerationRequest(9, (1, 2), -1, SLOTS, 1.0, 3)], Random(0))
    assert_faithful("qwen2", one)


def test_nothing_is_served_before_weights_are_loaded() -> None:
    engine = TorchEngine(rows=1, slots=8)
    assert (engine.version, engine.tokens_sampled, list(engine.step())) == ("", 0, [])
    with pytest.raises(RuntimeError, match="no weights"):
        engine.submit(GenerationRequest(0, (1,), 0, 4, 1.0, 0))


def test_an_engine_without_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 row"):
        TorchEngine(rows=0, slots=8)


@pytest.mark.parametrize("part", ["weight", "bias"])
def test_a_copy_that_computes_something_else_than_the_model_is_found_at_its_push(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, model = TorchEngine(rows=2, slots=SLOTS), tiny("qwen2")
    engine.push(model, "a")
    plain = fused.make_product

    def spoiled(*given: Any, **how: Any) -> LinearMap:
        right = plain(*given, **how)
        there = getattr(right, part)  # some have a bias, some have none
        return dataclasses.replace(right, **{part: (torch.zeros(len(right.weight)) if there is None else there) + 0.05})

    monkeypatch.setattr(fused, "make_product", spoiled)
    with pytest.raises(ModelError, match="differs from the model"):
        engine.push(model, "b")
    assert engine.version == "a"


def test_a_push_leaves_a_live_model_training() -> None:
    model = tiny("qwen2")
    live = type(model)(model.config).train()
    TorchEngine(rows=2, slots=SLOTS).push(live, "a")
    assert live.training

"""Packed or padded, in tiles or whole, beside an adapter or not: the log-probabilities are the sampler's."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import torch
from learning_builders import VOCABULARY, varied
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from appliance.inference.adapters import adapter_parameters
from appliance.inference.engine import GenerationRequest
from appliance.inference.torch.engine import TorchEngine
from appliance.learning import packing, scoring
from appliance.learning.batches import Sample, collate
from appliance.learning.errors import LearningError
from appliance.learning.packing import enable_packing, hidden_states, token_batches
from appliance.learning.scoring import Scorer, score
from appliance.learning.trained_weights import add_adapter

STOP = 5
SHAPE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
}


def sampled(model: Any, temperature: float, count: int = 9) -> list[Sample]:
    """Conversations that the engine sampled with tool turns in them, of lengths that differ, as they are trained on."""
    engine, rng = TorchEngine(4, 48), Random(3)
    engine.push(model, "w")
    parts: dict[int, list[tuple[tuple[int, ...], tuple[float, ...] | None]]] = {}
    for number in range(count):
        prompt = tuple(rng.randrange(6, VOCABULARY) for _ in range(rng.randint(2, 9)))
        engine.submit(GenerationRequest(number, prompt, STOP, rng.randint(20, 48), temperature, seed=number))
        parts[number] = [(prompt, None)]
    while engine.unfinished:
        for turn in engine.step():
            own = parts[turn.request]
            own.append((turn.ids, turn.logprobs))
            forced = tuple(rng.randrange(6, VOCABULARY) for _ in range(rng.randint(1, 4)))
            if turn.ended == "stop" and len(own) < 5 and sum(len(ids) for ids, _ in own) < 14:
                engine.resume(turn.request, forced)
                own.append((forced, None))
            else:
                engine.finish(turn.request)
    return [
        Sample(
            rollout=str(number),
            ids=tuple(token for ids, _ in own for token in ids),
            mask=tuple(logprobs is not None for ids, logprobs in own for _ in ids),
            logprobs=tuple(value for ids, logprobs in own for value in (logprobs or [0.0] * len(ids))),
            advantages=tuple(float(logprobs is not None) for ids, logprobs in own for _ in ids),
        )
        for number, own in parts.items()
    ]


def with_adapter() -> Any:
    """A model whose adapter says something: B of a new one is 0."""
    model = varied()
    add_adapter(model, rank=4, alpha=8.0, seed=1)
    with torch.no_grad():
        for parameter in adapter_parameters(model).values():
            parameter.normal_(std=0.1)
    return model


@pytest.mark.parametrize("temperature", [0.6, 1.0])
@pytest.mark.parametrize("make", [varied, with_adapter])
def test_c8_before_the_first_update_every_trained_token_has_the_ratio_1(make: Any, temperature: float) -> None:
    model = make()
    samples = sampled(model, temperature)
    assert len({len(one.ids) for one in samples}) > 4
    assert any(one.mask != tuple(sorted(one.mask)) for one in samples), "there is no tool turn between sampled ones"
    for scorer in (Scorer(model), Scorer(model, most_logits=0), Scorer(model, packing=True)):
        for passed in (samples, *token_batches(samples, 60)):
            batch = collate(passed)
            found = scorer(batch.ids, batch.mask, temperature)
            mask = batch.mask[:, 1:]
            assert int(mask.sum()) == sum(one.trained_tokens for one in passed)
            ratio = (found.logprobs - batch.logprobs[:, 1:])[mask].exp()
            assert (ratio - 1).abs().max() < 1e-4
            assert not found.logprobs[~mask].any()


def gradients(model: Any, scorer: Any, samples: list[Sample]) -> tuple[Tensor, float, list[Tensor]]:
    batch = collate(samples)
    model.zero_grad()
    found = scorer(batch.ids, batch.mask, 0.7)
    (found.logprobs * torch.linspace(-1, 1, found.logprobs.shape[1])).sum().backward()
    return (
        found.logprobs.detach(),
        float(found.entropy),
        [one.grad for one in model.parameters() if one.grad is not None],
    )


def test_packed_and_in_tiles_the_gradients_are_those_of_the_whole_softmax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "TILE", 64)
    monkeypatch.setattr(scoring, "TOKENS", 5)
    model = varied()
    samples = sampled(model, 1.0)
    logprobs, entropy, plain = gradients(model, lambda *given: score(model, *given), samples)
    plain = [one.clone() for one in plain]
    for scorer in (Scorer(model, most_logits=0), Scorer(model, packing=True)):
        found, mine, grads = gradients(model, scorer, samples)
        torch.testing.assert_close(found, logprobs, atol=2e-5, rtol=1e-5)
        assert mine == pytest.approx(entropy, rel=1e-5)
        torch.testing.assert_close(grads, plain, atol=1e-5, rtol=1e-4)


def test_a_head_with_scale_cap_and_bias_has_the_gradients_of_the_whole_softmax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "TILE", 12)
    torch.manual_seed(2)
    linear = torch.nn.Linear(4, 11)
    head = scoring.LogitHead(linear, scale=0.5, softcap=3.0)
    hidden, weights = torch.randn(6, 4, requires_grad=True), torch.randn(6)
    targets = torch.tensor([0, 10, 3, 5, 5, 1])
    logits = (linear(hidden) * 0.5 / 3.0).tanh() * 3.0 / 0.6
    plain = logits.log_softmax(-1).gather(1, targets[:, None]).squeeze(1)
    tiled, _ = head.logprobs(hidden, targets, 0.6)
    torch.testing.assert_close(tiled, plain)
    wanted = [hidden, *linear.parameters()]
    expected = torch.autograd.grad((plain * weights).sum(), wanted)
    torch.testing.assert_close(torch.autograd.grad((tiled * weights).sum(), wanted), expected, atol=1e-6, rtol=1e-5)


class Largest(TorchDispatchMode):
    """Remembers how many elements the largest tensor had that an operation made."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for one in made if isinstance(made, tuple | list) else [made]:
            if isinstance(one, Tensor):
                self.elements = max(self.elements, one.numel())
        return made


def test_tokens_times_vocabulary_are_never_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "TILE", 4096)
    tokens, vocabulary, width = 300, 5000, 2
    hidden, linear = torch.randn(tokens, width, requires_grad=True), torch.nn.Linear(width, vocabulary, bias=False)
    targets = torch.arange(tokens)
    sizes = []
    for tiles in (True, False):
        with Largest() as seen:
            if tiles:
                scoring.LogitHead(linear).logprobs(hidden, targets, 1.0)[0].sum().backward()
            else:
                linear(hidden).log_softmax(-1).gather(1, targets[:, None]).sum().backward()
        sizes.append(seen.elements)
    assert sizes[0] <= vocabulary * width, "only the gradient of the head itself is as large as the head"
    assert sizes[1] >= tokens * vocabulary


def test_a_pass_holds_the_tokens_that_it_may_and_a_longer_sample_has_its_own() -> None:
    samples = [
        Sample(str(n), (7,) * n, (False,) + (True,) * (n - 1), (0.0,) * n, (1.0,) * n) for n in (9, 3, 30, 4, 5, 8)
    ]
    passes = token_batches(samples, 16)
    assert [[len(one.ids) for one in some] for some in passes] == [[3, 4, 5], [8], [9], [30]]


@pytest.mark.parametrize("window", [None, 6])
def test_samples_that_attend_at_once_as_on_a_gpu_see_what_each_sees_alone(
    window: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(2)
    sliding = {} if window is None else {"sliding_window": window}
    model = MistralForCausalLM(MistralConfig(**SHAPE, **{"sliding_window": None, **sliding})).eval()
    enable_packing(model)
    ids, lengths = torch.randint(VOCABULARY, (37,)), (5, 12, 9, 11)
    found = {}
    for at_once in (False, True):
        monkeypatch.setattr(packing, "_at_once", lambda *_, at_once=at_once: at_once)
        model.zero_grad()
        hidden = hidden_states(model, ids, lengths)
        hidden.square().sum().backward()  # type: ignore[no-untyped-call]
        found[at_once] = [hidden.detach(), *(one.grad.clone() for one in model.parameters() if one.grad is not None)]
    assert len(found[True]) == len(found[False]) > 10
    for one, other in zip(found[True], found[False], strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_attention_to_the_last_tokens_only_is_kept_when_packed() -> None:
    torch.manual_seed(4)
    model = MistralForCausalLM(MistralConfig(**SHAPE, sliding_window=6)).eval()
    ids, mask = torch.randint(0, VOCABULARY, (4, 24)), torch.rand(4, 24) < 0.5
    whole = score(model, ids, mask).logprobs
    assert (Scorer(model, packing=True)(ids, mask).logprobs - whole).abs().max() < 1e-4


@pytest.mark.parametrize("kind", ["biases by distance", "capped scores"])
def test_a_model_that_would_mix_packed_rollouts_is_refused_and_left_as_it_was(kind: str) -> None:
    torch.manual_seed(4)
    model: Any
    if kind == "capped scores":
        model = Gemma2ForCausalLM(Gemma2Config(**SHAPE, attn_logit_softcapping=2.0)).eval()
    else:
        config = BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4, initializer_range=0.3)
        model = BloomForCausalLM(config).eval()
    ids = torch.arange(12)[None] * 3 % VOCABULARY
    before = model(input_ids=ids).logits
    with pytest.raises(LearningError, match="cannot be trained on packed rollouts") as caught:
        Scorer(model, packing=True)
    assert "training.packing" in caught.value.hint
    assert torch.equal(before, model(input_ids=ids).logits)


def test_a_cap_on_the_logits_is_part_of_the_head() -> None:
    torch.manual_seed(4)
    model = Gemma2ForCausalLM(Gemma2Config(**SHAPE, final_logit_softcapping=2.0)).eval()
    ids, mask = torch.randint(0, VOCABULARY, (3, 20)), torch.rand(3, 20) < 0.5
    whole = score(model, ids, mask).logprobs
    assert (Scorer(model, most_logits=0)(ids, mask).logprobs - whole).abs().max() < 1e-4
    model.config.final_logit_softcapping = None
    assert (score(model, ids, mask).logprobs - whole).abs().max() > 1e-3

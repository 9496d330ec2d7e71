"""Verifies that a decoder computes its model.

Invariants: expected values come from the model's own forward pass. A decoder with folded copies is checked by
`probe_copy`, including an effective adapter; one for an unknown architecture by `probe`, which decodes rows token by
token after a prompt, with gaps, waits and other rows.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from appliance.inference.adapters import has_adapter, without_adapter
from appliance.inference.device import Placement, is_gpus
from appliance.inference.engine import ModelError, NoProbabilitiesError
from appliance.inference.torch.blocks import Paging
from appliance.inference.torch.decoder import Decoder
from appliance.inference.torch.slots import SlotCache

PROBE_ERROR = 1e-3
"""Maximum difference of log-probabilities explained by single precision; relative to the lowest one below -1."""
ROUGH_PROBE_ERROR = 0.1
"""Maximum difference explained by half precision: root mean square, relative to the spread of a position's
log-probabilities. Rounding grows with the spread, so the largest difference of a correct copy is unbounded. Correct
copies of 30 trained layers in bfloat16 are off by .03, one that lacks the attention of a layer by .14."""
MOVED = 1e-4
"""Effect of an adapter, measured as in half precision, that a half-precision copy must show; rounding hides its size,
not its presence."""
ROUGHLY_MOVED = 1e-2
"""Effect of an adapter when the model itself is in half precision: less may be rounding."""
ROUNDING = 1e-5
"""Allowed difference in single precision regardless of the adapter's effect; correct copies are off by some millionths.
"""
GOLDEN = (math.sqrt(5) - 1) / 2
"""Share of the vocabulary between two test tokens, which spreads any number of them evenly."""
LEAST_SPREAD = 0.1
"""Minimum spread in nats: less, of a nearly indifferent model, is noise."""


@torch.inference_mode()
def probe_copy(decoder: Decoder, model: Any, tokens: int, *, placement: Placement, version: str) -> None:
    """Checks that a decoder computes the same as its model on some tokens. Raises ModelError, and NoProbabilitiesError
    for non-finite probabilities. `tokens` is a row's maximum."""
    ids = _ids(decoder, tokens, placement)
    expected = _expected(model, ids, version).to(placement.device)
    otherwise, hint = "the engine's copy differs from the model", "report this bug"
    logits, moved = decoder.logits(ids), None
    if has_adapter(model):
        with without_adapter(model):
            moved = expected - _expected(model, ids, version).to(placement.device)
        if placement.dtype is not torch.float32:
            least = MOVED if model.dtype is torch.float32 else ROUGHLY_MOVED
            with decoder.without_adapter():
                lost = torch.equal(decoder.logits(ids), logits)
            if lost and _size(moved) > least * _spread(expected):
                raise ModelError(f"{type(model).__name__}: the engine's copy computes without the adapter", hint=hint)
    _require_near(logits, expected, model, placement, otherwise, hint, moved)


@torch.inference_mode()
def probe(
    decoder: Decoder, model: Any, tokens: int, *, placement: Placement, version: str, paged: bool = False
) -> None:
    """Checks that a decoder's batched decoding equals the model's plain forward pass. Raises as `probe_copy`, and
    ModelError for a model that treats longer conversations differently. `paged` also tests blocks and chunks."""
    name = type(model).__name__
    _require_even(model.config, name, tokens)
    ids = _ids(decoder, tokens, placement)
    length = ids.shape[1]
    paging = Paging(block=2, window=6, chunk=2) if paged else None
    cache = SlotCache(rows=2, tokens=tokens, spare=tokens, paging=paging, device=placement.device)
    try:
        expected = _expected(model, ids, version).to(placement.device)
        first = decoder.prefill(ids[:, :3], torch.tensor([3, 2]))
        for row, n in enumerate((3, 2)):
            read = first.one(row, n)
            cache.seat(row, read.keys, read.values)
        found, wanted = [*first.logits], [expected[0, 2], expected[1, 1]]
        if paged and length > 4:
            reading = cache.read(1)
            logits = decoder.extend(ids[1, 2:4], reading)
            reading.close()
            found.append(logits[0])
            wanted.append(expected[1, 3])
        for step in range(2 * length):
            if step == 2 and not paged:  # the longest possible wait puts slots farthest apart
                cache.head = max(cache.head, cache.capacity - 2)
            held = cache.positions.clone()
            going = torch.tensor([bool(held[row] < length) and (step + row) % 3 > 0 for row in range(2)])
            cache.begin()
            logits = decoder.advance(ids[torch.arange(2), held.clamp(max=length - 1)], cache)
            cache.commit(going)
            for row in going.nonzero().flatten().tolist():
                found.append(logits[row])
                wanted.append(expected[row, held[row]])
    except (ValueError, TypeError, AttributeError, RuntimeError, IndexError, KeyError, NotImplementedError) as error:
        if is_gpus(error):
            raise
        raise ModelError(f"{name} cannot be decoded here: {error}", hint=_hint(paged)) from error
    otherwise = "it decodes differently in a batch"
    _require_near(torch.stack(found), torch.stack(wanted), model, placement, otherwise, _hint(paged))


def _require_even(config: Any, name: str, tokens: int) -> None:
    """Raises ModelError for a model whose attention changes at a length below `tokens`."""
    windows = [getattr(config, one, None) for one in ("sliding_window", "keep_window_size")]
    window = min((one for one in windows if one), default=tokens)
    if window < tokens and getattr(config, "use_sliding_window", True):
        raise ModelError(
            f"{name} attends to only {window} tokens, but a conversation may have {tokens}",
            hint=f"set the budget of a conversation to at most {window} tokens",
        )
    rotary = getattr(config, "rope_parameters", None) or {}
    most = rotary.get("original_max_position_embeddings", tokens)
    if rotary.get("rope_type") == "longrope" and most < tokens:
        raise ModelError(
            f"{name} changes its positions beyond {most} tokens, but a conversation may have {tokens}",
            hint=f"set the budget of a conversation to at most {most} tokens",
        )


def _ids(decoder: Decoder, tokens: int, placement: Placement) -> Tensor:
    """Returns the test tokens of two rows `[2, 12]`, or shorter if needed. The tokens differ, since attention between
    equal ones is invisible, and come from the whole vocabulary but its first, often the end of a text: a model that
    hardly ever read it in front computes it with large numbers, whose rounding is three times that of others."""
    length = min(12, tokens)
    step = max(1, round(decoder.vocabulary * GOLDEN))
    while math.gcd(step, decoder.vocabulary) > 1:
        step += 1
    return torch.arange(1, 2 * length + 1, device=placement.device).view(2, length) * step % decoder.vocabulary


def _expected(model: Any, ids: Tensor, version: str) -> Tensor:
    """Returns log-probabilities of the model's own forward pass, without dropout, `[2, S, V]`."""
    training = model.training
    try:
        logits = model.eval()(input_ids=ids.to(model.device), use_cache=False).logits
    finally:
        model.train(training)
    found: Tensor = logits.float().log_softmax(-1)
    if not found.isfinite().all():
        raise NoProbabilitiesError(
            f"the weights {version} give no finite probabilities",
            hint="training diverged or the file is damaged: return to an earlier checkpoint",
        )
    return found


def _require_near(
    logits: Tensor,
    expected: Tensor,
    model: Any,
    placement: Placement,
    otherwise: str,
    hint: str,
    moved: Tensor | None = None,
) -> None:
    """Raises ModelError unless the decoder's logits match the expected log-probabilities, both `[..., V]`. `moved` is
    the adapter's effect: in single precision a copy may be off by at most half of it."""
    difference = logits.float().log_softmax(-1) - expected
    if model.dtype is torch.float32 and placement.dtype is torch.float32:
        off, most, unit = _largest(difference, expected), PROBE_ERROR, ""
        if moved is not None:
            most = min(most, max(ROUNDING, _largest(moved, expected) / 2))
    else:
        off, most, unit = _size(difference) / _spread(expected), ROUGH_PROBE_ERROR, " of their spread"
    if not off <= most:
        name = type(model).__name__
        raise ModelError(f"{name}: {otherwise}: log-probabilities are off by {off:.2g}{unit}", hint=hint)


def _largest(difference: Tensor, expected: Tensor) -> float:
    return float(difference.abs().max() / expected.abs().max().clamp(min=1))


def _spread(expected: Tensor) -> float:
    return max(LEAST_SPREAD, _size(expected - expected.mean(-1, keepdim=True)))


def _size(values: Tensor) -> float:
    return float(values.square().mean().sqrt())


def _hint(paged: bool) -> str:
    plain = "use a model of plain attention layers, such as Qwen2, Llama, Mistral or GPT-NeoX"
    return f"{plain}, or a budget of at most 1024 tokens for a conversation" if paged else plain

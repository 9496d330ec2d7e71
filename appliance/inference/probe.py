"""Proves that a decoder computes what the model computes that it was made of.

What always holds: the figures to be met come from the model's own forward pass, and the decoder comes to them by the
way on which rows are decoded: a prompt that is read, then token by token, with gaps, waits and company.
"""

from __future__ import annotations

from typing import Any

import torch

from appliance.inference.blocks import Paging
from appliance.inference.decoder import Decoder
from appliance.inference.device import Placement
from appliance.inference.engine import ModelError, NoProbabilitiesError
from appliance.inference.slots import SlotCache

PROBE_ERROR = 1e-3
"""Largest difference of log-probabilities that rounding explains in single precision."""
ROUGH_PROBE_ERROR = 0.25
"""The same in half precision."""


@torch.inference_mode()
def probe(
    decoder: Decoder, model: Any, tokens: int, *, placement: Placement, version: str, paged: bool = False
) -> None:
    """Checks that rows decode as in a plain forward pass. Raises ModelError, and NoProbabilitiesError for weights that
    give no finite ones.

    `tokens`: the most that a row will hold; a window of attention shorter than that is refused. `paged`: also with
    tokens in blocks, and read in chunks.
    """
    name = type(model).__name__
    window = getattr(model.config, "sliding_window", None)
    if window and window < tokens and getattr(model.config, "use_sliding_window", True):
        raise ModelError(
            f"{name} looks back {window} tokens only, and a conversation may have {tokens}",
            hint=f"set the budget of a conversation to at most {window} tokens",
        )
    length = min(12, tokens)
    ids = torch.arange(2 * length, device=placement.device).view(2, length) * 7 % decoder.vocabulary
    paging = Paging(block=2, window=6, chunk=2) if paged else None
    cache = SlotCache(rows=2, tokens=length, spare=3, paging=paging, device=placement.device)
    training = model.training
    try:
        logits = model.eval()(input_ids=ids.to(model.device), use_cache=False).logits
        expected = logits.float().log_softmax(-1).to(placement.device)
        if not expected.isfinite().all():
            raise NoProbabilitiesError(
                f"the weights {version} give no finite probabilities",
                hint="training has diverged or the file is damaged: go back to an earlier checkpoint",
            )
        first = decoder.prefill(ids[:, :3], torch.tensor([3, 2]))
        for row, n in enumerate((3, 2)):
            read = first.one(row, n)
            cache.seat(row, read.keys, read.values)
        worst = float((first.logits.log_softmax(-1) - expected[[0, 1], [2, 1]]).abs().max())
        if paged and length > 4:
            reading = cache.read(1)
            logits = decoder.extend(ids[1, 2:4], reading)
            reading.close()
            worst = max(worst, float((logits[0].log_softmax(-1) - expected[1, 3]).abs().max()))
        for step in range(2 * length):
            held = cache.positions.clone()
            going = torch.tensor([bool(held[row] < length) and (step + row) % 3 > 0 for row in range(2)])
            cache.begin()
            logits = decoder.advance(ids[torch.arange(2), held.clamp(max=length - 1)], cache)
            cache.commit(going)
            for row in going.nonzero().flatten().tolist():
                difference = logits[row].log_softmax(-1) - expected[row, held[row]]
                worst = max(worst, float(difference.abs().max()))
    except (ValueError, TypeError, AttributeError, RuntimeError, IndexError, KeyError, NotImplementedError) as error:
        raise ModelError(f"{name} cannot be decoded here: {error}", hint=_hint(paged)) from error
    finally:
        model.train(training)
    exact = model.dtype is torch.float32 and placement.dtype is torch.float32
    if not worst <= (PROBE_ERROR if exact else ROUGH_PROBE_ERROR):
        raise ModelError(
            f"{name} decodes differently in a batch: log-probabilities are off by {worst:.2g}", hint=_hint(paged)
        )


def _hint(paged: bool) -> str:
    plain = "use a model of plain attention layers, such as Qwen2, Llama, Mistral or GPT-NeoX"
    return f"{plain}, or a budget of at most 1024 tokens for a conversation" if paged else plain

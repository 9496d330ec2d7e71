"""Packs samples into one row without attention between them.

Invariants: tokens keep the positions of their own sample, and attention is computed per sample, so there is no
row-by-row mask to get wrong. A model whose attention cannot be split (recurrent state, sinks, distance biases) is
detected by a test on loading and refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from appliance.learning.errors import LearningError

ATTENTION = "assay_packed"
"""Name of our attention in transformers."""
PROBE_ERROR = 1e-4
"""Maximum relative difference of hidden states explained by rounding."""
WASTE = 2.0
"""Maximum padded tokens, as a multiple of real ones, up to which a GPU computes all samples together."""
UNPACKED = "set training.packing to false to pad rollouts instead"


class Tokens(Protocol):
    @property
    def ids(self) -> Sequence[int]: ...


T = TypeVar("T", bound=Tokens)


def token_batches(chosen: Sequence[T], most: int) -> list[list[T]]:
    """Splits samples into forward passes of at most `most` tokens, by length; a longer sample gets its own pass."""
    passes: list[list[T]] = []
    room = 0
    for one in sorted(chosen, key=lambda one: len(one.ids)):
        if not passes or len(one.ids) > room:
            passes.append([])
            room = most
        passes[-1].append(one)
        room -= len(one.ids)
    return passes


def enable_packing(model: Any) -> None:
    """Installs and tests the attention for packed rows in a transformers model, so that several samples share a row.
    Raises LearningError, with the model unchanged, if samples mix."""
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION, _attention)
    before = model.config._attn_implementation
    training = model.training
    vocabulary = model.get_input_embeddings().weight.shape[0]
    first, second = (torch.arange(length) * step % vocabulary for length, step in ((5, 7), (9, 11)))
    first, second = (ids.to(next(model.parameters()).device) for ids in (first, second))
    model.eval()
    try:
        with torch.no_grad():
            alone = [
                model.base_model(input_ids=ids[None], use_cache=False).last_hidden_state[0] for ids in (first, second)
            ]
            model.config._attn_implementation = ATTENTION
            together = hidden_states(model, torch.cat([first, second]), [5, 9])
        expected = torch.cat(alone).float()
        worst = float((together.float() - expected).abs().max() / expected.abs().max())
        rough = next(model.parameters()).dtype is not torch.float32
        fault = "" if worst <= (0.05 if rough else PROBE_ERROR) else f"its hidden states differ by {worst:.2g}"
    except (AttributeError, TypeError, ValueError, RuntimeError) as error:
        fault = f"{type(error).__name__}: {error}"
    finally:
        model.train(training)
    if fault:
        model.config._attn_implementation = before
        raise LearningError(f"{type(model).__name__} cannot be trained on packed rollouts: {fault}", hint=UNPACKED)


def hidden_states(model: Any, ids: Tensor, lengths: Sequence[int]) -> Tensor:
    """Returns the model's last hidden states [S, H] for consecutive samples of these `lengths`, packed in `ids` [S]."""
    positions = torch.cat([torch.arange(length) for length in lengths]).to(ids.device)
    out = model.base_model(
        input_ids=ids[None], position_ids=positions[None], use_cache=False, sample_lengths=tuple(lengths)
    )
    hidden: Tensor = out.last_hidden_state[0]
    return hidden


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    sample_lengths: Sequence[int] | None = None,
    sliding_window: int | None = None,
    **settings: Any,
) -> tuple[Tensor, None]:
    """Computes attention as transformers does with torch; with `sample_lengths`, separately for each sample packed in
    the row."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    unknown = sorted(name for name in ("softcap", "s_aux", "position_bias") if settings.get(name) is not None)
    if unknown:
        raise ValueError(f"attention with {', '.join(unknown)} is not supported")
    if sample_lengths is None:
        if attention_mask is None and sliding_window is not None and sliding_window < query.shape[2]:
            attention_mask = _window(query, query.shape[2], sliding_window)
        made: tuple[Tensor, None] = sdpa_attention_forward(module, query, key, value, attention_mask, **settings)
        return made
    if _at_once(query, sample_lengths):
        return _padded_attention(module, query, key, value, sample_lengths, sliding_window, settings), None
    parts, start = [], 0
    for length in sample_lengths:
        own = slice(start, start + length)
        narrow = sliding_window is not None and sliding_window < length
        mask = _window(query, length, sliding_window) if narrow and sliding_window is not None else None
        part, _ = sdpa_attention_forward(module, query[:, :, own], key[:, :, own], value[:, :, own], mask, **settings)
        parts.append(part)
        start += length
    return torch.cat(parts, dim=1), None


def _at_once(query: Tensor, lengths: Sequence[int]) -> bool:
    return query.is_cuda and len(lengths) * max(lengths) <= WASTE * sum(lengths)


def _padded_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    lengths: Sequence[int],
    sliding_window: int | None,
    settings: dict[str, Any],
) -> Tensor:
    """Computes attention of all samples packed in a row together, right-padded to the longest: many small calls keep a
    GPU waiting longer than the padding. No real token sees padding."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    longest = max(lengths)
    places = torch.arange(longest, device=query.device)
    sizes = torch.tensor(lengths, device=query.device)[:, None]
    real = places < sizes
    index = ((sizes.cumsum(0) - sizes) + places).clamp(max=query.shape[2] - 1)
    padded = [part[0, :, index].transpose(0, 1) for part in (query, key, value)]  # [samples, heads, longest, size]
    narrow = sliding_window is not None and sliding_window < longest
    mask = _window(query, longest, sliding_window) if narrow and sliding_window is not None else None
    made, _ = sdpa_attention_forward(module, *padded, mask, **settings)
    found: Tensor = made[real][None]
    return found


def _window(like: Tensor, length: int, window: int) -> Tensor:
    """Returns the mask [1, 1, length, length] of causal attention to the last `window` tokens; true: visible."""
    distance = torch.arange(length, device=like.device)
    distance = distance[:, None] - distance[None, :]
    return ((distance >= 0) & (distance < window))[None, None]

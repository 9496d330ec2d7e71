"""Log-probabilities of given tokens from hidden states, without a tokens-by-vocabulary matrix.

Invariants: logits exist for one tile at a time, at most `TILE` of them in forward and backward pass, for any batch and
vocabulary; logits and softmax are float32. The sum of exponentials is carried between tiles with its maximum (online
softmax, Milakov and Gimelshein, 1805.02867), and the backward pass recomputes each tile from the hidden states, as
2411.09009 (cut cross-entropy) does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

TILE = 1 << 23
"""Maximum logits in memory: 32 MiB."""
TOKENS = 1024
"""Maximum tokens per tile; the rest of a tile is vocabulary."""
PROBE_ERROR = 1e-4
"""Maximum difference of log-probabilities explained by rounding."""


@dataclass(frozen=True)
class LogitHead:
    """Output layer of a model: a matrix, and the scaling that a model family applies to its product."""

    linear: nn.Module
    scale: float = 1.0
    """Factor on the product (Cohere, Granite)."""
    softcap: float = 0.0
    """Logits are softcap * tanh(logits / softcap) (Gemma 2); 0: unchanged."""

    def logprobs(self, hidden: Tensor, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        """Scores the tokens `targets` [N] after hidden states [N, H]: log-probabilities [N] with gradient, and the
        summed entropy in nats without."""
        weight, bias = self.linear.weight, getattr(self.linear, "bias", None)
        found: tuple[Tensor, Tensor] = _LogProbs.apply(  # type: ignore[no-untyped-call]
            hidden.float(), weight, bias, targets, (self.scale, self.softcap, temperature)
        )
        return found


def head_of(model: Any) -> LogitHead | None:
    """Returns the output layer of a transformers model, tested against the model's own logits; None for an unsupported
    one."""
    config, linear = model.config, model.get_output_embeddings()
    if linear is None or model.base_model is model:
        return None
    scaling = getattr(config, "logits_scaling", None)
    scale = 1.0 / float(scaling) if scaling else float(getattr(config, "logit_scale", None) or 1.0)
    head = LogitHead(linear, scale, float(getattr(config, "final_logit_softcapping", None) or 0.0))
    device, dtype = linear.weight.device, linear.weight.dtype
    ids = torch.arange(6, device=device)[None] * 7 % linear.weight.shape[0]
    training = model.training
    try:
        with torch.no_grad():
            model.eval()
            expected = model(input_ids=ids, use_cache=False).logits[0].float().log_softmax(-1)
            hidden = model.base_model(input_ids=ids, use_cache=False).last_hidden_state[0]
            found, _ = head.logprobs(hidden, ids[0], 1.0)
    except (AttributeError, TypeError, ValueError, RuntimeError):
        return None
    finally:
        model.train(training)
    worst = float((found - expected.gather(1, ids[0][:, None]).squeeze(1)).abs().max())
    return head if worst <= (PROBE_ERROR if dtype is torch.float32 else 0.1) else None


class _LogProbs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, how: tuple[float, float, float]
    ) -> tuple[Tensor, Tensor]:
        n, vocabulary = hidden.shape[0], weight.shape[0]
        chosen, lse, mean = (hidden.new_zeros(n) for _ in range(3))
        for rows, columns in _tiles(n, vocabulary):
            if columns.start == 0:
                top = hidden.new_full((rows.stop - rows.start,), -torch.inf)
                total, weighted = torch.zeros_like(top), torch.zeros_like(top)
            logits, _ = _logits(hidden[rows], weight, bias, columns, how)
            inside, at = _inside(targets[rows], columns)
            chosen[rows] += logits.gather(1, at[:, None]).squeeze(1) * inside
            higher = torch.maximum(top, logits.amax(1))
            shrink = (top - higher).exp()
            part = (logits - higher[:, None]).exp_()
            total = total * shrink + part.sum(1)
            weighted = weighted * shrink + logits.mul_(part).sum(1)
            top = higher
            if columns.stop == vocabulary:
                lse[rows] = top + total.log()
                mean[rows] = weighted / total
        ctx.save_for_backward(hidden, weight, bias, targets, lse)
        ctx.how = how
        entropy = (lse - mean).sum()
        ctx.mark_non_differentiable(entropy)
        return chosen - lse, entropy

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, targets, lse = ctx.saved_tensors
        scale, _, temperature = ctx.how
        (above, *_) = gradients
        to_hidden, to_weight, to_bias, *_ = ctx.needs_input_grad
        d_hidden = torch.zeros_like(hidden) if to_hidden else None
        d_weight = torch.zeros_like(weight, dtype=torch.float32) if to_weight else None
        d_bias = torch.zeros_like(bias, dtype=torch.float32) if to_bias else None
        for rows, columns in _tiles(hidden.shape[0], weight.shape[0]):
            logits, slope = _logits(hidden[rows], weight, bias, columns, ctx.how)
            inside, at = _inside(targets[rows], columns)
            grad = logits.sub_(lse[rows][:, None]).exp_().neg_()
            grad.scatter_add_(1, at[:, None], inside[:, None].to(grad.dtype))
            grad *= (above[rows] * (scale / temperature))[:, None]
            if slope is not None:
                grad *= slope
            if d_hidden is not None:
                d_hidden[rows].addmm_(grad, weight[columns].float())
            if d_weight is not None:
                d_weight[columns].addmm_(grad.t(), hidden[rows])
            if d_bias is not None:
                d_bias[columns] += grad.sum(0)
        return (
            d_hidden,
            None if d_weight is None else d_weight.to(weight.dtype),
            None if d_bias is None else d_bias.to(bias.dtype),
            None,
            None,
        )


def _tiles(tokens: int, vocabulary: int) -> Iterator[tuple[slice, slice]]:
    """Yields the slices that divide a [tokens, vocabulary] matrix into tiles of limited size, row by row."""
    height = max(1, min(tokens, TOKENS))
    width = max(1, min(vocabulary, TILE // height))
    for row in range(0, tokens, height):
        for column in range(0, vocabulary, width):
            yield slice(row, min(row + height, tokens)), slice(column, min(column + width, vocabulary))


def _logits(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, columns: slice, how: tuple[float, float, float]
) -> tuple[Tensor, Tensor | None]:
    """Computes a tile of tempered logits [rows, columns] from hidden states and output weights, and the softcap's slope
    if any."""
    scale, softcap, temperature = how
    with torch.autocast(hidden.device.type, enabled=False):
        logits = nn.functional.linear(hidden, weight[columns].float(), None if bias is None else bias[columns].float())
    logits *= scale
    slope = None
    if softcap:
        squashed = (logits / softcap).tanh_()
        slope = 1.0 - squashed.square()
        logits = squashed * softcap
    return logits.div_(temperature), slope


def _inside(targets: Tensor, columns: slice) -> tuple[Tensor, Tensor]:
    """Returns the mask of the target tokens within a slice of the vocabulary, and their offsets in it (0 outside)."""
    inside = (targets >= columns.start) & (targets < columns.stop)
    return inside, (targets - columns.start).masked_fill(~inside, 0)

"""Scores given tokens under a causal language model: the model's only forward pass in training.

Sequences are padded on the right and attention is causal, so no real token sees padding and no attention mask is
needed; or they are packed (`packing`). Logits and softmax are float32, to limit the mismatch with the sampler. Large
logits are never materialised at full size (`log_prob_head`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from appliance.learning.errors import LearningError
from appliance.learning.packing import enable_packing, hidden_states

MOST_LOGITS = 1 << 26
"""Maximum logits computed at full size per pass: 256 MiB. Beyond, tiles are used."""


@dataclass(frozen=True)
class Scores:
    logprobs: Tensor
    """[B, T-1]: log-probability of token t + 1 at position t; exactly 0, without gradient, where the mask is off."""
    entropy: Tensor
    """Scalar: summed entropy of the masked tokens' distributions, in nats."""


def score(model: nn.Module, ids: Tensor, mask: Tensor, temperature: float = 1.0) -> Scores:
    """Computes log-probability and entropy of the masked tokens of `ids` [B, T] (integers) under `mask` [B, T] (bool)
    at `temperature`. The first token of a sequence is never scored. Only masked tokens go through the softmax: two
    thirds of a conversation are prompt, results and padding."""
    wanted = mask[:, 1:]
    logits = model(input_ids=ids[:, :-1], use_cache=False).logits[wanted].float() / temperature
    all_logprobs = torch.log_softmax(logits, dim=-1)
    del logits  # the largest tensor of a small model's pass
    chosen = all_logprobs.gather(1, ids[:, 1:][wanted][:, None]).squeeze(1)
    with torch.no_grad():
        entropy = -all_logprobs.exp().mul_(all_logprobs).sum()
    return _scattered(chosen, entropy, wanted)


class Scorer:
    """Scores a model's tokens as `score`, with bounded memory: `packing` removes padding, `precision` is the layers'
    type, and `most_logits` limits the logits in memory."""

    def __init__(
        self, model: Any, *, packing: bool = False, precision: str = "float32", most_logits: int = MOST_LOGITS
    ) -> None:
        """Creates a scorer of the model's tokens; with `packing`, installs the packed attention in the model. Raises
        LearningError for a model that does not support these options."""
        self._model = model
        self._packing = packing
        self._most_logits = most_logits
        self._half = precision == "bfloat16"
        self._head: LogitHead | None = None
        self._looked = False
        if packing:
            enable_packing(model)
        if packing or self._half:
            self._required()

    def __call__(self, ids: Tensor, mask: Tensor, temperature: float = 1.0) -> Scores:
        """Computes log-probability and entropy of the masked tokens, as `score` does."""
        vocabulary = int(self._model.get_input_embeddings().weight.shape[0])
        if not (self._packing or self._half or ids.numel() * vocabulary > self._most_logits):
            return score(self._model, ids, mask, temperature)
        if (head := self._found()) is None:
            return score(self._model, ids, mask, temperature)
        wanted = mask[:, 1:]
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=self._half):
            hidden = self._packed(ids, wanted) if self._packing else self._padded(ids, wanted)
        chosen, entropy = head.logprobs(hidden, ids[:, 1:][wanted], temperature)
        return _scattered(chosen, entropy, wanted)

    def _padded(self, ids: Tensor, wanted: Tensor) -> Tensor:
        hidden: Tensor = self._model.base_model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
        return hidden[wanted]

    def _packed(self, ids: Tensor, wanted: Tensor) -> Tensor:
        """Returns the hidden states before all wanted tokens, from rows packed without padding. Leaves out the tokens
        after each row's last wanted one, which affect nothing."""
        real = read_tokens(wanted)
        hidden = hidden_states(self._model, ids[:, :-1][real], [length for length in real.sum(1).tolist() if length])
        return hidden[wanted[real]]

    def look(self) -> None:
        """Locates the model's output layer now instead of at the first scoring."""
        self._found()

    def _found(self) -> LogitHead | None:
        if not self._looked:
            self._head, self._looked = head_of(self._model), True
        return self._head

    def _required(self) -> None:
        if self._found() is None:
            raise LearningError(
                f"{type(self._model).__name__} has an unsupported output layer",
                hint="set training.packing to false and training.precision to float32",
            )


def read_tokens(wanted: Tensor) -> Tensor:
    """Returns the mask [B, T-1] of the tokens that packed rows read: those up to each row's last wanted one."""
    places = torch.arange(1, wanted.shape[1] + 1, device=wanted.device)
    return places <= (wanted * places).amax(1, keepdim=True)


def _scattered(chosen: Tensor, entropy: Tensor, wanted: Tensor) -> Scores:
    scattered = torch.zeros(wanted.shape, dtype=chosen.dtype, device=chosen.device)
    return Scores(scattered.masked_scatter(wanted, chosen), entropy)


TILE = 1 << 23
"""Maximum logits in memory: 32 MiB."""
TOKENS = 1024
"""Maximum tokens per tile; the rest of a tile is vocabulary."""
PROBE_ERROR = 1e-4
"""Maximum difference of log-probabilities explained by rounding."""
ROUGH_PROBE_ERROR = 0.1
"""The same in half precision, whose rounding grows with the spread of a position's log-probabilities above 1."""


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
    most = PROBE_ERROR if dtype is torch.float32 else ROUGH_PROBE_ERROR * max(1.0, float(expected.std(-1).mean()))
    return head if worst <= most else None


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

"""Scores given tokens under a causal language model: the model's only forward pass in training.

Sequences are padded on the right and attention is causal, so no real token sees padding and no attention mask is
needed; or they are packed (`packing`). Logits and softmax are float32, to limit the mismatch with the sampler. Large
logits are never materialised at full size (`log_prob_head`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from appliance.learning.errors import LearningError
from appliance.learning.log_prob_head import LogitHead, head_of
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
    chosen = all_logprobs.gather(1, ids[:, 1:][wanted][:, None]).squeeze(1)
    with torch.no_grad():
        entropy = -(all_logprobs.exp() * all_logprobs).sum()
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
        places = torch.arange(1, wanted.shape[1] + 1, device=wanted.device)
        lengths = (wanted * places).amax(1)
        real = places <= lengths[:, None]
        hidden = hidden_states(self._model, ids[:, :-1][real], [length for length in lengths.tolist() if length])
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


def _scattered(chosen: Tensor, entropy: Tensor, wanted: Tensor) -> Scores:
    scattered = torch.zeros(wanted.shape, dtype=chosen.dtype, device=chosen.device)
    return Scores(scattered.masked_scatter(wanted, chosen), entropy)

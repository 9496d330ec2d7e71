"""Splits a model over ranks, and scores with what is left here: PyTorch's `fully_shard` (FSDP2; the idea is ZeRO's,
1910.02054).

What always holds: a block's weights are whole only while the block is computed; gradients are summed over the ranks,
never averaged, because each loss is divided by what all of them have together.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from appliance.learning.scoring import Scorer, Scores


class SharedScorer(nn.Module):
    """Is a model with its scorer as one module, so that the parts of its weights are gathered before it is scored."""

    def __init__(self, model: nn.Module, scorer: Scorer) -> None:
        super().__init__()
        self.model = model
        self._scorer = scorer

    def forward(self, ids: Tensor, mask: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        found = self._scorer(ids, mask, temperature)
        return found.logprobs, found.entropy


def split(model: Any, scorer: Scorer) -> SharedScorer:
    """Leaves each rank its part of the weights, in place: a block at a time, and what lies around the blocks.

    torch's process group has to be there. The scorer looks at its model's head first, while that is whole.
    """
    from torch.distributed.fsdp import FSDPModule, fully_shard

    scorer.look()
    whole_model = SharedScorer(model, scorer)
    for block in _blocks(model):
        fully_shard(block)
    fully_shard(whole_model)
    for module in whole_model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)  # a loss is divided by what all ranks have together
            module.set_force_sum_reduction_for_comms(True)
    return whole_model


def scored(shared: SharedScorer, ids: Tensor, mask: Tensor, temperature: float) -> Scores:
    """Scores as `Scorer` does."""
    return Scores(*shared(ids, mask, temperature))


def _blocks(model: nn.Module) -> list[nn.Module]:
    """Finds the layers of the longest list of modules: of every causal language model those are its blocks."""
    lists = [one for one in model.modules() if isinstance(one, nn.ModuleList) and len(one)]
    longest = max(lists, key=len, default=None)
    return list(longest) if longest is not None else []

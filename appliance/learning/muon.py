"""Optimizer that orthogonalises the updates of hidden matrices: Muon (2502.16982).

Matrices of one shape are orthogonalised together in float32. A matrix that is sharded over ranks is gathered for it, so
several learners take the same step as one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from appliance.inference.adapters import like, whole

MOMENTUM = 0.95
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Newton-Schulz polynomial a X + b X^3 + c X^5, which raises small singular values fastest (2502.16982)."""
ITERATIONS = 5
UPDATE_SIZE = 0.2
"""Root mean square of a matrix's update per learning rate, as AdamW's, so both share one rate (2502.16982)."""
MOMENT = "momentum"
"""Name of the moment that Muon alone keeps."""


class Muon(torch.optim.AdamW):
    """Muon (2502.16982): hidden matrices move by their orthogonalised momentum, all other weights as in AdamW."""

    def __init__(self, matrices: Sequence[nn.Parameter], others: Sequence[nn.Parameter], **settings: Any) -> None:
        """Creates the optimizer; `settings` are AdamW's, and learning rate and weight decay apply to both."""
        super().__init__([{"params": list(matrices)}, {"params": list(others)}], **settings)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes one optimizer step and drops the gradients of the hidden matrices."""
        with torch.no_grad():
            self._move_matrices(self.param_groups[0])
        return super().step(closure)

    def _move_matrices(self, group: dict[str, Any]) -> None:
        directions: dict[tuple[int, int], list[tuple[nn.Parameter, Tensor]]] = defaultdict(list)
        for parameter in group["params"]:
            gradient, parameter.grad = parameter.grad, None
            if gradient is not None:
                if MOMENT not in self.state[parameter]:
                    self.state[parameter][MOMENT] = torch.zeros_like(gradient)
                momentum = self.state[parameter][MOMENT].lerp_(gradient, 1 - MOMENTUM)
                direction = whole(gradient.lerp(momentum, MOMENTUM)).float()
                wide = direction if direction.shape[0] <= direction.shape[1] else direction.T
                directions[wide.shape[0], wide.shape[1]].append((parameter, wide))
        for (_, longer), moved in directions.items():
            turned = orthogonalised(torch.stack([wide for _, wide in moved]))
            for (parameter, _), update in zip(moved, turned, strict=True):
                own = update if parameter.shape[0] <= parameter.shape[1] else update.T
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.sub_(like(parameter, own.contiguous()), alpha=group["lr"] * UPDATE_SIZE * longer**0.5)


def orthogonalised(matrices: Tensor) -> Tensor:
    """Returns matrices [N, rows, columns >= rows] with the same singular vectors and singular values near 1."""
    a, b, c = COEFFICIENTS
    turned: Tensor = matrices / matrices.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram = turned @ turned.mT
        turned = torch.baddbmm(turned, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), turned, beta=a)
    return turned

"""Computes linear layers with an adapter of peft beside their weights, as each type needs it.

In float32 the adapter is added to the copy. In half precision it would be lost there: an update is smaller than the
grid of the weights. So its two factors stay factors. The first gives a few more numbers beside a layer's input, the
second is more columns of the weight, and both parts are summed in one product, which rounds once. The factors
are rounded to half precision by themselves, as the trainer's autocast does: that changes an update by some
thousandths of itself, whatever its size.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from appliance.inference.device import Placement

ALIGNED = 8
"""Tensor cores want the length of a product to be a multiple of this."""


@dataclass(frozen=True)
class LinearMap:
    weight: Tensor
    """`[out, in]`, with an adapter beside it `[out, in + rank]`."""
    bias: Tensor | None
    low: Tensor | None = None
    """Of an adapter that lies beside: `[rank, in]`."""

    def __call__(self, x: Tensor) -> Tensor:
        if self.low is not None:
            x = torch.cat([x, F.linear(x, self.low)], -1)
        return F.linear(x, self.weight, self.bias)

    def without_adapter(self) -> LinearMap:
        """Is the same product, of the same shape, to which the adapter adds zeros."""
        return self if self.low is None else replace(self, low=torch.zeros_like(self.low))


def make_product(
    linears: Sequence[Any],
    placement: Placement,
    *,
    before: Tensor | None = None,
    orders: Sequence[Callable[[Tensor], Tensor]] = (),
) -> LinearMap:
    """Makes one product of layers that share their input. `before` is what the input is multiplied by first; `orders`
    says for each layer in which order its outputs are wanted."""
    orders = orders or [_as_it_is] * len(linears)
    ordered = list(zip(linears, orders, strict=True))
    merged = placement.dtype is torch.float32
    weight = torch.cat([order(_merged(one) if merged else _base(one)) for one, order in ordered])
    weight = weight if before is None else weight * before
    low = None
    if not merged and any(_active(one) for one in linears):
        factors = [(order, *_factors(one)) for one, order in ordered]
        low = torch.cat([first for _, first, _ in factors])
        low = low if before is None else low * before
        high: Tensor = torch.block_diag(*(order(second) for order, _, second in factors))  # type: ignore[no-untyped-call]
        low, high = F.pad(low, (0, 0, 0, -len(low) % ALIGNED)), F.pad(high, (0, -len(low) % ALIGNED))
        weight, low = torch.cat([weight, high], 1), low.to(placement.device, placement.dtype)
    biases = [order(one.bias.detach().float()) for one, order in ordered if one.bias is not None]
    bias = torch.cat(biases).to(placement.device, placement.dtype) if biases else None
    return LinearMap(weight.to(placement.device, placement.dtype), bias, low)


class AdaptedLinear(nn.Module):
    """Stands for a layer of peft in the copy of a model."""

    def __init__(self, product: LinearMap) -> None:
        super().__init__()
        self.product = product

    @property
    def weight(self) -> Tensor:
        """The base's: models ask for its type."""
        low = self.product.low
        return self.product.weight if low is None else self.product.weight[:, : low.shape[1]]

    @property
    def bias(self) -> Tensor | None:
        return self.product.bias

    def forward(self, x: Tensor) -> Tensor:
        return self.product(x)


def placed_copy(model: Any, placement: Placement) -> Any:
    """Copies a transformers model to that place and type, with its adapter beside it."""
    found = copy.deepcopy(model).to(placement.device, placement.dtype)
    if placement.dtype is not torch.float32:
        for name, layer in model.named_modules():
            if _active(layer):
                found.set_submodule(name, AdaptedLinear(make_product([layer], placement)))
    return found


def _active(layer: Any) -> list[str]:
    """Names the adapters that a layer computes with."""
    return [name for name in layer.active_adapters if name in layer.lora_A] if hasattr(layer, "lora_A") else []


def _base(linear: Any) -> Tensor:
    """Returns a layer's weight `[out, in]` in float32, without an adapter: the property `weight` of such a layer is the
    base's alone."""
    found: Tensor = linear.weight.detach().float()
    return found.T if getattr(linear, "fan_in_fan_out", False) else found


def _merged(linear: Any) -> Tensor:
    found: Tensor = linear.weight.detach().float()
    for name in _active(linear):
        found = found + linear.get_delta_weight(name).detach().float()
    return found


def _factors(linear: Any) -> tuple[Tensor, Tensor]:
    """Returns `[rank, in]` and `[out, rank]` of all adapters of a layer together, in float32."""
    names = _active(linear)
    if not names:
        out, size = linear.weight.shape
        return linear.weight.new_zeros(0, size).float(), linear.weight.new_zeros(out, 0).float()
    first = [linear.lora_A[name].weight.detach().float() for name in names]
    second = [linear.lora_B[name].weight.detach().float() * linear.scaling[name] for name in names]
    return torch.cat(first), torch.cat(second, 1)


def _as_it_is(weight: Tensor) -> Tensor:
    return weight

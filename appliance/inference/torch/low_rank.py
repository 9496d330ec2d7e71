"""Linear layers with a peft adapter, computed as each data type requires.

In float32 the adapter is added to the copied weight. In half precision it would be lost, since an update is smaller
than the weights' rounding. So the two factors stay separate: the first adds a few numbers to a layer's input, the
second adds columns to the weight, and one product sums both parts and rounds once. The factors themselves are rounded
to half precision, as in the trainer's autocast, which changes an update by some thousandths, whatever its size.
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
from appliance.inference.nf4 import dequantise

ALIGNED = 8
"""Alignment of a product's length for tensor cores."""


@dataclass(frozen=True)
class LinearMap:
    weight: Tensor
    """`[out, in]`, with a separate adapter `[out, in + rank]`."""
    bias: Tensor | None
    low: Tensor | None = None
    """First factor of a separate adapter: `[rank, in]`."""

    def __call__(self, x: Tensor) -> Tensor:
        if self.low is not None:
            x = torch.cat([x, F.linear(x, self.low)], -1)
        return F.linear(x, self.weight, self.bias)

    def without_adapter(self) -> LinearMap:
        """Returns the linear map with the same shape, with the adapter's part zero."""
        return self if self.low is None else replace(self, low=torch.zeros_like(self.low))


def make_product(
    linears: Sequence[Any],
    placement: Placement,
    *,
    before: Tensor | None = None,
    orders: Sequence[Callable[[Tensor], Tensor]] = (),
) -> LinearMap:
    """Joins linear layers with a common input into one linear map. `before` scales the input; `orders` reorders each
    layer's outputs."""
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
    """Linear layer with adapter that replaces a peft layer in a copied model."""

    def __init__(self, product: LinearMap) -> None:
        super().__init__()
        self.product = product

    @property
    def weight(self) -> Tensor:
        """Weight of the base layer: models read its type."""
        low = self.product.low
        return self.product.weight if low is None else self.product.weight[:, : low.shape[1]]

    @property
    def bias(self) -> Tensor | None:
        return self.product.bias

    def forward(self, x: Tensor) -> Tensor:
        return self.product(x)


def placed_copy(model: Any, placement: Placement) -> Any:
    """Copies a transformers model to a device and type, dequantised, with its adapter kept separate."""
    found = copy.deepcopy(model)
    dequantise(found)
    found = found.to(placement.device, placement.dtype)
    if placement.dtype is not torch.float32:
        for name, layer in model.named_modules():
            if _active(layer):
                found.set_submodule(name, AdaptedLinear(make_product([layer], placement)))
    return found


def _active(layer: Any) -> list[str]:
    """Names the active adapters of a peft layer."""
    return [name for name in layer.active_adapters if name in layer.lora_A] if hasattr(layer, "lora_A") else []


def _base(linear: Any) -> Tensor:
    """Returns a linear layer's weight without adapter, `[out, in]` in float32; a peft layer's `weight` excludes the
    adapter."""
    found: Tensor = linear.weight.detach().float()
    return found.T if getattr(linear, "fan_in_fan_out", False) else found


def _merged(linear: Any) -> Tensor:
    found: Tensor = linear.weight.detach().float()
    for name in _active(linear):
        found = found + linear.get_delta_weight(name).detach().float()
    return found


def _factors(linear: Any) -> tuple[Tensor, Tensor]:
    """Returns both factors of a layer's adapters, joined: `[rank, in]` and `[out, rank]`, in float32."""
    names = _active(linear)
    if not names:
        out, size = linear.weight.shape
        return linear.weight.new_zeros(0, size).float(), linear.weight.new_zeros(out, 0).float()
    first = [linear.lora_A[name].weight.detach().float() for name in names]
    second = [linear.lora_B[name].weight.detach().float() * linear.scaling[name] for name in names]
    return torch.cat(first), torch.cat(second, 1)


def _as_it_is(weight: Tensor) -> Tensor:
    return weight

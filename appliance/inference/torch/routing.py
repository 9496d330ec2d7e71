"""Records the experts that a mixture's routers choose, and replays recorded choices (R3, 2510.11370).

Invariants: a replay changes the choice alone. The weights of the chosen experts are the router's own probabilities,
normalised as the model does, with their gradient. Choices keep the router's order, so that replaying a model's own
choices repeats its bits. A replay must cover the backward pass too: gradient checkpointing computes the routers again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

ROUTER = "TopKRouter"
"""Ending of the class names of routers in transformers."""
BYTE = 256
"""Maximum experts of a layer whose numbers take one byte each; above, two."""


class Routers:
    """Routers of a mixture, layer by layer; `routers_of` finds and tests them."""

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        self._modules = modules
        self.chosen = 0
        """Experts chosen per token and layer."""
        self.experts = 0
        """Experts of a layer."""

    @property
    def layers(self) -> int:
        """Number of layers with experts."""
        return len(self._modules)

    @property
    def dtype(self) -> torch.dtype:
        """Integer type of recorded choices."""
        return torch.uint8 if self.experts <= BYTE else torch.int16

    @contextmanager
    def recording(self) -> Iterator[Callable[[], Tensor]]:
        """Context around a forward pass; its function then returns the choices `[tokens, layers * chosen]`."""
        taken: list[Tensor] = [torch.empty(0)] * self.layers
        with self._routed(None, taken):
            yield lambda: torch.stack(taken, 1).flatten(1).to(self.dtype)

    @contextmanager
    def replaying(self, routes: Tensor) -> Iterator[None]:
        """Context in which the routers choose `routes` `[tokens, layers, chosen]`; a router chooses freely at -1."""
        with self._routed(routes.to(next(self._modules[0].parameters()).device).long(), None):
            yield

    @contextmanager
    def _routed(self, routes: Tensor | None, taken: list[Tensor] | None) -> Iterator[None]:
        """Context in which each router's forward pass has its choice of experts replaced or recorded."""

        def wrapped(layer: int, forward: Callable[..., Any]) -> Callable[..., Any]:
            def routed(*inputs: Any, **others: Any) -> Any:
                with _Choice(None if routes is None else routes[:, layer]) as choice:
                    found = forward(*inputs, **others)
                if choice.indices is None:
                    raise ValueError("a router chooses no experts by torch.topk")
                if taken is not None:
                    taken[layer], self.experts = choice.indices, choice.experts
                return found

            return routed

        before = [module.forward for module in self._modules]
        try:
            for layer, module in enumerate(self._modules):
                module.forward = wrapped(layer, module.forward)
            yield
        finally:
            for module, forward in zip(self._modules, before, strict=True):
                module.forward = forward
                if getattr(forward, "__self__", None) is module:  # the class's own
                    del module.forward


class _Choice(TorchFunctionMode):
    """Replaces or records the only `topk` of a router's forward pass."""

    def __init__(self, given: Tensor | None) -> None:
        super().__init__()
        self._given = given
        self.indices: Tensor | None = None
        self.experts = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if func not in (torch.topk, torch.Tensor.topk):
            return found
        if self.indices is not None:
            raise ValueError("a router chooses experts in several steps")
        self.indices, self.experts = found.indices, args[0].shape[-1]
        if self._given is None:
            return found
        if self._given.shape != found.indices.shape:
            raise ValueError(f"choices {list(self._given.shape)} for a router's {list(found.indices.shape)}")
        self.indices = torch.where(self._given < 0, found.indices, self._given)
        return torch.return_types.topk((args[0].gather(-1, self.indices), self.indices))


@torch.no_grad()
def routers_of(model: Any) -> Routers | None:
    """Returns the routers of a transformers model; None for a model without, or with routers of another form: the
    replay of its own choices must change nothing, and of other choices something."""
    modules = [module for module in model.modules() if type(module).__name__.endswith(ROUTER)]
    if not modules:
        return None
    found, training = Routers(modules), model.training
    ids = torch.arange(4, device=next(model.parameters()).device)[None]
    model.eval()
    try:
        with found.recording() as taken:
            expected = model(input_ids=ids, use_cache=False).logits
        routes = taken().long().view(ids.shape[1], found.layers, -1)
        found.chosen = routes.shape[2]
        with found.replaying(routes):
            own = model(input_ids=ids, use_cache=False).logits
        with found.replaying((routes + 1) % found.experts):
            other = model(input_ids=ids, use_cache=False).logits
    except (ValueError, RuntimeError):
        return None
    finally:
        model.train(training)
    every = found.chosen == found.experts
    return found if torch.equal(own, expected) and (every or not torch.equal(other, expected)) else None

"""Keeps state of a learner in main memory beside its GPU: the optimizer's moments, and inputs of checkpointed layers.

Invariants: numbers only move, so a step has the same bits as without. On a CPU nothing moves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from torch import Tensor, nn

from appliance.inference.memory import IN_FLIGHT
from appliance.learning.errors import LearningError


class HostedMoments(torch.optim.Optimizer):
    """Mixin of an optimizer whose moments rest in main memory: a step has those of one parameter at a time with it."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes one optimizer step, parameter by parameter; their updates must not depend on each other."""
        groups = self.param_groups
        try:
            for group in groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self.param_groups = [{**group, "params": [parameter]}]
                        self._step_one(parameter)
        finally:
            self.param_groups = groups

    def _step_one(self, parameter: nn.Parameter) -> None:
        state = self.state[parameter]
        resting = {name: value for name, value in state.items() if isinstance(value, Tensor) and value.ndim}
        state.update({name: value.to(parameter.device) for name, value in resting.items()})
        super().step()
        for name, value in self.state[parameter].items():
            if isinstance(value, Tensor) and value.ndim:
                state[name] = resting[name].copy_(value) if name in resting else value.cpu()


def hosted(kind: type[torch.optim.Optimizer]) -> type[torch.optim.Optimizer]:
    """Returns the optimizer class with moments that rest in main memory."""
    return cast("type[torch.optim.Optimizer]", type(f"Hosted{kind.__name__}", (HostedMoments, kind), {}))


class HostInputs:
    """Moves the inputs of checkpointed layers to main memory during a forward pass, and back in the backward pass.

    Copies run beside the computation. A GPU has at most `IN_FLIGHT` inputs that are still being copied."""

    def __init__(self) -> None:
        self._stream: torch.cuda.Stream | None = None
        self._leaving: deque[tuple[Tensor, torch.cuda.Event]] = deque()

    def around(self, checkpoint: Callable[..., Any]) -> Callable[..., Any]:
        """Returns torch's function `checkpoint`, with inputs that it saves moved. Inside, it has hooks of its own."""

        def moving(*given: Any, **named: Any) -> Any:
            with torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack):
                return checkpoint(*given, **named)

        return moving

    def moves(self, tensor: Tensor) -> bool:
        """True for a tensor that moves to main memory."""
        return tensor.is_cuda

    def _pack(self, tensor: Tensor) -> Tensor | tuple[Tensor, torch.device]:
        if not self.moves(tensor):
            return tensor
        host = torch.empty_like(tensor, device="cpu", pin_memory=tensor.is_cuda)
        with self._beside(tensor):
            host.copy_(tensor, non_blocking=True)
            if self._stream is not None:
                self._leaving.append((tensor, self._stream.record_event()))
        while len(self._leaving) > IN_FLIGHT:  # only then its memory may be used for something else
            torch.cuda.current_stream(tensor.device).wait_event(self._leaving.popleft()[1])
        return host, tensor.device

    def _unpack(self, packed: Tensor | tuple[Tensor, torch.device]) -> Tensor:
        if isinstance(packed, Tensor):
            return packed
        host, device = packed
        if self._stream is not None:
            torch.cuda.current_stream(device).wait_stream(self._stream)
            self._leaving.clear()
        return host.to(device, non_blocking=True)

    def _beside(self, tensor: Tensor) -> AbstractContextManager[Any]:
        """Context in which work on a GPU's tensor runs beside the computation, after what was queued there before."""
        if not tensor.is_cuda:
            return nullcontext()
        self._stream = self._stream or torch.cuda.Stream(tensor.device)  # type: ignore[no-untyped-call]
        self._stream.wait_stream(torch.cuda.current_stream(tensor.device))
        return torch.cuda.stream(self._stream)


def offload_inputs(model: nn.Module) -> None:
    """Moves the inputs of the model's checkpointed layers to main memory. Raises LearningError for a model without."""
    inputs, name = HostInputs(), "_gradient_checkpointing_func"
    layers = [one for one in model.modules() if hasattr(one, name)]
    if not layers:
        raise LearningError(
            f"{type(model).__name__}: the inputs of its layers cannot be moved to main memory",
            hint='set training.offload to "nothing" or "moments"',
        )
    for layer in layers:
        setattr(layer, name, inputs.around(getattr(layer, name)))

"""Converts between sharded (`torch.distributed.tensor`) and whole tensors."""

from __future__ import annotations

from torch import Tensor


def whole(tensor: Tensor) -> Tensor:
    """Gathers a tensor that is sharded over ranks, which all must call; returns any other unchanged."""
    found: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return found


def own_part(tensor: Tensor) -> Tensor:
    """Returns this rank's shard of a tensor, or an unsharded tensor unchanged."""
    found: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return found


def like(target: Tensor, source: Tensor) -> Tensor:
    """Moves a whole tensor to the device of `target`; if that is sharded, returns this rank's shard."""
    source = source.to(target.device)
    if not hasattr(target, "full_tensor") or source.shape != target.shape:
        return source
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(target, DTensor)
    return distribute_tensor(source, target.device_mesh, target.placements, src_data_rank=None)

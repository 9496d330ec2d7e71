"""Tensors of which several processes have a part each (`torch.distributed.tensor`), as whole ones and back."""

from __future__ import annotations

from torch import Tensor


def whole(tensor: Tensor) -> Tensor:
    """Gathers a tensor of which each rank has a part; all ranks have to ask. Any other is given back as it is."""
    found: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return found


def own_part(tensor: Tensor) -> Tensor:
    """Gives what this rank has of a tensor: all of one that is not shared out."""
    found: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return found


def like(target: Tensor, source: Tensor) -> Tensor:
    """Brings a whole tensor to where `target` lies: to its device, and to the part of it that this rank has."""
    source = source.to(target.device)
    if not hasattr(target, "full_tensor") or source.shape != target.shape:
        return source
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(target, DTensor)
    return distribute_tensor(source, target.device_mesh, target.placements, src_data_rank=None)

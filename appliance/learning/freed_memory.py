"""Has the C library give freed memory back to the kernel while a large model is trained.

glibc raises the size from which on a block has pages of its own to that of the largest block that was freed, up to 32
MiB (mallopt(3), M_MMAP_THRESHOLD). Activations then lie on the heap, between other blocks, and stay resident: with
passes of equal size the resident memory of a process grew from pass to pass. A fixed threshold ends that. It costs page
faults, so a small model is left as it is.
"""

from __future__ import annotations

import ctypes

from torch import nn

LARGE = 50_000_000
"""Parameters from which on a model is large."""
THRESHOLD = 1 << 20
"""Bytes from which on a block has pages of its own."""
_M_MMAP_THRESHOLD = -3


def return_freed_memory(model: nn.Module) -> bool:
    """Fixes the threshold for this process when the model is large; says whether it did. Other C libraries than glibc
    have no such call and are left alone."""
    if sum(parameter.numel() for parameter in model.parameters()) < LARGE:
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_MMAP_THRESHOLD, THRESHOLD))

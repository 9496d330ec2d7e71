"""Numbers GPUs as `nvidia-smi` does, by PCI address, for every process that `assay` starts.

Invariants: nothing is loaded or queried. `cuda:N` is torch's number, among the GPUs in CUDA_VISIBLE_DEVICES;
`vllm.gpus` are numbers of `nvidia-smi`.
"""

from __future__ import annotations

from itertools import takewhile

ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""Environment that orders GPUs by PCI address; CUDA's default is fastest first. Read when a process first uses a GPU.
"""
VISIBLE = "CUDA_VISIBLE_DEVICES"


def shown_gpus(visible: str | None, listed: int) -> tuple[str, ...]:
    """Returns the names of the GPUs that CUDA shows of `listed` ones, in torch's order, by CUDA_VISIBLE_DEVICES
    (`visible`; None: not set). As in CUDA, the first invalid name ends the list."""
    if visible is None:
        return tuple(map(str, range(listed)))

    def names_one(word: str) -> bool:
        return word.startswith(("GPU-", "MIG-")) or (word.isdecimal() and int(word) < listed)

    return tuple(takewhile(names_one, map(str.strip, visible.split(","))))

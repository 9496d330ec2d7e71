"""Numbers GPUs as `nvidia-smi` lists them, by their PCI addresses, for whatever `assay` starts.

What always holds: nothing is loaded or asked. `cuda:N` is torch's number, within those that CUDA_VISIBLE_DEVICES shows;
`vllm.gpus` are numbers of `nvidia-smi`.
"""

from __future__ import annotations

from itertools import takewhile

ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""Otherwise CUDA counts the fastest first. It is read when a process first uses a GPU."""
VISIBLE = "CUDA_VISIBLE_DEVICES"


def shown_gpus(visible: str | None, listed: int) -> tuple[str, ...]:
    """Which of so many GPUs CUDA shows, in torch's order, as CUDA_VISIBLE_DEVICES (`visible`; None: not set) names
    them. As for CUDA, the first name of none ends the list."""
    if visible is None:
        return tuple(map(str, range(listed)))

    def names_one(word: str) -> bool:
        return word.startswith(("GPU-", "MIG-")) or (word.isdecimal() and int(word) < listed)

    return tuple(takewhile(names_one, map(str.strip, visible.split(","))))

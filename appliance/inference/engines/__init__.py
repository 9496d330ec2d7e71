"""Makes engines by the name that the configuration gives; nobody else names one.

Importing this loads no engine: each is imported when it is made.
"""

from __future__ import annotations

from collections.abc import Callable

from appliance.inference.engine import Engine, ModelError
from appliance.inference.vllm.placement import VllmSettings

EngineFactory = Callable[..., Engine]
"""Makes an engine of so many rows and slots, with so many threads (None: as many as its libraries like); `_vllm` takes
what the configuration says of it, too."""


def _torch(rows: int, slots: int, threads: int | None) -> Engine:
    import torch

    from appliance.inference.torch_engine import TorchEngine

    if threads is not None:
        torch.set_num_threads(threads)
    return TorchEngine(rows, slots)


def _vllm(rows: int, slots: int, threads: int | None, settings: VllmSettings | None = None) -> Engine:
    import torch

    from appliance.inference.vllm.engine import VllmEngine

    if threads is not None:  # those of the forward passes that a proof compares with
        torch.set_num_threads(threads)
    return VllmEngine(rows, slots, threads, settings=settings)


ENGINES: dict[str, EngineFactory] = {"torch": _torch, "vllm": _vllm}


def make_engine(
    name: str, *, rows: int, slots: int, threads: int | None = None, vllm: VllmSettings | None = None
) -> Engine:
    """Makes the engine of this name: `rows` conversations at once, of at most `slots` tokens. Raises ModelError.

    `threads` are the process's: sampling and training give the same bits only under the same number of them. `vllm`
    says where an engine of that name runs.
    """
    if name not in ENGINES:
        raise ModelError(
            f"there is no engine {name!r}", hint=f"set model.engine to one of: {', '.join(sorted(ENGINES))}"
        )
    given = {"settings": vllm} if name == "vllm" and vllm not in (None, VllmSettings()) else {}
    return ENGINES[name](rows, slots, threads, **given)

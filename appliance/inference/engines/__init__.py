"""Creates engines by their configured name; the only place that knows the names.

Importing this module loads no engine: each is imported on creation.
"""

from __future__ import annotations

from typing import Any, Protocol

from appliance.inference.engine import Engine, ModelError
from appliance.inference.vllm.placement import VllmSettings
from common.plugins.table import OpenTable


class EngineFactory(Protocol):
    """Function that creates a sampling engine."""

    def __call__(self, rows: int, slots: int, threads: int | None, **chosen: Any) -> Engine:
        """Creates an engine with `rows` conversations of `slots` tokens, and `threads` (None: the libraries' default).
        `chosen` has explicit settings of `device`, `dtype`, `vllm` and `place`, as in `make_engine`."""


def _torch(rows: int, slots: int, threads: int | None, **chosen: Any) -> Engine:
    import torch

    from appliance.inference.device import choose_placement
    from appliance.inference.torch.engine import TorchEngine

    if threads is not None:
        torch.set_num_threads(threads)
    return TorchEngine(rows, slots, placement=choose_placement(**chosen))


def _vllm(rows: int, slots: int, threads: int | None, **chosen: Any) -> Engine:
    import torch

    from appliance.inference.vllm.engine import VllmEngine

    if threads is not None:  # threads of the forward passes that verify a push
        torch.set_num_threads(threads)
    if "device" in chosen:
        raise ModelError(
            "engine vllm: the device is fixed by its environment",
            hint="set model.device to auto, or model.engine to torch",
        )
    settings, place = chosen.get("vllm"), chosen.get("place", (0, 1))
    return VllmEngine(rows, slots, threads, dtype=chosen.get("dtype", ""), settings=settings, place=place)


ENGINES: OpenTable[EngineFactory] = OpenTable("engines", {"torch": _torch, "vllm": _vllm})


def make_engine(
    name: str,
    *,
    rows: int,
    slots: int,
    threads: int | None = None,
    device: str = "auto",
    dtype: str = "auto",
    vllm: VllmSettings | None = None,
    place: tuple[int, int] = (0, 1),
) -> Engine:
    """Creates the sampling engine of this name, with `rows` concurrent conversations of at most `slots` tokens. Raises
    ModelError, and InfrastructureError for a missing GPU.

    `threads` are the process's: sampling and training are bit-equal only at an equal count. `device` and `dtype` are
    those of `[model]`, where "auto" leaves the choice to the engine; `vllm` says where a vLLM engine runs, and `place`
    is (index, count): several engines take separate GPUs if there are enough.
    """
    if name not in ENGINES:
        raise ModelError(f"unknown engine {name!r}", hint=f"set model.engine to one of: {', '.join(sorted(ENGINES))}")
    chosen: dict[str, Any] = {key: value for key, value in (("device", device), ("dtype", dtype)) if value != "auto"}
    if name == "vllm" and vllm not in (None, VllmSettings()):
        chosen |= {"vllm": vllm, "place": place}
    return ENGINES[name](rows, slots, threads, **chosen)


def make_engines(name: str, count: int, **asked: Any) -> list[Engine]:
    """Creates `count` sampling engines with equal arguments of `make_engine`. Raises ModelError."""
    return [make_engine(name, **asked, place=(number, count)) for number in range(count)]

"""Makes engines by the name that the configuration gives; nobody else names one.

Importing this loads no engine: each is imported when it is made.
"""

from __future__ import annotations

from typing import Any, Protocol

from appliance.inference.engine import Engine, ModelError
from appliance.inference.vllm.placement import VllmSettings


class EngineFactory(Protocol):
    """Makes an engine of so many rows and slots, with so many threads (None: as many as its libraries like)."""

    def __call__(self, rows: int, slots: int, threads: int | None, **chosen: Any) -> Engine:
        """`chosen` has what somebody chose of `device`, `dtype`, `vllm` and `place`, as `make_engine` says."""


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

    if threads is not None:  # those of the forward passes that a proof compares with
        torch.set_num_threads(threads)
    if "device" in chosen:
        raise ModelError(
            "the engine vllm runs on what its environment was built for",
            hint="set model.device to auto, or model.engine to torch",
        )
    settings, place = chosen.get("vllm"), chosen.get("place", (0, 1))
    return VllmEngine(rows, slots, threads, dtype=chosen.get("dtype", ""), settings=settings, place=place)


ENGINES: dict[str, EngineFactory] = {"torch": _torch, "vllm": _vllm}


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
    """Makes the engine of this name: `rows` conversations at once, of at most `slots` tokens. Raises ModelError, and
    InfrastructureError for a GPU that is not there.

    `threads` are the process's: sampling and training give the same bits only under the same number of them. `device`
    and `dtype` are what `[model]` says, and "auto" leaves them to the engine; `vllm` says where an engine of that name
    runs, and `place` which of how many it is: several take GPUs of their own where there are enough.
    """
    if name not in ENGINES:
        raise ModelError(
            f"there is no engine {name!r}", hint=f"set model.engine to one of: {', '.join(sorted(ENGINES))}"
        )
    chosen: dict[str, Any] = {key: value for key, value in (("device", device), ("dtype", dtype)) if value != "auto"}
    if name == "vllm" and vllm not in (None, VllmSettings()):
        chosen |= {"vllm": vllm, "place": place}
    return ENGINES[name](rows, slots, threads, **chosen)


def make_engines(name: str, count: int, **asked: Any) -> list[Engine]:
    """Makes so many engines of this name, of which `make_engine` is `asked` the same. Raises ModelError."""
    return [make_engine(name, **asked, place=(number, count)) for number in range(count)]

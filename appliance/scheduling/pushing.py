"""Pushes weights to several engines: concurrently to those in separate processes, sequentially to the others.

Invariants: each engine proves its weights. A process is started by the thread that pushes, whose end would kill it. An
aborted push closes the engines that had begun.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from appliance.inference.engine import Engine, PushProof, PushUnderWay, SharedWeights, WorksApart
from runtime.errors import InfrastructureError

if TYPE_CHECKING:
    from appliance.inference.engine import Weights

T = TypeVar("T")


def push_to_all(
    engines: Mapping[str, Engine], weights: Weights, version: str
) -> dict[str, PushProof | InfrastructureError]:
    """Pushes weights to all engines, and returns each engine's proof or error. Raises ModelError."""
    if len(engines) == 1:
        return {name: _tried(partial(engine.push, weights, version)) for name, engine in engines.items()}
    model, expected = _expected(weights, version)
    found = _pushed(engines, model, version)
    other = InfrastructureError(f"it has other weights than those of {version}")
    return {
        name: one if isinstance(one, InfrastructureError) or one == expected else other for name, one in found.items()
    }


def _pushed(engines: Mapping[str, Engine], model: Any, version: str) -> dict[str, PushProof | InfrastructureError]:
    begun: dict[str, PushUnderWay | InfrastructureError] = {}
    found: dict[str, PushProof | InfrastructureError] = {}
    with SharedWeights(model) as weights:
        try:
            for name, engine in engines.items():
                if isinstance(engine, WorksApart):
                    begun[name] = _tried(partial(engine.begin_push, weights, version))
            _hand_over({name: one for name, one in begun.items() if not isinstance(one, InfrastructureError)}, engines)
            for name, engine in engines.items():
                one = begun.get(name)
                if isinstance(one, InfrastructureError):
                    found[name] = one
                else:
                    found[name] = _tried(partial(engine.push, model, version) if one is None else one.proved)
        except BaseException:
            for name in begun:
                engines[name].close()
            raise
    return found


def _hand_over(begun: Mapping[str, PushUnderWay], engines: Mapping[str, Engine]) -> None:
    if not begun:
        return
    with ThreadPoolExecutor(len(begun), "push") as threads:
        try:
            wait([threads.submit(one.hand_over) for one in begun.values()])
        except BaseException:
            for name in begun:  # abandon their answers
                engines[name].close()
            raise


def _tried(push: Callable[[], T]) -> T | InfrastructureError:
    try:
        return push()
    except InfrastructureError as error:
        return error


def _expected(weights: Weights, version: str) -> tuple[Any, PushProof]:
    """Opens weights once for all engines, and returns the model and the proof that each engine must return."""
    from appliance.inference.adapters import proof_of
    from appliance.inference.folder import open_model

    model = open_model(weights, version[:12]) if isinstance(weights, Mapping) else weights
    return model, proof_of(model, version)

"""Computes how many sandboxes of each image to keep ready. Pure: the time is an argument, in seconds.

Each image has two exponentially weighted rates: current demand (over about `WINDOW_SECONDS`), and its recent maximum,
which halves every `HALF_LIFE` seconds. The target is the number of copies that the maximum consumes during one refill,
so a burst like the last one is served entirely; if all targets exceed the cap, images share by rate (highest averages,
as in seat allocation).

Invariants: never more than `cap` in all; nothing for an image without demand; more demand for an image never means
fewer copies of it while the others' stays the same; without demand everything decays to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
WINDOW_SECONDS = 1.0
HALF_LIFE = 120.0
WORTH = 0.25
"""Expected uses below which no copy is kept."""
SMOOTHING = 0.2


@dataclass(slots=True)
class _Rates:
    now: float
    """Requests per second."""
    high: float
    at: float
    refill_seconds: float


class Demand(Generic[Key]):
    def __init__(self) -> None:
        self._rates: dict[Key, _Rates] = {}

    def asked(self, key: Key, moment: float) -> None:
        """Records a request for a sandbox of this image, whether or not a copy was ready."""
        rates = self._rates.get(key)
        if rates is None:
            rates = self._rates[key] = _Rates(0.0, 0.0, moment, WINDOW_SECONDS)
        self._fade(rates, moment)
        rates.now += 1 / WINDOW_SECONDS
        rates.high = max(rates.high, rates.now)

    def refilled(self, key: Key, seconds: float) -> None:
        """Records the duration of one sandbox start from this image, in seconds."""
        rates = self._rates.get(key)
        if rates is not None:
            rates.refill_seconds += SMOOTHING * (seconds - rates.refill_seconds)

    def targets(self, moment: float, cap: int) -> dict[Key, int]:
        """Returns the wanted number of ready sandboxes by image, `cap` in all; images without any are omitted."""
        wanted: dict[Key, int] = {}
        for key, rates in list(self._rates.items()):
            self._fade(rates, moment)
            uses = rates.high * max(WINDOW_SECONDS, rates.refill_seconds)
            if uses < WORTH:
                del self._rates[key]
            else:
                wanted[key] = max(1, math.ceil(uses - WORTH))
        if sum(wanted.values()) <= cap:
            return wanted
        return self._shared(wanted, cap)

    def rate(self, key: Key) -> float:
        """Returns an image's recent maximum rate of requests, its weight among other images."""
        rates = self._rates.get(key)
        return rates.high if rates is not None else 0.0

    def _shared(self, wanted: dict[Key, int], cap: int) -> dict[Key, int]:
        shared = dict.fromkeys(wanted, 0)
        for _ in range(cap):
            open_keys = [key for key in wanted if shared[key] < wanted[key]]
            if not open_keys:
                break
            best = max(open_keys, key=lambda key: self._rates[key].high / (shared[key] + 1))
            shared[best] += 1
        return {key: copies for key, copies in shared.items() if copies}

    @staticmethod
    def _fade(rates: _Rates, moment: float) -> None:
        passed = max(0.0, moment - rates.at)
        rates.now *= math.exp(-passed / WINDOW_SECONDS)
        rates.high = max(rates.now, rates.high * 2.0 ** (-passed / HALF_LIFE))
        rates.at = max(rates.at, moment)

"""Says how many sandboxes of which image to keep ready. Pure: the moment comes in as an argument, in seconds.

Of each image two exponentially weighted rates are kept: how often it is asked for now (over about `WINDOW_SECONDS`),
and the highest that this was lately, which fades by half every `HALF_LIFE` seconds. Kept are as many copies as that
highest rate takes away in the time of one refill, so a burst like the last one finds all of it ready; where they are
too many together, images share by their rates (highest averages, as seats are given to parties).

What always holds: never more than `cap` in all; nothing for an image that nobody asked for; more demand for an image
never means fewer copies of it, if the others' stays the same; without demand everything fades to nothing.
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
"""Expected uses below which not even one copy is kept."""
SMOOTHING = 0.2


@dataclass(slots=True)
class _Rates:
    now: float
    """Per second."""
    high: float
    at: float
    refill_seconds: float


class Demand(Generic[Key]):
    def __init__(self) -> None:
        self._rates: dict[Key, _Rates] = {}

    def asked(self, key: Key, moment: float) -> None:
        """Notes that somebody wanted one, whether it was ready or not."""
        rates = self._rates.get(key)
        if rates is None:
            rates = self._rates[key] = _Rates(0.0, 0.0, moment, WINDOW_SECONDS)
        self._fade(rates, moment)
        rates.now += 1 / WINDOW_SECONDS
        rates.high = max(rates.high, rates.now)

    def refilled(self, key: Key, seconds: float) -> None:
        """Notes that one start of it took so long."""
        rates = self._rates.get(key)
        if rates is not None:
            rates.refill_seconds += SMOOTHING * (seconds - rates.refill_seconds)

    def targets(self, moment: float, cap: int) -> dict[Key, int]:
        """Says how many ready copies each image should have now; images that should have none are left out."""
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
        """Says what it is worth beside others."""
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

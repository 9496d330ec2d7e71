"""How often a canary's window takes back a model that is no worse, and how soon one that is: made-up jobs, one by one.

Pure: the odds are those of `policies.canary`. Jobs are alike and independent, the champion and the canary each verify
one with the chance given, and the window lasts a number of jobs.
"""

from __future__ import annotations

import math
from random import Random

from pydantic import BaseModel, ConfigDict, Field

from policies.canary import Counts, log_odds_of_drop
from policies.contract.rules import ServiceRules
from policies.statistics import wilson


class Service(BaseModel):
    """What a simulation is about; chances of a verified answer from 0 to 1."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    champion: float = Field(0.8, ge=0, le=1)
    canary: float = Field(0.8, ge=0, le=1)
    jobs: int = Field(100, ge=1)
    """People's jobs in the window, both shares together."""
    windows: int = Field(2_000, ge=1)
    seed: int = 0


class Served(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    taken_back: float
    """Share of the windows."""
    taken_back_low: float
    """Wilson's interval at 95 %; so is the next."""
    taken_back_high: float
    median_jobs: int | None
    """People's jobs, of both shares, before it was taken back; 0: it did not get so far. None where it never was."""


def simulate_service(rules: ServiceRules, assumed: Service) -> Served:
    random = Random(assumed.seed)
    delays = [_window(rules, assumed, random) for _ in range(assumed.windows)]
    gone = sorted(delay for delay in delays if delay is not None)
    low, high = wilson(len(gone), len(delays), alpha=0.05)
    return Served(
        taken_back=len(gone) / len(delays),
        taken_back_low=low,
        taken_back_high=high,
        median_jobs=gone[len(gone) // 2] if gone else None,
    )


def _window(rules: ServiceRules, assumed: Service, random: Random) -> int | None:
    """After how many of people's jobs it was taken back; None when it passed."""
    enough = -math.log(rules.alpha)
    replays = [(random.random() < assumed.champion, random.random() < assumed.canary) for _ in range(rules.replay)]
    counts = {"gained": replays.count((False, True)), "lost": replays.count((True, False))}
    counts |= {"canary_passed": 0, "canary_failed": 0, "champion_passed": 0, "champion_failed": 0}
    for number in range(assumed.jobs + 1):
        if log_odds_of_drop(Counts(**counts), rules.share) >= enough:
            return number
        is_canary = random.random() < rules.share
        passed = random.random() < (assumed.canary if is_canary else assumed.champion)
        counts[f"{'canary' if is_canary else 'champion'}_{'passed' if passed else 'failed'}"] += 1
    return None

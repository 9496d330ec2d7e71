"""Sums the runtime usage of rollouts. Pure; every figure was measured by the host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from appliance.records.rollouts import Rollout
from runtime.sandbox import Tier, Usage

_ORDER = tuple(Tier)


def total(rollouts: Iterable[Rollout]) -> Usage:
    """Sums the rollouts' sandbox usage; memory is the highest peak. None remains if no rollout had a sandbox of its
    own."""
    return added([rollout.usage for rollout in rollouts])


def added(used: Sequence[Usage]) -> Usage:
    """Sums sandbox usage records; memory is the highest peak, and None if no record has one."""
    if len(used) == 1:
        return used[0]
    cpu = [one.cpu_seconds for one in used if one.cpu_seconds is not None]
    peaks = [one.peak_memory_mib for one in used if one.peak_memory_mib is not None]
    return Usage(
        calls=sum(one.calls for one in used),
        seconds=sum(one.seconds for one in used),
        output_bytes=sum(one.output_bytes for one in used),
        snapshots=sum(one.snapshots for one in used),
        moves=sum(one.moves for one in used),
        cpu_seconds=sum(cpu) if cpu else None,
        peak_memory_mib=max(peaks) if peaks else None,
    )


def by_tier(rollouts: Iterable[Rollout]) -> dict[Tier, int]:
    """Counts rollouts by the highest isolation tier of their calls; excludes those without calls."""
    counts = dict.fromkeys(_ORDER, 0)
    for rollout in rollouts:
        tiers = [call.tier for call in rollout.calls if call.tier is not None]
        if tiers:
            counts[max(tiers, key=_ORDER.index)] += 1
    return counts


def figures(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Returns a step's sandbox metrics: seconds, CPU seconds, moves between tiers, and rollouts by tier."""
    used = total(rollouts)
    return {
        "sandbox_seconds": used.seconds,
        "sandbox_cpu_seconds": used.cpu_seconds or 0.0,
        "sandbox_moves": float(used.moves),
        **{f"rollouts_{tier.value}": float(count) for tier, count in by_tier(rollouts).items()},
    }

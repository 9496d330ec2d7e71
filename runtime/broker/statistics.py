"""Broker metrics, and listings of sandboxes and snapshots that fit into a packet."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from runtime.broker import messages as m
from runtime.broker.boxes import Live, State
from runtime.broker.store import INNER, Store, StoredSnapshot
from runtime.broker.warm_pool import WarmPool

LINES_BYTES = m.PACKET_BYTES * 3 // 4
"""Largest JSON size of listed lines, leaving room for the rest of the packet."""


def figures(warm_pool: WarmPool, store: Store, connections: int) -> dict[str, float]:
    """Returns the broker's figures: counters since the start, current gauges, and recent durations."""
    states = Counter(live.state for live in warm_pool.boxes.alive.values())
    counters = {name: float(warm_pool.counts[name]) for name in warm_pool.COUNTED}
    return (
        counters
        | {f"boxes_{state}": float(states[state]) for state in State}
        | {
            "boxes": float(len(warm_pool.boxes.alive)),
            "ready_copies": float(len(warm_pool.ready)),
            "waiting": float(warm_pool.waiting),
            "connections": float(connections),
            "snapshots": float(len(store)),
            "snapshot_bytes": float(store.bytes),
            "restores_per_second": warm_pool.spans.per_second("restore", time.monotonic()),
            "rss_mib": resident_mib(),
            "descriptors": float(sum(1 for _ in Path("/proc/self/fd").iterdir())),
        }
        | warm_pool.spans.figures()
    )


def resident_mib(statm: Path = Path("/proc/self/statm")) -> float:
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def listing(request: int, boxes: Iterable[Live], snapshots: Iterable[StoredSnapshot]) -> m.SnapshotListing:
    """Lists sandboxes and snapshots, as many lines as fit into a message; `more` counts the others."""
    now = time.monotonic()
    left = LINES_BYTES
    lines: list[m.SnapshotLine | m.BoxLine] = [
        *map(_snapshot_line, snapshots),
        *(_box_line(live, now) for live in boxes),
    ]
    shown: list[m.SnapshotLine | m.BoxLine] = []
    for line in lines:
        left -= len(line.model_dump_json()) + 1
        if left >= 0:
            shown.append(line)
    return m.SnapshotListing(
        request=request,
        boxes=tuple(line for line in shown if isinstance(line, m.BoxLine)),
        snapshots=tuple(line for line in shown if isinstance(line, m.SnapshotLine)),
        more=len(lines) - len(shown),
    )


def _box_line(live: Live, now: float) -> m.BoxLine:
    return m.BoxLine(
        box=live.id,
        mode=live.profile.mode,
        backend=live.profile.backend.value,
        state=live.state.value,
        holder=live.pid,
        caller=live.caller,
        age_seconds=round(now - live.since, 3),
    )


def _snapshot_line(snapshot: StoredSnapshot) -> m.SnapshotLine:
    return m.SnapshotLine(
        snapshot=snapshot.key,
        bytes=snapshot.manifest.bytes,
        durable=snapshot.durable,
        references=sum(1 for holder in snapshot.holders if holder != INNER),
        label=snapshot.manifest.label,
        created=snapshot.manifest.created,
        parent=snapshot.manifest.parent,
    )

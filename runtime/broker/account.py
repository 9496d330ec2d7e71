"""What the broker tells of itself: figures, and lists of sandboxes and snapshots that fit into a packet."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from runtime.broker import messages as m
from runtime.broker.boxes import Live, State
from runtime.broker.store import INNER, Snapshot, Store
from runtime.broker.supply import Supply

LINES_BYTES = m.PACKET_BYTES * 3 // 4
"""What lines may take in JSON, with room for the rest of the packet."""


def figures(supply: Supply, store: Store, connections: int) -> dict[str, float]:
    """Counters since the start, gauges of now, and how long things took lately."""
    states = Counter(live.state for live in supply.boxes.alive.values())
    told = {name: float(supply.counts[name]) for name in supply.COUNTED}
    return (
        told
        | {f"boxes_{state}": float(states[state]) for state in State}
        | {
            "boxes": float(len(supply.boxes.alive)),
            "ready_copies": float(len(supply.ready)),
            "waiting": float(supply.waiting),
            "connections": float(connections),
            "snapshots": float(len(store)),
            "snapshot_bytes": float(store.bytes),
            "restores_per_second": supply.spans.per_second("restore", time.monotonic()),
            "rss_mib": resident_mib(),
            "descriptors": float(sum(1 for _ in Path("/proc/self/fd").iterdir())),
        }
        | supply.spans.figures()
    )


def resident_mib(statm: Path = Path("/proc/self/statm")) -> float:
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def listing(request: int, boxes: Iterable[Live], snapshots: Iterable[Snapshot]) -> m.Listing:
    """As much as fits; `more` says how many lines did not."""
    left, more = LINES_BYTES, 0
    box_lines: list[m.BoxLine] = []
    snapshot_lines: list[m.SnapshotLine] = []
    now = time.monotonic()
    for snapshot in snapshots:
        line = _snapshot_line(snapshot)
        left -= len(line.model_dump_json()) + 1
        if left < 0:
            more += 1
        else:
            snapshot_lines.append(line)
    for live in boxes:
        shown = _box_line(live, now)
        left -= len(shown.model_dump_json()) + 1
        if left < 0:
            more += 1
        else:
            box_lines.append(shown)
    return m.Listing(request=request, boxes=tuple(box_lines), snapshots=tuple(snapshot_lines), more=more)


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


def _snapshot_line(snapshot: Snapshot) -> m.SnapshotLine:
    return m.SnapshotLine(
        snapshot=snapshot.key,
        bytes=snapshot.manifest.bytes,
        durable=snapshot.durable,
        references=sum(1 for holder in snapshot.holders if holder != INNER),
        label=snapshot.manifest.label,
        created=snapshot.manifest.created,
        parent=snapshot.manifest.parent,
    )

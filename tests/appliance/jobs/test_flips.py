"""No changed byte goes unseen, in short; `benchmarks/flips.py` takes every bit of the small and 10,000 of the large."""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.flips import at_random, measured, rows_of


def test_flips_in_bundles_checkpoints_and_the_audit_log_are_all_seen(tmp_path: Path) -> None:
    rows = list(rows_of(tmp_path, flips=10, every=211, large=50_000, seed=1))
    assert len(rows) == 14
    assert all(row.flips >= 10 for row in rows)
    assert [row for row in rows if row.missed] == []


def test_a_check_that_sees_nothing_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    where = list(at_random(tmp_path, 5, random.Random(0)))
    (row,) = measured("nothing", tmp_path, {"blind": lambda _: False}, where)
    assert row.missed == row.flips == 5
    assert (tmp_path / "file").read_bytes() == b"content"

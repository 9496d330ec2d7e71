"""Randomness that depends on what is done and not on when: the same step draws the same numbers in every replay."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(device: torch.device, *parts: str | int) -> Iterator[None]:
    """Seeds torch's generators (dropout draws from them) from `parts`, and puts them back afterwards."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(int.from_bytes(digest[:8], "big") >> 1)
        yield

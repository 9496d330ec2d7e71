"""What was freed between blocks in use goes back to the kernel."""

from __future__ import annotations

import ctypes

import psutil

from appliance.daemon.coordination.threads import give_back

BLOCK = 64 << 10


def test_memory_that_was_freed_between_blocks_in_use_goes_back() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    blocks = [libc.malloc(BLOCK) for _ in range(1_000)]
    for block in blocks:
        ctypes.memset(block, 1, BLOCK)
    kept = set(blocks[::20]) | {blocks[-1]}
    for block in set(blocks) - kept:
        libc.free(block)
    before = psutil.Process().memory_info().rss
    assert give_back()
    assert before - psutil.Process().memory_info().rss > 500 * BLOCK
    for block in kept:
        libc.free(block)

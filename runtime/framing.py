"""Splits streams into frames: turns bytes into messages where a pipe or socket has no message boundaries.

The code lives in the guest package, because guests use it too. Not for the broker's packets (SOCK_SEQPACKET keeps
boundaries), nor for readers of one frame at a time from a blocking socket.
"""

from __future__ import annotations

from runtime.guest.frames import FrameError, FrameReader

__all__ = ["FrameError", "FrameReader"]

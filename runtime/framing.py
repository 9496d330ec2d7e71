"""Cuts streams into frames: the one way in which bytes become messages, wherever a pipe or a socket keeps no
boundaries.

A guest has the same code, so it lies there. What has no part in it: the broker's packets, whose boundaries the kernel
keeps (SOCK_SEQPACKET), and those who read one frame at a time from a blocking socket.
"""

from __future__ import annotations

from runtime.guest.frames import FrameError, FrameReader

__all__ = ["FrameError", "FrameReader"]

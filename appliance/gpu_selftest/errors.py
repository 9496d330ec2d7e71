"""Outcomes of a GPU probe without a result: failed, or not run."""

from __future__ import annotations


class ProbeFailedError(Exception):
    """The property that a GPU probe tests does not hold; the message has the observation."""


class ProbeNotRunError(Exception):
    """This machine lacks something the GPU probe needs, so nothing ran; the message names it."""

"""How a probe of the GPU self-test ends that shows nothing: it failed, or nothing of it was run."""

from __future__ import annotations


class ProbeFailedError(Exception):
    """What a probe is for does not hold; the message says what was seen."""


class ProbeNotRunError(Exception):
    """This machine lacks what a probe needs, so that nothing of it was run; the message says what is missing."""

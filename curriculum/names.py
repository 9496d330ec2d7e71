"""The names of tasksets, for whoever needs no more of them than that: it imports no taskset."""

from __future__ import annotations

CALCULATORS: tuple[str, ...] = ("arithmetic", "divisors", "powers", "counting", "sequences", "digits", "linear")
"""What is asked where nobody says otherwise: the smallest policy model can read no more."""
